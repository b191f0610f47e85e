#!/usr/bin/env bash
# Checks and measures halox on a host with GPUs, from the folder that `make bundle` built. Logs and records go into one
# archive in OUT (default: out). The last lines printed are a short table.
#
#   gpu-check.sh [STEP...]
#
# Steps (default: tests sanitize table exchange links latency sweep):
#   tests         test programs, or single tests such as solvers.TestSoak, named in TESTS (default: all in the bundle)
#   sanitize      compute-sanitizer: memcheck and racecheck of kernels of each kind
#   table, exchange, packing, links, latency, sweep
#                 one benchmark each, with its record
#   checkpoint    checkpoints of heat on FOLDER (default: /dev/shm): steps meanwhile, writing and reading; less than 90 seconds
#   performance   most of what the pages in docs/results read; about five minutes on 4 H200
#   examples      the example programs
#   auto          scheme auto compared with each other scheme, for examples and configs on one and two GPUs, for some AUTO_TIME
#                 seconds each (default: 240). It fails where auto is more than 3% slower than the best. PROBLEMS names others
#                 than the default, see auto_problems below
#   equations     solver: equation compared with solver: heat, with the rate of copies and with the example programs
#   turns         this halox and BEFORE, an older one, alternately; without BEFORE this one twice
#   ranks         benchmarks of device ranks, with NVSHMEM if its Python package is installed, and applications
#   applications  the examples with device ranks, at the sizes of the thesis and larger, on one, two and four GPUs
#   ranks-litmus  litmus tests of device ranks with random seeds for LITMUS (default: 10m)
#   soak          random steps for SOAK (default: 10m) while one GPU pauses at random, then fails
#   start         how long commands take to start, compared with a plain CUDA program
#   networks      one process per GPU under mpirun, over each network for messages; needs MPI and two GPUs, and NCCL for one
#   records       exchange, packing, performance, examples, turns and networks, into a folder laid out as results/h200x2
#   passes        kernels of several steps per pass on one GPU: PASSES (such as points=7/float64/norms) or all, each for
#                 at most PASS (default: 120) seconds
#   counters      ncu on the fastest kernel of each stencil, or on PASSES
#   seconds       runs of scheme blocked of about five seconds, with the clocks and power during them
#
# For step tests: JOBS is how many programs run at a time (default: one per three cores), LIMIT the seconds that one may
# take, BACKEND another backend than cuda, or empty for all. With LONG empty, tests with many similar cases try some of
# them; the default tries all and takes more than eight minutes on 4 H100.
set -u
bundle=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${OUT:-out}"
archives=$(cd "${OUT:-out}" && pwd)/gpu-check
archive=$archives.tar.gz n=1
while [ -e "$archive" ]; do archive=$archives-$((++n)).tar.gz; done # keeps earlier archives
# Everything runs in a temporary folder, so that no record names a path of this host.
work=$(mktemp -d)
trap 'found; cd "$bundle"; tar -C "$work" -czf "$archive" .; rm -rf "$work"' EXIT
# A signal ends the running step at once; results so far are kept.
ended() { kill $(jobs -p) 2>/dev/null; wait; exit 143; }
trap ended INT TERM HUP
cp "$bundle/heat3d.yaml" "$work" && cd "$work" || exit 1
out=.
steps=${*:-tests sanitize table exchange links latency sweep}
failed=0

# machine prints what this host is called under results, such as h200x2.
machine() { echo "$(nvidia-smi --query-gpu=name --format=csv,noheader | awk 'NR == 1 { print tolower($2) }')x$(nvidia-smi -L | wc -l)"; }

records=$out/records
[[ " $steps " != *" records "* ]] || records=$out/records/$(machine)

# made prints the line that says which halox made a log, on what.
made() {
	local gpus="no GPU"
	! command -v nvidia-smi >/dev/null || gpus="$(nvidia-smi -L | wc -l) x $(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1), driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
	echo "# $("$bundle/halox" --version | sed 's/ version / /'), $gpus${1:+; $1}"
}

# found keeps what tests, sanitizers and soak found, where there are logs of them, next to the records.
found() {
	local log lines
	cd "$work" || return
	for log in "$out"/*.log; do
		grep -qE '^ *--- (PASS|FAIL|SKIP)|ERROR SUMMARY|RACECHECK SUMMARY' "$log" 2>/dev/null || continue
		mkdir -p "$records"
		[ -s "$records/checks.txt" ] || made >"$records/checks.txt"
		lines=$(grep -hE '^(PASS|FAIL|--- FAIL)|ERROR SUMMARY|RACECHECK SUMMARY|runs, |the run ended' "$log" | sort | uniq -c | sort -rn | head -n 20)
		printf '%s: %s passed, %s failed, %s skipped\n%s\n' "$(basename "$log" .log)" \
			"$(grep -c '^ *--- PASS' "$log")" "$(grep -c '^ *--- FAIL' "$log")" "$(grep -c '^ *--- SKIP' "$log")" "$lines" >>"$records/checks.txt"
	done
}

# limited LIMIT COMMAND...: runs it with a limit, as timeout does. A command in the foreground would put off the trap above until it ends.
limited() {
	timeout "$@" &
	wait $!
}

# job COMMAND...: runs it in parallel with others, JOBS at a time, each with another GPU first. joined waits for all.
started=() # their processes
job() {
	local jobs=${JOBS:-$(($(nproc) / 3))}
	while [ "$(jobs -rp | wc -l)" -ge "$((jobs > 1 ? jobs : 1))" ]; do sleep 0.2; done
	(
		trap ended INT TERM HUP
		gpus=$(rotated "${#started[@]}")
		[ -z "$gpus" ] || export CUDA_VISIBLE_DEVICES=$gpus
		"$@"
		exit "$failed"
	) &
	started+=($!)
}

joined() {
	local pid
	for pid in "${started[@]}"; do wait "$pid" || failed=1; done
	started=()
}

# rotated N prints the GPUs that may be used, the Nth of them first.
rotated() {
	local gpus i list=
	IFS=, read -ra gpus <<<"${CUDA_VISIBLE_DEVICES-$(nvidia-smi -L 2>/dev/null | awk '{ printf "%d,", NR - 1 }')}"
	for i in "${!gpus[@]}"; do list+=${list:+,}${gpus[($1 + i) % ${#gpus[@]}]}; done
	echo "$list"
}

# check NAME COMMAND...: runs it with a limit, keeps its log, says how it went.
check() {
	local name=$1 log
	shift
	log=$out/$name.log
	if limited "${LIMIT:-120}" "$@" >"$log" 2>&1; then
		! grep -q 'testing: warning: no tests to run' "$log" || { failed=1 && echo "FAIL  $name: there is no such test" && return; }
		echo "ok    $name $(grep -c '^ *--- PASS' "$log") passed, $(grep -c '^ *--- SKIP' "$log") skipped"
	else
		echo "FAIL  $name (exit $?)"
		tail -n 25 "$log"
		failed=1
	fi
}

# Test programs that take long, the longest first: their tests run one by one, so that several run at a time.
APART="kernels-temporal solvers solvers-scheme halo-ranks kernels-step kernels-sweep halo-packing halo"

# Tests that look at limits of time or at how much memory of a GPU is free, and those of kernels of several processes, which wait for each other and
# would take turns with all others: they run last, and alone.
ALONE="halo-ranks.TestProcesses solvers.TestFailingGPU solvers.TestCloseFreesAll solvers.TestLostProcesses"

# All test programs, each where the files that it reads lie, several at a time: what they test on GPUs.
tests() {
	export HALOX_TEST_LONG=${LONG-1} HALOX_TEST_BACKEND=${BACKEND-cuda}
	local name one asked=" " all=" "
	"$bundle/halox" devices
	tested() { # PROGRAM, or PROGRAM.TEST for one of its tests
		local program=${1%%.*} from
		from=$bundle/files/${program//-//}
		[ -d "$from" ] || from=$work
		LIMIT=${LIMIT:-1500} check "$1" env -C "$from" "$bundle/$program.test" -test.v -test.short $([ "$1" = "$program" ] || echo "-test.run=^${1#*.}\$")
	}
	for name in ${TESTS:-$(cd "$bundle" && ls -- *.test)}; do asked+="${name%.test} "; done
	for name in $APART; do
		[[ $asked == *" $name "* ]] || continue
		for one in $("$bundle/$name.test" -test.list '^Test'); do all+="$name.$one "; done
	done
	for name in $asked; do [[ " $APART " == *" $name "* ]] || all+="$name "; done
	for name in $all; do [[ " $ALONE " == *" $name "* ]] || job tested "$name"; done
	joined
	for name in $ALONE; do [[ $all != *" $name "* ]] || tested "$name"; done
	for name in $APART; do
		compgen -G "$out/$name.Test*.log" >/dev/null || continue
		cat "$out/$name".Test*.log >"$out/$name.log"
		rm -f "$out/$name".Test*.log
	done
}

# A small run of every scheme under the tools that see bad accesses and races, and on one GPU
# one of a grid of which shared memory holds a part.
PART="[127,253,123] [1,1,1]"
sanitize() {
	local cut name steps tool
	cut=$(case $(nvidia-smi -L | wc -l) in 1) echo "[1,1,1]" ;; 2 | 3) echo "[2,1,1]" ;; *) echo "[2,1,2]" ;; esac)
	for how in "memcheck baseline staged" "memcheck two-stream peer" "memcheck two-stream staged" \
		"memcheck assisted peer" "memcheck assisted staged" "memcheck fused direct" "memcheck ranks direct" "memcheck resident direct" \
		"racecheck baseline staged" "racecheck assisted peer" "racecheck ranks direct" "racecheck resident direct" \
		"memcheck resident direct $PART" "racecheck resident direct $PART" "memcheck resident/2 direct" "racecheck resident/3 direct" "memcheck blocked/3 direct"; do
		set -- $how "[37,20,23]" "$cut"
		steps=1 && [ "$2" = "${2%/*}" ] || steps=${2#*/} # between two exchanges
		name=$1-${2/\//-}-$3${6:+-part}
		job under "$name" "$1" "$bundle/halox" run heat3d.yaml \
			--set "grid.size=$4" --set stop.iterations=12 --set stop.check_every=5 --history \
			--set "boundary.y=neumann" --set exact=null --set output.picture=null --set devices.backend=cuda \
			--set "exchange.scheme=${2%/*}" --set "exchange.steps=$steps" --set "exchange.path=$3" --set "decomposition=$5" ${6:+--set devices.count=1}
	done
	job under memcheck-exchange-direct memcheck "$bundle/halo.test" -test.v -test.run 'TestExchangeCases/backend=cuda/.*/path=direct'
	passes_under memcheck passes '^TestPasses$/backend=cuda$/dims=./points=[57]$'
	passes_under racecheck passes '^TestPasses$/backend=cuda$/dims=2/points=5$'
	# racecheck does not know that a lane which arrives at an mbarrier does so for its warp: it sees kernels in which every lane does.
	passes_under racecheck passes-every-lane '^TestPassesByEveryLane$/backend=cuda$'
	local more='TestPassesComputeNorms|TestPassesBetweenMovingWalls|TestTuneKeepsToTheGhosts'
	passes_under racecheck passes-more "^($more)\$/backend=cuda\$"
	passes_under memcheck passes-more "^($more|TestPassesOfLongStars)\$/backend=cuda\$"
	for tool in memcheck racecheck; do
		ranks_under $tool puts TestPuts
		ranks_under $tool collectives TestCollectives
		ranks_under $tool matching 'TestMatching|TestGroupsMatch|TestMatchTimesOut|TestFullQueue|TestTooManyNotifications'
		ranks_under $tool messages 'TestChannels|TestValues'
	done
	joined
}

