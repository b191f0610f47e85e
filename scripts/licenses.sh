#!/usr/bin/env bash
# Copies the licenses and notices of halox, of Go and of all modules that the halox program contains.
#
#   scripts/licenses.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

copy() { # FROM TO
	local found
	found=$(find "$1" -maxdepth 1 \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents*' \
		-o -iname 'third_party*' -o -iname 'authors*' \))
	[ -n "$found" ] || { echo "licenses.sh: $1 has no license" >&2 && return 1; }
	mkdir -p "$2"
	xargs -d '\n' cp -r --no-preserve=mode -t "$2" <<<"$found"
}

copy . "$1/halox"
copy "$("$go" env GOROOT)" "$1/go"
"$go" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/halox | sort -u |
	while read -r module folder; do copy "$folder" "$1/$module"; done
