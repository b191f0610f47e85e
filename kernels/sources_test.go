package kernels_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/halox/halox/internal/test"
)

// Every source with kernels is of one package, whose tests run them all on the CPU: its TestMain names the source.
func TestEverySourceIsRunByOnePackage(t *testing.T) {
	mains, err := filepath.Glob("*/main_test.go")
	if err != nil || len(mains) == 0 {
		t.Skip("SKIPPED: the sources of tests are not here: ", err)
	}
	mains = append(mains, filepath.Join("..", "solvers", "main_test.go")) // steps of scheme ranks are made there
	var run []string
	for _, main := range mains {
		text := test.Must(os.ReadFile(main))(t)
		for _, pattern := range regexp.MustCompile(`"\.\./(?:kernels/)?(cu/[^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			files := test.Must(filepath.Glob(pattern[1]))(t)
			run = append(run, files...)
		}
	}
	slices.Sort(run)
	if all, err := filepath.Glob("cu/*.cu"); err != nil || !slices.Equal(run, all) {
		t.Errorf("tests run %v\nof %v: %v", run, all, err)
	}
}