# under NAME TOOL COMMAND...: a command under a tool of compute-sanitizer, and what it found.
under() {
	check "$1" env HALOX_TEST_INSTRUMENTED=1 compute-sanitizer --tool "$2" --error-exitcode 3 "${@:3}"
	echo "      $1: $(tail -n 1 "$out/$1.log")"
}

# passes_under TOOL NAME TESTS: tests of several steps in one pass under a tool.
passes_under() {
	LIMIT=${LIMIT:-400} job under "$1-$2" "$1" "$bundle/kernels-temporal.test" -test.v -test.short -test.run "$3"
}

# ranks_under TOOL NAME TESTS: tests of ranks under a tool.
ranks_under() {
	LIMIT=${LIMIT:-400} job under "$1-ranks-$2" "$1" env -C "$bundle/files/halo/ranks" HALOX_TEST_BACKEND=cuda "$bundle/halo-ranks.test" -test.v -test.short -test.run "^($3)\$"
}

# Schemes fused and resident, against one without whole steps, on GPUs that are late or fail.
soak() {
	LIMIT=4000 check soak "$bundle/solvers.test" -test.v -test.timeout 2h -test.run 'TestSoak/backend=cuda' -soak "${SOAK:-10m}"
	grep -h 'runs, ' "$out/soak.log"
	LIMIT=${LIMIT:-400} check failing-gpu "$bundle/solvers.test" -test.v -test.run TestFailingGPU
	grep -h 'the run ended' "$out/failing-gpu.log"
}

# 512^3 heat in float64, 1000 steps, every scheme and path on 1, 2 and 4 GPUs.
table() {
	local size=${SIZE:-512} count=${STEPS:-1000}
	local gpus
	gpus=$(nvidia-smi -L | wc -l)
	mkdir -p "$out/records"
	for n in 1 2 4 8; do
		[ "$n" -le "$gpus" ] || continue
		for how in "baseline left-right staged" "two-stream left-right staged" "two-stream left-right peer" \
			"two-stream pairwise staged" "two-stream pairwise peer" "two-stream left-right direct" \
			"assisted concurrent staged" "assisted concurrent peer" "assisted concurrent direct" \
			"assisted serial staged" "assisted serial peer" "assisted serial direct"; do
			set -- $how
			[ "$n" -gt 1 ] || [ "$3 $1" = "staged baseline" ] || [ "$2 $3" = "left-right peer" ] ||
				[ "$2 $3" = "concurrent peer" ] || continue # alone, all paths are one
			name=heat3d-$size-float64-$n-$1-$2-$3
			[ "$1" != baseline ] || name=heat3d-$size-float64-$n-$1-$3
			check "$name" "$bundle/halox" run heat3d.yaml --record "$out/records/$name.json" \
				--set "grid.size=[$size,$size,$size]" --set "stop.iterations=$count" --set output.picture=null \
				--set devices.backend=cuda --set "devices.count=$n" \
				--set "exchange.scheme=$1" --set "exchange.path=$3" $([ "$1" = baseline ] || echo "--set exchange.order=$2")
		done
	done
	echo
	"$bundle/halox" results "$out"/records/heat3d-*.json || failed=1
}

# Halo exchanges of six faces over every path, and plain copies.
exchange() {
	mkdir -p "$records"
	"$bundle/halox" bench exchange --points 16,32,64,128,256,512,768 --radii 1,2,3,4 --fields 1,4,8 \
		--record "$records/exchange.json" --plot "$records/exchange.png" >"$out/exchange.log" 2>&1 || failed=1
	grep -E "^points|^[0-9]+ +1 +1 |^[0-9]+ +4 +8 " "$out/exchange.log"
}

# Packing and sending datatypes: all layouts, DDTBench both ways, the papers' figures.
packing() {
	local to=$records/packing f
	mkdir -p "$to"
	pack() { # NAME COMMAND FLAGS...
		local name=$1
		shift
		"$bundle/halox" bench "$@" --record "$to/$name.json" >"$out/$name.log" 2>&1 || { failed=1 && tail -n 5 "$out/$name.log"; }
	}
	pack pack pack --budget 3ms --unpack
	pack ddtbench pack --suites ddtbench --unpack --budget 20ms
	for f in $("$bundle/halox" bench pack --figure list | cut -d ' ' -f 1); do
		pack "$f" pack --figure "$f" --budget 5ms --plot "$to/$f.png"
	done
	pack jenkins-table-2 pack --suites jenkins --match contention --to pinned --engines tree --contend
	pack hacc-cpu pack --backend host --suites hacc --engines all
	if [ "$(nvidia-smi -L | wc -l)" -gt 1 ]; then
		for f in $("$bundle/halox" bench pingpong --figure list | cut -d ' ' -f 1); do
			pack "ping-$f" pingpong --figure "$f" --budget 5ms --plot "$to/ping-$f.png"
		done
		pack ping-wu-10-one pingpong --device-ids 0,0 --figure wu-10 --paths direct --budget 5ms
		pack ping-remote pingpong --figure wu-9 --paths peer --remote --budget 5ms
		pack ping-wu-10-cpu pingpong --backend host --figure wu-10 --paths direct --budget 50ms --no-check
		pack ping-wu-12-cpu pingpong --backend host --figure wu-12 --paths direct --budget 50ms --no-check
	fi
	grep -E "^(wu/(V|T)/)" "$out/pack.log"
	tail -n 8 "$out/pack.log" "$out/ddtbench.log"
}

# timed NAME LIMIT COMMAND...: runs it and says how many seconds it took. What the
# limit ends leaves the record of what it had, and is no failure. It returns whether
# it failed.
timed() {
	local name=$1 limit=$2 begin=$SECONDS code log=$out/$1.log
	shift 2
	limited -s INT -k 30 "$limit" "$@" >"$log" 2>&1
	code=$?
	case $code in
	0) echo "ok    $name: $((SECONDS - begin)) s" ;;
	124 | 130) echo "cut   $name: after $((SECONDS - begin)) s, with what it had" ;;
	*)
		echo "FAIL  $name (exit $code): $((SECONDS - begin)) s"
		tail -n 25 "$log"
		failed=1
		return 1
		;;
	esac
}

