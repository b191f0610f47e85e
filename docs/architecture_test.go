package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
	if found < 30 {
		t.Errorf("%d files", found)
	}
}
