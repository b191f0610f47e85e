#!/usr/bin/env bash
# Counts the size of the tree: prints a table of each number, what it was when
# scripts/size.txt was last written, and its goal.
#
#   scripts/size.sh           print the table
#   scripts/size.sh --check   also fail if a number has grown by more than 3% since scripts/size.txt
#                             was written, unless the newest section of CHANGELOG.md has a line that
#                             begins with "- Size: NAME" and gives the reason
#   scripts/size.sh --write   write scripts/size.txt, after the same check
#
# It counts the files that git tracks. A tab is as wide as four spaces.
set -euo pipefail
cd "$(dirname "$0")/.."

go_code_files() { git ls-files '*.go' | grep -v '_test\.go$'; }
cuda_files() { git ls-files '*.cu' '*.cuh' '*.c' '*.h' '*.cc' '*.s' | grep -v '/testdata/'; }
contents() { xargs -d '\n' cat; }

# A line is code if it is neither blank nor inside a comment.
go_code() {
	go_code_files | contents | awk '
		{ line = $0; sub(/^[ \t]+/, "", line) }
		comment { if (line ~ /\*\//) comment = 0; next }
		line == "" || line ~ /^\/\// { next }
		line ~ /^\/\*/ { if (line !~ /\*\//) comment = 1; next }
		{ n++ }
		END { print n + 0 }'
}
go_files() { go_code_files | wc -l; }
cuda() { cuda_files | contents | wc -l; }
tests() { git ls-files '*_test.go' | contents | wc -l; }
crowded() { go_code_files | xargs -d '\n' -n1 dirname | sort | uniq -c | awk '$1 > 30 { n++ } END { print n + 0 }'; }
cmd() { go_code_files | grep '^cmd/halox/' | contents | wc -l; }
long_lines() {
	{ go_code_files; cuda_files | grep -E '\.cuh?$'; } | contents | expand -t 4 |
		LC_ALL=C.UTF-8 awk 'length($0) > 120 { n++ } END { print n + 0 }'
}
results() { git ls-files results | contents | wc -c; }

failed=0 counted=
check() { # NAME GOAL MEANING
	local now before
	now=$("$1")
	before=$(awk -v name="$1" '$1 == name { print $2 }' scripts/size.txt)
	printf '%-10s %10d %10d %10d  %s\n' "$1" "$now" "$before" "$2" "$3"
	counted+="$1 $now"$'\n'
	if [ "$((now * 100))" -gt "$((before * 103))" ] && ! grep -q "^- Size: $1 " <<<"$newest"; then
		echo "$1: grew from $before to $now; make it smaller, or give the reason in CHANGELOG.md as \"- Size: $1 ...\"" >&2
		failed=1
	fi
}

newest=$(awk '/^## / { n++ } n == 1' CHANGELOG.md)
printf '%-10s %10s %10s %10s\n' '' now before goal
check go_code 60000 'lines of Go without tests that are neither blank nor comment'
check go_files 450 'files of Go without tests'
check cuda 16000 'lines of CUDA, C, C++ and assembly outside testdata'
check tests 50000 'lines of tests'
check crowded 0 'packages with more than 30 files of Go without tests'
check cmd 2600 'lines of cmd/halox without tests'
check long_lines 60 'lines over 120 characters in Go and CUDA outside tests'
check results 12000000 'bytes in results/'
case ${1:-} in
--check) exit "$failed" ;;
--write)
	[ "$failed" = 0 ] || exit 1
	printf '%s' "$counted" >scripts/size.txt
	;;
esac