# has NAME: this halox has the bench of that name.
has() { "$bundle/halox" bench --help | grep -q "^  $1 "; }

# What the links carry, how fast every scheme steps, how it scales, and timelines of
# two schemes: records and pictures under records/performance.
performance() {
	local dir=$records/performance begin=$SECONDS points=${POINTS:-64,128,256,512} budget=${BUDGET:-300ms}
	local gpus halox=$bundle/halox n what watch
	gpus=$(nvidia-smi -L | wc -l)
	mkdir -p "$dir"
	for what in links latency sweep; do
		if has $what; then
			timed $what 90 "$halox" bench $what --record "$dir/$what.json" --plot "$dir/$what.png"
		else
			echo "--    $what: this halox has no such bench"
		fi
	done
	timed sweep-kinds 60 "$halox" bench sweep --stencils 9-point,25-point,13-point,19-point,27-point --points-2d 16384 --points-3d 512 \
		--record "$dir/sweep-kinds.json"
	[ ! -s "$dir/sweep-kinds.json" ] || timed roofline 20 "$halox" plot "$dir/sweep.json" "$dir/sweep-kinds.json" --kind roofline \
		--where norms= --peak "float64=${PEAK64:-34000}" --peak "float32=${PEAK32:-67000}" -o "$dir/roofline.png"
	[ ! -s "$dir/links.json" ] || timed links-matrix 20 "$halox" plot "$dir/links.json" --kind matrix -o "$dir/links-matrix.png"
	timed exchange 40 "$halox" bench exchange --points "$points" --radii 1,2 \
		--record "$dir/exchange.json" --plot "$dir/exchange.png"
	# A scheme that fails ends the bench: those of the paper are worth a run of their own.
	timed schemes-float64 150 "$halox" bench schemes --precisions float64 --points "$points" --budget "$budget" \
		--record "$dir/schemes-float64.json" ||
		timed schemes-paper 120 "$halox" bench schemes --precisions float64 --points "$points" --budget "$budget" \
			--schemes baseline,two-stream,assisted --record "$dir/schemes-paper.json"
	timed schemes-float32 60 "$halox" bench schemes --precisions float32 --points "$points" --budget "$budget" \
		--device-counts "$gpus" --record "$dir/schemes-float32.json" --plot "$dir/schemes-float32.png"
	timed schemes-slabs 75 "$halox" bench schemes --precisions float64 --points "$points" --budget "$budget" --cut slabs \
		--schemes baseline,two-stream,assisted --paths staged,peer \
		--record "$dir/schemes-slabs.json" --plot "$dir/schemes-slabs.png"
	timed schemes-stencils 120 "$halox" bench schemes --precisions float64 --points "$points" --budget "$budget" \
		--stencils 7-point,13-point,19-point --schemes baseline,two-stream,assisted,fused \
		--record "$dir/schemes-stencils.json" --plot "$dir/schemes-stencils.png"
	timed schemes-2d 60 "$halox" bench schemes --dims 2 --precisions float32 --points "${SQUARES:-1024,4096,16384}" \
		--budget "$budget" --device-counts "$gpus" --record "$dir/schemes-2d.json" --plot "$dir/schemes-2d.png"
	timed schemes-norms 60 "$halox" bench schemes --dims 2 --precisions float32 --points "${SQUARES:-1024,4096,16384}" --norms 0,1,100 \
		--schemes graph,blocked,fused,resident --paths direct --budget "$budget" --device-counts "1,$gpus" --record "$dir/schemes-norms.json"
	timed schemes-norms-3d 60 "$halox" bench schemes --precisions float64 --points "${CUBES:-256,512}" --norms 1,2,4,10,100 \
		--schemes blocked,fused --paths direct --budget "$budget" --device-counts "1,$gpus" --record "$dir/schemes-norms-3d.json"
	# Several steps between two exchanges, and several in one pass over memory.
	timed schemes-steps 60 "$halox" bench schemes --precisions float64 --points "$points" --exchange-steps 1,2,4,8 --schemes fused,blocked \
		--paths direct --budget "$budget" --device-counts "$gpus" --record "$dir/schemes-steps.json"
	timed schemes-steps-2d 60 "$halox" bench schemes --dims 2 --precisions float32 --points "${SQUARES:-1024,4096,16384}" \
		--exchange-steps 1,4,8,16 --schemes fused,blocked --paths direct --budget "$budget" --device-counts "$gpus" --record "$dir/schemes-steps-2d.json"
	timed schemes-norms-steps 40 "$halox" bench schemes --dims 2 --precisions float32 --points "${SQUARES:-1024,4096,16384}" --norms 1 \
		--exchange-steps 2,4,8 --schemes blocked --paths direct --budget "$budget" --device-counts "$gpus" --record "$dir/schemes-norms-steps.json"
	timed schemes-large 60 "$halox" bench schemes --points "${LARGE:-1024}" --schemes fused,blocked --paths direct --exchange-steps 1,4 \
		--budget "$budget" --record "$dir/schemes-large.json"
	timed schemes-steps-resident 40 "$halox" bench schemes --precisions float64 --points 64,128 --exchange-steps 1,2,3,4 --schemes resident \
		--budget "$budget" --device-counts "1,$gpus" --record "$dir/schemes-steps-resident.json"
	timed schemes-steps-resident-2d 40 "$halox" bench schemes --dims 2 --precisions float32 --points 1024 --exchange-steps 1,2,3,4 --norms 0,1,100 \
		--schemes resident --budget "$budget" --device-counts "1,$gpus" --record "$dir/schemes-steps-resident-2d.json"
	timed sweep-sums 40 "$halox" bench sweep --stencils 5-point,7-point,27-point --points-2d 16384 --points-3d 512 \
		--norms 1 --sums fast,reproducible --record "$dir/sweep-sums.json"
	timed schemes-sums 40 "$halox" bench schemes --precisions float64 --points "${SUMMED:-128,512}" --norms 0,1,100 --sums fast,reproducible \
		--schemes two-stream,fused --paths direct,peer --budget "$budget" --device-counts 1 --record "$dir/schemes-sums.json"
	for what in two-stream,assisted fused,resident; do
		timed "scaling-${what#*,}" 60 "$halox" bench scaling --precisions float64 --points "${SCALED:-256,512}" --budget "$budget" \
			--schemes "$what" --record "$dir/scaling-${what#*,}.json"
	done
	timed scaling-blocked 60 "$halox" bench scaling --precisions float64 --points "${SCALED:-256,512}" --budget "$budget" \
		--schemes blocked --exchange-steps 4,8 --record "$dir/scaling-blocked.json"
	timed scaling-blocked-slabs 60 "$halox" bench scaling --precisions float64 --points "${SCALED:-256,512}" --budget "$budget" --modes weak --cut slabs \
		--schemes blocked --exchange-steps 4,8 --record "$dir/scaling-blocked-slabs.json"
	for what in strong weak; do
		timed "scaling-$what" 20 "$halox" plot "$dir"/scaling-{assisted,resident,blocked}.json --where "mode=$what" \
			-o "$dir/scaling-$what.png"
	done
	for n in 2 4 8; do
		[ "$n" -gt "$gpus" ] || [ ! -s "$dir/schemes-float64.json" ] ||
			timed "schemes-float64-$n" 20 "$halox" plot "$dir/schemes-float64.json" --where "devices=$n" -o "$dir/schemes-float64-$n.png"
	done
	for what in two-stream assisted; do
		timed "trace-$what" 60 "$halox" run heat3d.yaml --record "$dir/trace-$what.record.json" --trace "$dir/trace-$what.json" \
			--set "grid.size=${TRACED:-[256,256,256]}" --set precision=float64 --set stop.iterations=200 --set exact=null \
			--set output.picture=null --set "devices.count=$gpus" --set "exchange.scheme=$what"
		grep "^hidden" "$out/trace-$what.log"
		timed "timeline-$what" 20 "$halox" plot "$dir/trace-$what.json" -o "$dir/trace-$what.png"
	done
	# What the clocks do while all GPUs are busy for some seconds: a line a GPU, ten times a second.
	nvidia-smi --format=csv -lms 100 >"$dir/clocks.csv" 2>&1 \
		--query-gpu=timestamp,index,clocks.sm,clocks.mem,power.draw,power.draw.instant,temperature.gpu,temperature.memory,clocks_event_reasons.active &
	watch=$!
	timed busy 60 "$halox" run heat3d.yaml --record "$dir/busy.json" --set "grid.size=${BUSY:-[512,512,$((512 * gpus))]}" \
		--set precision=float64 --set stop.iterations=4000 --set stop.check_every=4000 --set exact=null --set output.picture=null \
		--set "devices.count=$gpus" --set exchange.scheme=fused
	kill "$watch"
	echo "performance: $((SECONDS - begin)) s in all"
}

