#!/usr/bin/env bash
# skipped.sh LOG: lists the skipped tests in the output of go test -v by package, with the reason.
awk '
	/^=== (RUN|NAME|CONT|PAUSE) / { now = $3 }
	/^ +[^ ]+\.go:[0-9]+: / { line = $0; sub(/^ +/, "", line); said[now] = line }
	/^ *--- SKIP: / { all = all "  " $3 ": " (said[$3] ? said[$3] : "no reason") "\n"; n++ }
	/^(ok|FAIL|---|\?) .*\// && !/---/ {
		if (all) printf "%s\n%s", $2, all
		all = ""
		delete said
	}
	END { print n + 0 " skipped" }
' "$1"
