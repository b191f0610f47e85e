package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// names returns what a text has in backquotes, or in quotes.
func names(text string) (all []string) {
	for _, m := range regexp.MustCompile("[`\"]([^`\"]+)[`\"]").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// The table of rooms says what the rooms test holds.
func TestRooms(t *testing.T) {
	held := map[string][]string{}
	source := read(t, "../internal/rooms/rooms_test.go")
	for _, m := range regexp.MustCompile(`(?m)^\t"([^"]+)": +\{(.*)\},$`).FindAllStringSubmatch(source, -1) {
		held[m[1]] = names(m[2])
	}
	page := read(t, "architecture.md")
	said := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\| [^|]+ \\| ([^|]+) \\|$").FindAllStringSubmatch(page, -1) {
		for _, room := range names(m[1]) {
			said[room] = names(m[2])
		}
	}
	if len(held) < 20 || len(said) != len(held) {
		t.Errorf("the page has %d rooms, the rooms test %d", len(said), len(held))
	}
	for room, may := range held {
		if !slices.Equal(said[room], may) {
			t.Errorf("room %s: the page says %q, the rooms test %q", room, said[room], may)
		}
	}
}

// The files that the page names are there.
func TestFilesOfTheArchitecture(t *testing.T) {
	found := 0
	for _, m := range regexp.MustCompile("`([a-z0-9_/]+/[a-z0-9_]+\\.(?:go|cu|cuh))`").FindAllStringSubmatch(read(t, "architecture.md"), -1) {
		file := m[1]
		if strings.HasPrefix(file, "cu/") {
			file = "kernels/" + file
		}
		found++
		if _, err := os.Stat(filepath.Join("..", file)); err != nil {
			t.Error(err)
		}
	}
	if found < 40 {
		t.Errorf("%d files", found)
	}
}