# Kernels of several steps in one pass, and how fast they are.
passes() {
	local what all log=$records/performance/passes.txt
	all=(points={5,7,13,27}/float{64,32}/{plain,moving,norms,norms-every})
	mkdir -p "$records/performance"
	made "billions of points and levels a second" >"$log"
	for what in ${PASSES:-"${all[@]}"}; do
		limited "${PASS:-120}" "$bundle/kernels-temporal.test" -test.run '^$' -test.bench "BenchmarkPasses/$what\$" -test.benchtime 1x >"$out/passes.log" 2>&1 ||
			{ failed=1 && echo "FAIL  passes $what" && tail -n 5 "$out/passes.log"; }
		awk '/Gpoint/ { for (i = 3; i < NF; i += 2) at[$(i + 1)] = $i; print $1, at["Gpoint/s"], "Gpoint/s", "weight", at["weight"] }' "$out/passes.log" | sed 's/^BenchmarkPasses.//; s/-[0-9]* / /' | tee -a "$log"
	done
}

# What bounds the kernels of several steps in one pass: the counters of one launch of each, several at a time on other GPUs.
counters() {
	local n=0 what all gpus to=$records/performance
	gpus=$(nvidia-smi -L | wc -l)
	mkdir -p "$to"
	counted() { # NUMBER BENCHMARK: the launch is the fourth one, after those that warm up
		local log=$out/counters-$1.log
		CUDA_VISIBLE_DEVICES=$(($1 % gpus)) limited 200 ncu --clock-control none --kernel-name "regex:^${2##*/}" --launch-skip 3 --launch-count 1 --print-details all --print-metric-name name \
			--section SpeedOfLight --section ComputeWorkloadAnalysis --section MemoryWorkloadAnalysis --section SchedulerStats --section WarpStateStats --section LaunchStats --section Occupancy \
			"$bundle/kernels-temporal.test" -test.run '^$' -test.bench "$2" -test.benchtime 1x >"$log" 2>&1 || { failed=1 && echo "FAIL  counters of $2" && tail -n 5 "$log"; }
	}
	ncu --list-sections >/dev/null 2>&1 # the first call of all copies files that calls at the same time would miss
	all=(points=7/float{64,32}/plain/depth=4/sides=fixed/pass_planes points=5/float64/plain/depth=10/sides=fixed/pass_strips points=5/float32/plain/depth=12/sides=fixed/pass_strips
		points=13/float64/plain/depth=2/sides=fixed/pass_stars points=27/float64/plain/depth=2/sides=fixed/pass_sums)
	for what in ${PASSES:-"${all[@]}"}; do
		counted "$n" "BenchmarkPasses\$/${what//\//\$/}" &
		n=$((n + 1))
	done
	wait
	made "ncu --clock-control none, one launch of each" >"$to/pass-counters.txt"
	for ((what = 0; what < n; what++)); do
		awk '
			/^ *pass.*Context/ { print $1 }
			/^Benchmark/ { print $1, $3, $4 }
			$1 ~ /^(gpu__time_duration.sum|gpu__dram_throughput|lts__throughput|lts__t_sector_hit_rate|l1tex__data_pipe_lsu_wavefronts.avg|sm__inst_issued.avg|sm__inst_executed_pipe_(fp64|fma|alu|lsu)|smsp__warps_(active|eligible).avg.per_cycle_active|smsp__average_warps_issue_stalled|launch__registers_per_thread)/ && !seen[$1]++ {
				if ($1 !~ /sustained_active/ && $NF != 0) print "   ", $1, $NF, $(NF - 1)
			}' "$out/counters-$what.log" >>"$to/pass-counters.txt"
	done
	cat "$to/pass-counters.txt"
}

