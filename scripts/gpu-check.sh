#!/usr/bin/env bash
# Checks halox on a host with GPUs, beside what `make bundle` built: first that it
# is right, then how fast it is. Logs and records go to OUT (default: out), in one
# archive. The last lines are a short table.
#
#   gpu-check.sh [tests] [sanitize] [table] [exchange] [links] [latency] [sweep]     (default: all)
set -u
bundle=$(cd "$(dirname "$0")" && pwd)
archive=${OUT:-out}/gpu-check.tar.gz
out=$(mktemp -d)
mkdir -p "$(dirname "$archive")"
trap 'tar -C "$out" -czf "$archive" .; rm -rf "$out"' EXIT
steps=${*:-tests sanitize table exchange links latency sweep}
failed=0

# check NAME COMMAND...: runs it with a limit, keeps its log, says how it went.
check() {
	local name=$1 log
	shift
	log=$out/$name.log
	if timeout "${LIMIT:-120}" "$@" >"$log" 2>&1; then
		echo "ok    $name $(grep -c '^ *--- PASS' "$log") passed, $(grep -c '^ *--- SKIP' "$log") skipped"
	else
		echo "FAIL  $name (exit $?)"
		tail -n 25 "$log"
		failed=1
	fi
}

tests() {
	"$bundle/halox" devices
	for t in "$bundle"/*.test; do
		check "$(basename "$t" .test)" "$t" -test.v -test.short
	done
}

# A small run of every scheme under the tools that see bad accesses and races.
sanitize() {
	local cut
	cut=$(case $(nvidia-smi -L | wc -l) in 1) echo "[1,1,1]" ;; 2 | 3) echo "[2,1,1]" ;; *) echo "[2,1,2]" ;; esac)
	for how in "memcheck baseline staged" "memcheck two-stream peer" "memcheck two-stream staged" \
		"memcheck assisted peer" "memcheck assisted staged" "racecheck baseline staged" "racecheck assisted peer"; do
		set -- $how
		check "$1-$2-$3" compute-sanitizer --tool "$1" --error-exitcode 3 "$bundle/halox" run "$bundle/heat3d.yaml" \
			--set "grid.size=[37,20,23]" --set stop.iterations=12 --set stop.check_every=5 --history \
			--set "boundary.y=neumann" --set exact=null --set output.picture=null --set devices.backend=cuda \
			--set "exchange.scheme=$2" --set "exchange.path=$3" --set "decomposition=$cut"
		tail -n 1 "$out/$1-$2-$3.log"
	done
	check memcheck-exchange-direct compute-sanitizer --tool memcheck --error-exitcode 3 "$bundle/halo.test" -test.v \
		-test.run 'TestExchangeCases/backend=cuda/.*/path=direct'
	tail -n 1 "$out/memcheck-exchange-direct.log"
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
			"assisted left-right staged" "assisted left-right peer" "assisted left-right direct"; do
			set -- $how
			[ "$n$2$3" != 1left-rightstaged ] || [ "$1" = baseline ] || continue # alone, all paths are one
			[ "$n$2" != 1pairwise ] && [ "$n$3" != 1direct ] || continue
			name=heat3d-$size-float64-$n-$1-$2-$3
			[ "$1" = two-stream ] || name=heat3d-$size-float64-$n-$1-$3
			check "$name" "$bundle/halox" run "$bundle/heat3d.yaml" --record "$out/records/$name.json" \
				--set "grid.size=[$size,$size,$size]" --set "stop.iterations=$count" --set output.picture=null \
				--set devices.backend=cuda --set "devices.count=$n" \
				--set "exchange.scheme=$1" --set "exchange.order=$2" --set "exchange.path=$3"
		done
	done
	echo
	"$bundle/halox" results "$out"/records/heat3d-*.json || failed=1
}

# Halo exchanges of six faces over every path, beside plain copies.
exchange() {
	mkdir -p "$out/records"
	"$bundle/halox" bench exchange --points 16,32,64,128,256,512,768 --radius 1,2,3,4 --fields 1,4,8 \
		--record "$out/records/exchange.json" --plot "$out/records/exchange.png" >"$out/exchange.log" 2>&1 || failed=1
	grep -E "^points|^[0-9]+ +1 +1 |^[0-9]+ +4 +8 " "$out/exchange.log"
}

# bench NAME ARGUMENT...: a bench with its record and its plot.
bench() {
	local name=$1
	shift
	mkdir -p "$out/records"
	if ! timeout "${LIMIT:-900}" "$bundle/halox" bench "$@" --record "$out/records/$name.json" >"$out/$name.log" 2>&1; then
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
	if ! "$nvcc" -O2 -std=c++17 -Xcompiler -pthread -o "$out/linkprobe" "$bundle/linkprobe.cu" >"$out/nvcc.log" 2>&1; then
		echo "FAIL  build linkprobe"
		tail -n 5 "$out/nvcc.log"
		failed=1
		return
	fi
	for turn in 1 2; do
		if ! timeout 300 "$out/linkprobe" "$from" "$to" >"$out/probe-$turn.txt" 2>"$out/probe.log"; then
			echo "FAIL  linkprobe"
			cat "$out/probe.log"
			failed=1
			return
		fi
		bench "links-turn-$turn" links --backend cuda --devices "$from,$to" --paths peer --modes one-way,both-ways
		"$bundle/halox" results "$out/records/links-turn-$turn.json" --format csv >"$out/links-turn-$turn.csv"
	done
	rm -f "$out/linkprobe"
	ratios "$from" "$to" | tee "$out/ratios.txt"
}

# ratios FROM TO: the mean of both turns of each, and halox's rate over the probe's.
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
				split(order[i], part, " ")
				if (halox[order[i]] > 0) printf "%-10s %10d %12.3f %12.3f %8.3f\n", part[1], part[2], probe[order[i]], halox[order[i]], probe[order[i]] / halox[order[i]]
			}
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

for step in $steps; do
	echo "== $step"
	$step
done
exit $failed