# Runs of scheme blocked that take some five seconds: microseconds a step, and medians of the clock and the power of GPUs that are at work.
seconds() {
	local to=$records/performance gpus n watch most
	gpus=$(nvidia-smi -L | wc -l)
	mkdir -p "$to"
	made "runs of scheme blocked; us per step, seconds of all steps, MHz and W while GPUs work" >"$to/seconds.txt"
	watched() { # NAME CONFIG SIZE PRECISION GPUS STEPS ITERATIONS: STEPS are those between two exchanges
		nvidia-smi --format=csv,noheader,nounits -lms 100 --query-gpu=clocks.sm,power.draw.instant >"$out/watched" &
		watch=$!
		timed "seconds-$1-$5" 60 "$bundle/halox" run "$bundle/$2.yaml" --record "$to/seconds-$1-$5.json" --set "grid.size=$3" --set "precision=$4" \
			--set "stop.iterations=$7" --set "stop.check_every=$7" $([ "$2" = heat2d ] || echo --set exact=null) --set output.picture=null --set devices.backend=cuda --set "devices.count=$5" \
			--set exchange.scheme=blocked --set "exchange.steps=$6" $([ "$5" = 1 ] || echo "--set decomposition=[1,1,$5]")
		kill "$watch"
		wait "$watch" 2>/dev/null
		most=$(cut -d, -f2 "$out/watched" | sort -n | tail -n 1)
		at_work() { awk -F, -v most="$most" -v of="$1" '$2 > 0.8 * most { print $of + 0 }' "$out/watched" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
		"$bundle/halox" results "$to/seconds-$1-$5.json" --format csv | awk -F, -v name="$1" -v gpus="$5" -v steps="$6" -v medians="$(at_work 1) MHz $(at_work 2) W" '
			NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{ print name, gpus, "GPUs", steps, "steps between exchanges", $at["step (us)"], "us", $at["loop (s)"], "s", medians }' >>"$to/seconds.txt"
	}
	watched 7-points heat3d "[512,512,512]" float64 1 4 "${ITERATIONS:-18000}"
	watched 7-points-float32 heat3d "[768,768,768]" float32 1 4 "${ITERATIONS:-8000}"
	watched 5-points heat2d "[16384,16384]" float64 1 8 "${ITERATIONS:-22000}"
	watched 5-points-float32 heat2d "[16384,16384]" float32 1 8 "${ITERATIONS:-40000}"
	for n in 2 4 8; do
		[ "$n" -le "$gpus" ] || continue
		watched 7-points heat3d "[512,512,512]" float64 "$n" 4 "${ITERATIONS:-$((15000 * n))}"
		watched 7-points-each heat3d "[512,512,$((512 * n))]" float64 "$n" 4 "${ITERATIONS:-17000}"
	done
	cat "$to/seconds.txt"
}

# The examples, each twice: what they print.
examples() {
	local turn n log=$records/examples.txt
	mkdir -p "$records"
	made "each twice" >"$log"
	example() { # NAME DEVICES SIZE STEPS SCHEME
		limited 60 "$bundle/examples/$1" --devices "$2" --size "$3" --steps "${EXAMPLE_STEPS:-$4}" --scheme "$5" >>"$log" 2>"$out/example.log" ||
			{ failed=1 && echo "FAIL  example $*" && tail -n 5 "$out/example.log"; }
	}
	for turn in 1 2; do
		for n in baseline two-stream resident; do example lbm 1 192 300 "$n"; done
		example grayscott 1 8192 600 baseline
		for n in 1 2 4 8; do
			[ "$n" -le "$(nvidia-smi -L | wc -l)" ] || continue
			example wave "$n" 512 300 fused
			example lbm "$n" "192x192x$((192 * n))" 300 fused
			example lbm "$n" 64x128x128 3000 fused
			example grayscott "$n" 8192 600 fused
			example acoustic "$n" 4096 1000 fused
		done
	done
	cat "$log"
}

# What step auto runs: EXAMPLE or CONFIG, /POINTS along each axis (of an example also of all, as 192x192x384) instead of its default size, and +steps for
# exchange.steps: auto. The first ones are those that auto once chose badly.
auto_problems="lbm/192 grayscott/2048 heat3d/256+steps lbm/192x192x384 lbm grayscott wave acoustic heat2d heat3d laplace2d laplace3d
	wave/256 acoustic/2048 heat3d/256 laplace2d/2048"

# rate PROBLEM DEVICES SCHEME STEPS: runs it, and prints the scheme that ran and the updates in a second; of a scheme that
# does not suit the problem nothing. It fails if the run fails.
rate() {
	local name=${1%+steps} log=$out/auto.log size points
	size=${name#*/}
	local flags=(--backend "$backend" --devices "$2" --scheme "$3" --steps "$4")
	[ "$size" = "$name" ] || flags+=(--size "$size")
	name=${name%/*}
	if [ -x "$bundle/examples/$name" ]; then
		set -- "$1" limited 60 "$bundle/examples/$name" "${flags[@]}"
	else
		flags=(--record "$out/auto.json" --set "devices.backend=$backend" --set "devices.count=$2" --set "exchange.scheme=$3"
			--set "stop.iterations=$4" --set stop.tolerance=null --set output.picture=null)
		[ "$name" = heat2d ] || flags+=(--set exact=null)
		[ "$1" = "${1%+steps}" ] || flags+=(--set exchange.steps=auto)
		points=$size,$size
		[ "$name" = "${name%3d}" ] || points+=,$size
		[[ "$1" != */* ]] || flags+=(--set "grid.size=[$points]")
		set -- "$1" limited 60 "$bundle/halox" run "$bundle/$name.yaml" "${flags[@]}"
	fi
	if ! "${@:2}" >"$log" 2>&1; then
		grep -q 'does not suit' "$log" && return
		echo "FAIL  ${*:2}" >&2
		tail -n 5 "$log" >&2
		return 1
	fi
	if [ -x "$bundle/examples/$name" ]; then
		sed -n 's|.* scheme \([a-z-]*\): \(.*\) updates/s$|\1 \2|p' "$log"
	else
		"$bundle/halox" results "$out/auto.json" --format csv | awk -F, '
			NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{ print $at["scheme"], $at["updates (1/s)"] }'
	fi
	grep -h '^tried' "$log" >>"$out/auto.tried" || true
}

# auto compares what auto chooses with the best scheme. A first run by auto makes the trials. Then auto and all schemes
# run for some 0.3 s each. Those within a tenth of the best run twice more, in turns, and twice again if auto seems slow.
# The rate of each is its median. BACKEND and COUNTS name another backend and other numbers of devices.
auto() {
	local LC_ALL=C backend=${BACKEND-cuda} counts="1 2" begin=$SECONDS to=$records problem devices scheme turn turns
	local chosen speed steps order trials limit rates=$out/auto.rates
	local schemes=${SCHEMES:-baseline two-stream assisted graph blocked fused ranks resident}
	[ "$backend" != cuda ] || [ "$(nvidia-smi -L | wc -l)" -ge 2 ] || counts=1
	mkdir -p "$to"
	made "scheme auto and the best one: medians in G updates/s; trials: seconds of the trials in the first run" >"$to/auto.txt"
	echo "problem,GPUs,scheme,turn,updates (1/s)" >"$to/auto.csv"
	: >"$out/auto.tried"
	printf '%-20s %4s  %-10s %9s  %-10s %9s %6s  %s\n' problem GPUs auto rate best rate ratio "trials s" | tee -a "$to/auto.txt"
	HALOX_CACHE=$(mktemp -d)
	export HALOX_CACHE
	for devices in ${COUNTS:-$counts}; do
		limit=$((SECONDS + ${AUTO_TIME:-240}))
		for problem in ${PROBLEMS:-$auto_problems}; do
			if [ "$SECONDS" -ge "$limit" ]; then
				echo "--    $problem on $devices: no time left" | tee -a "$to/auto.txt"
				continue
			fi
			: >"$rates"
			echo "# $problem on $devices" >>"$out/auto.tried"
			rate "$problem" "$devices" auto 100 >"$out/auto.line" || { failed=1 && continue; }
			read -r chosen speed <"$out/auto.line"
			trials=$(sed -n 's/^tried the schemes for \([0-9.]*\) s.*/\1/p' "$out/auto.log" | tail -n 1)
			steps=$(awk -v rate="$speed" -v points="$(auto_points "$problem")" -v s="${AUTO_RUN:-0.3}" 'BEGIN {
				n = int(s * rate / points); print (n < 100 ? 100 : n > 200000 ? 200000 : n) }')
			order="auto $schemes" turns=3
			for ((turn = 1; turn <= turns; turn++)); do
				for scheme in $order; do
					rate "$problem" "$devices" "$scheme" "$steps" >"$out/auto.line" || { failed=1 && continue; }
					read -r chosen speed <"$out/auto.line" || continue
					[ "$scheme" = auto ] || chosen=$scheme
					echo "$scheme $chosen $turn $speed" >>"$rates"
					echo "$problem,$devices,$scheme,$turn,$speed" >>"$to/auto.csv"
				done
				order=$(awk '$4 > best && $1 != "auto" { best = $4 } { at[$1] = $4 }
					END { print "auto"; for (s in at) if (s != "auto" && at[s] > 0.9 * best) print s }' "$rates" | sort)
				[ $((turn % 2)) = 0 ] || order=$(tac <<<"$order")
				[ "$turn" != 3 ] || ! auto_line "$problem" "$devices" "$trials" | grep -q slow || turns=5
			done
			auto_line "$problem" "$devices" "$trials" | tee -a "$to/auto.txt" | tee "$out/auto.line"
			! grep -q slow "$out/auto.line" || failed=1
		done
	done
	rm -rf "$HALOX_CACHE"
	unset HALOX_CACHE
	cp "$out/auto.tried" "$to/auto-tried.txt"
	rm -f "$out"/auto.{json,line,rates,tried,log}
	echo "auto: $((SECONDS - begin)) s in all"
}

# auto_points PROBLEM prints how many points the problem has that was run last.
auto_points() {
	if [ -x "$bundle/examples/$(sed 's|[/+].*||' <<<"$1")" ]; then
		sed -n 's/.* steps of \(.*\) points on .*/\1/p' "$out/auto.log"
	else
		sed -n 's/^problem *[a-z0-9]* \([0-9 x]*\),.*/\1/p' "$out/auto.log"
	fi | awk -F x '{ n = 1; for (i = 1; i <= NF; i++) n *= $i; print n }'
}

# auto_line PROBLEM DEVICES TRIALS prints a line of the table.
auto_line() {
	sort -k1,1 -k4,4g "$rates" | awk -v problem="$1" -v devices="$2" -v trials="$3" '
		{ all[$1, ++n[$1]] = $4; if ($1 == "auto") chosen = chosen ~ "(^|,)" $2 "(,|$)" ? chosen : chosen (chosen ? "," : "") $2 }
		END {
			for (s in n) {
				k = n[s]
				median[s] = k % 2 ? all[s, (k + 1) / 2] : (all[s, k / 2] + all[s, k / 2 + 1]) / 2
				if (s != "auto" && k > 1 && median[s] > median[best]) best = s
			}
			ratio = median[best] > 0 ? median["auto"] / median[best] : 0
			printf "%-20s %4d  %-10s %9.4g  %-10s %9.4g %6.3f  %s%s%s\n", problem, devices, chosen, median["auto"] / 1e9, best,
				median[best] / 1e9, ratio, trials, (ratio < 0.97 ? "  slow" : ""), (trials > 3 ? "  long trials" : "")
		}'
}

# equations runs equations from config files on one GPU next to what they are compared with, three times in turns: the
# Laplacian next to solver heat, div(kappa, u) with a source next to the driver's copy, and two samples next to the example
# programs. CUBE, SQUARE, STEPS, SCHEMES, DEVICES and BACKEND name other sizes, steps, schemes, devices and another backend.
equations() {
	local LC_ALL=C cube=${CUBE:-512} square=${SQUARE:-8192} begin=$SECONDS to=$records backend=${BACKEND-cuda} count=${DEVICES:-1} scheme turn
	local common="grid: {size: [$cube, $cube, $cube]}"
	mkdir -p "$to"
	: >"$out/equations.rates"
	{
		echo "solver: equation" && echo "$common"
		echo "fields: {u: {initial: x*y*z}}" && echo "equations: {u: lap(u)}" && echo "time: {dt: auto}"
	} >"$out/text.yaml"
	{
		echo "solver: heat" && echo "$common" && echo "initial: x*y*z"
		echo "boundary: {x: {dirichlet: 0}, y: {dirichlet: 0}, z: {dirichlet: 0}}"
	} >"$out/heat.yaml"
	{
		echo "solver: equation" && echo "$common"
		echo "fields: {u: {initial: x*y*z}}" && echo "equations: {u: lap(u) + sin(3*x)}" && echo "time: {dt: 1.0e-8}"
	} >"$out/source.yaml"
	{
		echo "solver: equation" && echo "$common" && echo "constants: {kappa: 1 + 0.5*sin(7*x*y*z)}"
		echo "fields: {u: {initial: x*y*z}}" && echo "equations: {u: 'div(kappa, u) + sin(3*x)'}" && echo "time: {dt: 1.0e-8}"
	} >"$out/varied.yaml"
	ran() { # CASE SIDE FILE SCHEME STEPS FLAGS...
		"$bundle/halox" run "$3" --record "$out/equation.json" --set "devices.backend=$backend" --set "devices.count=$count" --set precision=float64 \
			--set "exchange.scheme=$4" --set "stop.iterations=$5" "${@:6}" >"$out/equation.log" 2>&1 || { said "$1" "$4"; return; }
		"$bundle/halox" results "$out/equation.json" --format csv | awk -F, -v of="$1 $4 $2" '
			NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{ print of, $at["updates (1/s)"] }' >>"$out/equations.rates"
		rm -f "$out/equation.json"
	}
	example_ran() { # NAME SIZE SCHEME STEPS
		"$bundle/examples/$1" --backend "$backend" --devices "$count" --size "$2" --scheme "$3" --steps "$4" >"$out/equation.log" 2>&1 || { said "$1" "$3"; return; }
		sed -n "s|.* scheme [a-z-]*: \(.*\) updates/s\$|$1 $3 other \1|p" "$out/equation.log" >>"$out/equations.rates"
	}
	said() { # CASE SCHEME
		grep -q 'does not suit' "$out/equation.log" && return
		failed=1
		echo "FAIL  $1 by $2: $(tail -n 1 "$out/equation.log")"
	}
	for turn in 1 2 3; do
		for scheme in ${SCHEMES:-baseline two-stream assisted graph blocked fused resident}; do
			ran lap file text.yaml "$scheme" "${STEPS:-400}"
			ran lap other heat.yaml "$scheme" "${STEPS:-400}"
		done
		ran source file source.yaml fused "${STEPS:-400}"
		ran source other heat.yaml fused "${STEPS:-400}"
		ran varied file varied.yaml fused "${STEPS:-400}"
		timed copy 60 "$bundle/halox" bench sweep --stencils 7-point --points-3d "$cube" --precisions float64 --norms 0 --backend "$backend" \
			--record "$out/copy.json" >/dev/null
		"$bundle/halox" results "$out/copy.json" --format csv | awk -F, '
			NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{ print "varied fused other", 1e9 * $at["copy_rate (GB/s)"] / 24 }' >>"$out/equations.rates" # u, kappa, and u again
		rm -f "$out/copy.json"
		ran grayscott file "$bundle/grayscott.yaml" fused "${STEPS:-400}" --set "grid.size=[$square,$square]" --set output.picture=null
		example_ran grayscott "$square" fused "${STEPS:-400}"
		ran wave file "$bundle/wave.yaml" fused "${STEPS:-400}" --set "grid.size=[$cube,$cube,$cube]" --set output.picture=null
		example_ran wave "$cube" fused "${STEPS:-400}"
	done
	made "medians of three runs in G updates/s; other: solver heat, the copy rate at 24 bytes per point, the example" >"$to/equations.txt"
	sort -k1,2 -k3,3 -k4,4g "$out/equations.rates" | awk '
		{ k = $1 " " $2; if (!(k in seen)) { seen[k] = 1; order[++m] = k }; all[k, $3, ++n[k, $3]] = $4 }
		function median(k, side) { return all[k, side, int((n[k, side] + 1) / 2)] / 1e9 }
		BEGIN { printf "%-10s %-10s %9s %9s %6s\n", "case", "scheme", "file", "other", "ratio" }
		END {
			for (i = 1; i <= m; i++) {
				k = order[i]; split(k, name, " "); f = median(k, "file"); o = median(k, "other")
				printf "%-10s %-10s %9.4g %9.4g %6.3f\n", name[1], name[2], f, o, (o > 0 ? f / o : 0)
			}
		}' | tee -a "$to/equations.txt"
	echo "equations: $((SECONDS - begin)) s in all"
}

# What pages compare between versions: this halox and the one before it in turns, the second time in the other order.
turns() {
	local turn program version counts to=$records-turns
	mkdir -p "$to"
	for turn in 1 2; do
		for program in $( ([ -z "${BEFORE:-}" ] || echo "$BEFORE"; echo "$bundle/halox") | if [ "$turn" = 1 ]; then cat; else tac; fi); do
			version=$("$program" --version | awk '{ print $3 }')-$turn
			counts=--device-counts
			"$program" bench schemes --help | grep -q -e "$counts" || counts=--devices # before 0.4.0
			timed "schemes-$version" 60 "$program" bench schemes "$counts" 2 --precisions float64 --points 64,128,256,512 --budget 40ms --record "$to/schemes-$version.json"
			timed "exchange-$version" 20 "$program" bench exchange --devices 2 --points 64,128,256 --record "$to/exchange-$version.json"
			timed "sweep-$version" 30 "$program" bench sweep --stencils 5-point,7-point,13-point,27-point --points-2d 8192 --points-3d 512 --budget 25ms --record "$to/sweep-$version.json"
		done
	done
	timed schemes-one 60 "$bundle/halox" bench schemes --device-counts 1 --precisions float64,float32 --points 64,128,256,512 \
		--schemes baseline,fused,resident --budget 60ms --record "$to/schemes-one.json"
}

# part STEP SECONDS: does a step, and says how long it may take and how long it took.
part() {
	local begin=$SECONDS
	echo "-- $1: some $2 s on 2 H200"
	"$1"
	echo "-- $1: $((SECONDS - begin)) s"
}

# All that the pages say in numbers. The seconds are what the parts took.
records() {
	local BUDGET=${BUDGET:-100ms}
	part exchange 55
	part packing 165
	part performance 320
	part examples 90
	[ "$(nvidia-smi -L | wc -l)" -lt 2 ] || { part turns 105 && part networks 85; }
}

# bench NAME ARGUMENT...: a bench with its record and its plot.
bench() {
	local name=$1
	shift
	mkdir -p "$out/records"
	if ! limited "${LIMIT:-900}" "$bundle/halox" bench "$@" --record "$out/records/$name.json" >"$out/$name.log" 2>&1; then
		echo "FAIL  bench $name"
		tail -n 5 "$out/$name.log"
		failed=1
	fi
}

# plot NAME KIND FILE: draws a record.
plot() { "$bundle/halox" plot "$out/records/$1.json" --kind "$2" -o "$out/records/$3.svg" || failed=1; }

# What every link carries; and, on one pair in turns, what a plain CUDA program gets out of it.
links() {
	bench links links --backend cuda
	plot links links links
	plot links matrix links-matrix
	tail -n 3 "$out/links.log"
	against_probe
}

# nvcc is on the path, or where the toolkit is.
find_nvcc() { command -v nvcc || ls -d /usr/local/cuda*/bin/nvcc 2>/dev/null | tail -n 1; }

against_probe() {
	local nvcc from=${FROM:-0} to=${TO:-1}
	nvcc=$(find_nvcc)
	if [ -z "$nvcc" ]; then
		echo "no nvcc here: not compared with a plain CUDA program"
		return
	fi
	if [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
		echo "one GPU here: no link to compare with a plain CUDA program"
		return
	fi
	if ! "$nvcc" -O2 -std=c++17 -o "$out/linkprobe" "$bundle/linkprobe.cu" >"$out/nvcc.log" 2>&1; then
		echo "FAIL  build linkprobe"
		tail -n 5 "$out/nvcc.log"
		failed=1
		return
	fi
	for turn in 1 2; do
		if ! limited 300 "$out/linkprobe" "$from" "$to" >"$out/probe-$turn.txt" 2>"$out/probe.log"; then
			echo "FAIL  linkprobe"
			cat "$out/probe.log"
			failed=1
			return
		fi
		bench "links-turn-$turn" links --backend cuda --device-ids "$from,$to" --paths peer --modes one-way,both-ways
		"$bundle/halox" results "$out/records/links-turn-$turn.json" --format csv >"$out/links-turn-$turn.csv"
	done
	rm -f "$out/linkprobe"
	ratios "$from" "$to" | tee "$out/ratios.txt"
}

# ratios FROM TO: the mean of both turns of each, halox's rate over the probe's, and which of
# them differ by more than 3%.
ratios() {
	awk -v from="$1" -v to="$2" '
		FILENAME ~ /probe-/ { at = $1 " " $2; if (!(at in probe)) order[++n] = at; probe[at] += $3 / 2; next }
		{ count = split($0, cell, ",") }
		FNR == 1 { delete place; for (i = 1; i <= count; i++) place[cell[i]] = i; next }
		{
			path = cell[place["path"]]; mode = cell[place["mode"]]
			if (cell[place["from"]] != from) next
			if (path == "device") mode = "device"
			else if (path != "peer" || cell[place["to"]] != to) next
			halox[mode " " cell[place["bytes"]]] += cell[place["time (us)"]] / 2
		}
		END {
			printf "%-10s %10s %12s %12s %8s\n", "mode", "bytes", "probe us", "halox us", "rate of halox over the probe"
			for (i = 1; i <= n; i++) {
				if (!(halox[order[i]] > 0)) continue
				split(order[i], part, " ")
				ratio = probe[order[i]] / halox[order[i]]
				off = ratio < 0.97 || ratio > 1.03
				printf "%-10s %10d %12.3f %12.3f %8.3f%s\n", part[1], part[2], probe[order[i]], halox[order[i]], ratio, off ? "  outside 3%" : ""
				all++
				if (off) outside = outside sprintf("%s %s %d (%.3f)", outside ? "," : "", part[1], part[2], ratio)
			}
			if (!all) print "nothing to compare"
			else print outside ? "outside 3%:" outside : "all " all " within 3%"
		}' "$out"/probe-1.txt "$out"/probe-2.txt "$out"/links-turn-1.csv "$out"/links-turn-2.csv
}

# Launches, events, flags and small messages.
latency() {
	bench latency latency --backend cuda
	plot latency latency latency
	cat "$out/latency.log"
}

# Sweeps of every size on one GPU.
sweep() {
	bench sweep sweep --backend cuda
	plot sweep sweep sweep
	cat "$out/sweep.log"
}

# Ranks on the device, with a plot for each thing that is measured; and what NVSHMEM takes on two GPUs of this host.
# Checkpoints every 1,000 steps and statistics every 100 steps of 512^3 on the first two GPUs, and reading a checkpoint of 1024^3.
checkpoint() {
	local gpus folder=ram # a name for the record, which must not have paths
	ln -sfn "${FOLDER:-/dev/shm}" $folder
	gpus=$(($(nvidia-smi -L | wc -l) > 1 ? 2 : 1))
	LIMIT=60 bench checkpoint checkpoint --backend cuda --device-counts "$gpus" --precisions float64 --points "${SIZE:-512}" \
		--what steps,write,read --schemes fused,blocked --folder "$folder" --budget 6s
	LIMIT=30 bench statistics checkpoint --backend cuda --device-counts "$gpus" --precisions float64 --points "${SIZE:-512}" \
		--what statistics --every 100 --schemes fused,blocked --budget 2s
	plot checkpoint checkpoint checkpoint
	plot checkpoint slowdown checkpoint-steps
	LIMIT=60 bench checkpoint-1024 checkpoint --backend cuda --device-counts "$gpus" --precisions float64 --points "$((2 * ${SIZE:-512}))" \
		--what read --folder "$folder" --budget 6s
	cat "$out/checkpoint.log" "$out/statistics.log" "$out/checkpoint-1024.log"
}

ranks() {
	local what compute
	mkdir -p "$records"
	timed ranks 400 "$bundle/halox" bench ranks --record "$records/ranks.json"
	for what in "put and notify" packet "one way" broadcast reduce allreduce channel "channel one way" \
		"put and notify by proxy" "one way by proxy"; do
		grep -q "^$what  " "$out/ranks.log" || continue # two GPUs are needed for some
		timed "plot-${what// /-}" 20 "$bundle/halox" plot "$records/ranks.json" --kind ranks --where "what=$what" -o "$records/ranks-${what// /-}.png"
	done
	for compute in newton copy; do
		timed "plot-overlap-$compute" 20 "$bundle/halox" plot "$records/ranks.json" --kind overlap --where what=overlap --where "computing=$compute" -o "$records/ranks-overlap-$compute.png"
	done
	cat "$out/ranks.log"
	against_nvshmem
	applications
}

# The examples by device ranks: what they print.
applications() {
	local n log=$records/device-ranks.txt
	mkdir -p "$records"
	made >"$log"
	application() { # NAME FLAGS...
		echo "$ $*" >>"$log"
		limited 300 "$bundle/examples/$1" --backend cuda "${@:2}" >>"$log" 2>"$out/application.log" ||
			{ failed=1 && echo "FAIL  application $*" && tail -n 5 "$out/application.log"; }
	}
	for n in 1 2 4; do
		[ "$n" -le "$(nvidia-smi -L | wc -l)" ] || continue
		application reduction --devices "$n" --iterations 100 --samples 20
		application reduction --devices "$n" --iterations 100 --samples 20 --numbers 0
		application power --devices "$n" --iterations 100 --samples 20 --side 2
		application particles --devices "$n" --size thesis --samples 20
		application diffusion --devices "$n" --size thesis --samples 20 --iterations 200
		application particles --devices "$n" --size full --samples 5 --iterations 20 --verify=false
		application diffusion --devices "$n" --size full --samples 5 --iterations 20 --verify=false
		[ "$n" = 2 ] || application power --devices "$n" --size 300000 --samples 5 --iterations 20 --verify=false
	done
	cat "$log"
}

# Litmus tests of ranks on all GPUs. Where one fails the log has its seed.
ranks-litmus() {
	LIMIT=${LIMIT:-90000} check ranks-litmus "$bundle/halox" verify heat3d.yaml --set devices.backend=cuda --ranks-for "${LITMUS:-10m}"
	grep -h '^litmus tests of ranks' "$out/ranks-litmus.log"
}

against_nvshmem() {
	local nvcc at
	nvcc=$(find_nvcc)
	at=$(python3 -c 'import nvidia.nvshmem as n; print(list(n.__path__)[0])' 2>/dev/null)
	if [ -z "$nvcc" ] || [ -z "$at" ] || [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
		echo "no nvcc, no NVSHMEM or one GPU here: not compared with NVSHMEM"
		return
	fi
	if ! "$nvcc" -O2 -std=c++17 -arch=native -rdc=true -I"$at/include" -L"$at/lib" -o "$out/nvshmem" "$bundle/nvshmem.cu" \
		-l:libnvshmem_host.so.3 -lnvshmem_device -lcuda >"$out/nvcc.log" 2>&1; then
		echo "FAIL  build nvshmem"
		tail -n 5 "$out/nvcc.log"
		failed=1
		return
	fi
	made >"$records/nvshmem.txt"
	# The processes find each other over a socket of this host; multicast of NVLink is left off.
	if ! LD_LIBRARY_PATH="$at/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=lo NVSHMEM_DISABLE_NVLS=1 \
		NVSHMEM_REMOTE_TRANSPORT=none limited 120 "$out/nvshmem" >>"$records/nvshmem.txt" 2>"$out/nvshmem.log"; then
		echo "FAIL  nvshmem"
		tail -n 10 "$out/nvshmem.log"
		failed=1
	fi
	rm -f "$out/nvshmem"
	cat "$records/nvshmem.txt"
}

# wall NAME TIMES COMMAND...: runs it so often, and adds to start.times a line for each: the name and the seconds.
wall() {
	local name=$1 times=$2 begin end i
	shift 2
	for i in $(seq "$times"); do
		begin=$EPOCHREALTIME
		if ! limited 60 "$@" >"$out/start.log" 2>&1; then
			echo "FAIL  start: $name"
			tail -n 5 "$out/start.log"
			failed=1
			return 1
		fi
		end=$EPOCHREALTIME
		awk -v name="$name" -v a="$begin" -v b="$end" 'BEGIN { print name "\t" b - a }' >>"$out/start.times"
		grep -h '^seconds\|^tried' "$out/start.log" | sed "s/^/$name $i: /" >>"$out/start.notes"
	done
}

# cold RUN...: runs it without anything that a run before has left: caches of halox, of the driver and of NVRTC.
cold() {
	local cache
	cache=$(mktemp -d)
	env HALOX_CACHE="$cache/halox" CUDA_CACHE_PATH="$cache/cuda" CUDA_CACHE_DISABLE=1 "$@"
	set -- $?
	rm -rf "$cache"
	return "$1"
}

# How long a command takes from its start to its end: medians, in seconds.
start() {
	local LC_ALL=C nvcc cache name run
	nvcc=$(find_nvcc)
	rm -f "$out"/start.times "$out"/start.notes
	run=("$bundle/halox" run heat3d.yaml --set "grid.size=[64,64,64]" --set stop.iterations=20 --set exact=null
		--set output.picture=null --set devices.backend=cuda --set exchange.scheme=auto)
	if [ -z "$nvcc" ]; then
		echo "no nvcc here: not compared with a plain CUDA program"
	elif ! "$nvcc" -O2 -std=c++17 -o "$out/contexts" "$bundle/contexts.cu" -lcuda >"$out/nvcc.log" 2>&1; then
		echo "FAIL  build contexts"
		tail -n 5 "$out/nvcc.log"
		failed=1
	else
		"$out/contexts" >/dev/null # the first of all also wakes the GPUs
		wall "plain CUDA program" 5 "$out/contexts"
		echo "plain CUDA program: cuInit, contexts and release took $(cat "$out/start.log") ms the last time" >>"$out/start.notes"
		rm -f "$out/contexts"
	fi
	wall "halox devices" 5 "$bundle/halox" devices
	export -f cold
	wall "halox run, cold" 3 bash -c 'cold "$@"' bash "${run[@]}"
	cache=$(mktemp -d)
	HALOX_CACHE=$cache wall "halox run, filling the cache" 1 "${run[@]}"
	HALOX_CACHE=$cache wall "halox run, warm" 5 "${run[@]}"
	rm -rf "$cache"
	mkdir -p "$records"
	{
		made
		awk -F '\t' '
			{ if (!($1 in n)) order[++names] = $1; at[$1, ++n[$1]] = $2 }
			END {
				printf "%-30s %6s %8s %8s %8s\n", "", "times", "median", "least", "most"
				for (k = 1; k <= names; k++) {
					name = order[k]; count = n[name]
					for (i = 1; i <= count; i++) v[i] = at[name, i]
					for (i = 2; i <= count; i++) # sorted
						for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
					printf "%-30s %6d %8.3f %8.3f %8.3f\n", name, count, v[int((count + 1) / 2)], v[1], v[count]
				}
			}' "$out/start.times"
		echo
		cat "$out/start.notes"
	} | tee "$records/start.txt"
	rm -f "$out"/start.times "$out"/start.notes "$out"/start.log
}

# launcher N prints how N processes are started here.
launcher() {
	local flags=
	! mpirun --version 2>&1 | grep -qi 'open.*mpi\|openrte\|prte' || flags="--bind-to none --allow-run-as-root"
	[ -z "$flags" ] || command -v ssh >/dev/null || command -v rsh >/dev/null || flags="$flags --mca plm isolated"
	echo "mpirun -n $1 $flags"
}

# hosted: halox as one of several processes, each on a host of its own, as NCCL sees it.
export BUNDLE=$bundle
hosted() { NCCL_HOSTID="host-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" "$BUNDLE/halox" "$@"; }
export -f hosted

# Messages between processes: trials of all networks, the field over each, failures, and how fast.
networks() {
	local dir=$records/networks gpus network start how turn runs some devices
	gpus=$(nvidia-smi -L | wc -l)
	if ! command -v mpirun >/dev/null || [ "$gpus" -lt 2 ]; then
		echo "no mpirun or one GPU here: no messages between processes of GPUs"
		return
	fi
	mkdir -p "$dir"
	usable() { # NETWORK: whether the trials have found it right
		grep -q "^$1 .*GB/s" "$dir/trials.txt" || { echo "--    network $1 is not available here" && false; }
	}
	HALOX_CACHE=$(mktemp -d)
	export HALOX_CACHE
	start=$(launcher 2)
	# The trials, as a user makes them; and what carries messages of two GPUs, compared with MPI alone between host memories and the copies
	# to and from pinned memory: the pinned path wants 80% of the slower of these from 1 MiB on.
	timed networks-plan 120 $start "$bundle/halox" plan heat3d.yaml --set devices.count=1 --set exact=null
	sed -n '/^networks between/,/^$/p' "$out/networks-plan.log" | tee "$dir/trials.txt"
	for network in mpi mpi-device nccl ipc; do
		usable $network || continue
		timed "networks-links-$network" 120 $start "$bundle/halox" bench links --backend cuda --exchange-network "$network" \
			--sizes 8,64KiB,1MiB,4MiB,16MiB,64MiB --modes one-way,both-ways --record "$dir/links-$network.json" &&
			grep -E '^(from|[0-9])' "$out/networks-links-$network.log"
	done
	# Datatypes by the protocol of Wu et al. between processes, and packed and sent by MPI.
	for how in "" "--remote"; do
		usable ipc || continue
		timed "networks-pingpong${how:+-remote}" 120 $start "$bundle/halox" bench pingpong --backend cuda --figure wu-10 --budget 5ms $how \
			--record "$dir/pingpong${how:+-remote}.json" --plot "$dir/pingpong${how:+-remote}.png" && grep -E '^(wu|workload|ipc|mpi)' "$out/networks-pingpong${how:+-remote}.log"
	done
	timed networks-pinned 60 "$bundle/halox" bench links --backend cuda --device-ids 0,1 --paths staged --modes one-way \
		--sizes 1MiB,4MiB,16MiB,64MiB --record "$dir/pinned.json"
	pinned "$dir" | tee "$dir/pinned.txt"
	# The same grid by one process of all GPUs, and by a process a GPU over each network: one field, and how long a step takes.
	same() { # NAME SCHEME STEPS COMMAND...: runs it with a field of its own; STEPS are those between two exchanges
		local name=$1 scheme=$2 steps=$3
		shift 3
		check "networks-$name" "$@" run heat3d.yaml --record "$dir/$name.json" --set "grid.size=${NETWORKED:-[256,256,256]}" \
			--set stop.iterations=400 --set stop.check_every=200 --set exact=null --set output.picture=null --set "exchange.steps=$steps" \
			--set "boundary.x=periodic" --set devices.backend=cuda --set "exchange.scheme=$scheme" --set "output.field=$out/$name.npy"
		[ "$name" = one-assisted ] || cmp "$out/one-assisted.npy" "$out/$name.npy" || { failed=1 && echo "FAIL  another field by $name"; }
		[ "$name" = one-assisted ] || rm -f "$out/$name.npy"
	}
	for how in "assisted 1" "fused 1" "blocked 4"; do
		set -- $how
		HALOX_DEVICES_COUNT=2 same "one-$1" "$1" "$2" "$bundle/halox"
		for network in mpi mpi-device nccl ipc; do
			! usable $network || HALOX_DEVICES_COUNT=1 HALOX_EXCHANGE_NETWORK=$network same "two-$network-$1" "$1" "$2" $start "$bundle/halox"
		done
		# NCCL over its network, as between hosts: TCP here, where there is no other.
		! usable nccl || HALOX_DEVICES_COUNT=1 HALOX_EXCHANGE_NETWORK=nccl same "two-nccl-apart-$1" "$1" "$2" \
			env NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 $start bash -c 'hosted "$@"' bash
		# All of four GPUs: by one process, by two of two and by four of one.
		[ "$gpus" -ge 4 ] || continue
		HALOX_DEVICES_COUNT=4 same "one-of-4-$1" "$1" "$2" "$bundle/halox"
		for network in mpi nccl; do
			usable $network || continue
			export HALOX_EXCHANGE_NETWORK=$network
			HALOX_DEVICES_COUNT=2 same "two-of-2-$network-$1" "$1" "$2" $start "$bundle/halox"
			HALOX_DEVICES_COUNT=1 same "four-$network-$1" "$1" "$2" $(launcher 4) "$bundle/halox"
			unset HALOX_EXCHANGE_NETWORK
		done
	done
	rm -f "$out/one-assisted.npy"
	# What of the messages hides behind sweeps.
	for network in mpi nccl; do
		usable $network || continue
		HALOX_DEVICES_COUNT=1 HALOX_EXCHANGE_NETWORK=$network timed "networks-trace-$network" 60 $start "$bundle/halox" run heat3d.yaml \
			--record "$dir/trace-$network.record.json" --trace "$dir/trace-$network.json" --set "grid.size=${TRACED:-[512,512,512]}" --set stop.iterations=100 \
			--set exact=null --set output.picture=null --set devices.backend=cuda --set exchange.scheme=assisted && grep "^hidden" "$out/networks-trace-$network.log"
		timed "networks-timeline-$network" 20 "$bundle/halox" plot "$dir/trace-$network.json" -o "$dir/trace-$network.png"
	done
	runs=("$dir"/{one,two}-*.json)
	[ "$gpus" -lt 4 ] || runs+=("$dir"/four-*.json)
	"$bundle/halox" results "${runs[@]}" | tee "$dir/steps.txt"
	# Steps of many sizes on one, two and, where there are as many GPUs, four processes, which the model of halox plan --hosts is fitted to and held against.
	for network in mpi nccl; do
		usable $network || continue
		how= some=2 devices=1,2
		[ "$gpus" -lt 4 ] || some=4 devices=1,2,4
		for turn in $(seq "${TURNS:-3}"); do
			timed "networks-schemes-$network-$turn" 90 $(launcher "$some") "$bundle/halox" bench schemes --backend cuda --exchange-network "$network" --precisions float64 \
				--points 64,96,128,160,192,224,256,320,384,448,512 --schemes assisted,two-stream --paths staged --device-counts "$devices" \
				--budget 30ms --record "$dir/schemes-$network-$turn.json"
			how+=,$dir/schemes-$network-$turn.json
		done
		"$bundle/halox" plan heat3d.yaml --hosts 2 --devices-per-host 1 --networks hdr200 --measured "${how#,}" \
			--record "$dir/fit-$network.json" >"$out/networks-fit-$network.log" 2>&1 || { failed=1 && tail -n 5 "$out/networks-fit-$network.log"; }
	done
	grep -h '"carrier"' "${runs[@]}"
	rm -rf "$HALOX_CACHE"
	unset HALOX_CACHE
}

# pinned DIR: the rate of path mpi over network mpi, from 1 MiB on, over the least of MPI alone and a copy by way of pinned memory.
pinned() {
	local name
	for name in links-mpi pinned; do
		"$bundle/halox" results "$1/$name.json" --format csv >"$out/$name.csv" || return
	done
	awk '
		{ count = split($0, cell, ",") }
		FNR == 1 { delete place; for (i = 1; i <= count; i++) place[cell[i]] = i; next }
		{
			path = cell[place["path"]]; bytes = cell[place["bytes"]] + 0; took = cell[place["time (us)"]] + 0
			if (bytes < 1048576 || cell[place["mode"]] != "one-way" && path != "pinned") next
			if (!((path, bytes) in least) || took < least[path, bytes]) least[path, bytes] = took
			sizes[bytes]
		}
		END {
			printf "%-10s %10s %10s %10s %10s\n", "bytes", "mpi us", "wire us", "pinned us", "rate over the slower"
			for (b = 1048576; b <= 67108864; b *= 4) {
				if (!(("mpi", b) in least) || !(("wire", b) in least)) continue
				slower = least["wire", b]
				if (least["pinned", b] > slower) slower = least["pinned", b]
				printf "%-10d %10.1f %10.1f %10.1f %10.3f%s\n", b, least["mpi", b], least["wire", b], least["pinned", b], slower / least["mpi", b], slower / least["mpi", b] < 0.8 ? "  below 80%" : ""
			}
		}' "$out/links-mpi.csv" "$out/pinned.csv"
}

for step in $steps; do
	echo "== $step"
	$step
done
exit $failed
