package testdevices

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// ranOnCPU has the names of the kernels that devices of CPU have run to their end.
var ranOnCPU sync.Map

// kernelName is how the sources define a kernel.
var kernelName = regexp.MustCompile(`(?s)extern "C" __global__[^;{]*?(\w+)\(const __grid_constant__`)

// Main runs the tests of a package, and returns the exit status of the process. It fails if all tests
// ran, on devices of CPU too, but some kernel never did there. The kernels are those of the CUDA sources
// that match the patterns, less those that match a pattern after a minus sign.
func Main(m *testing.M, patterns ...string) (code int) {
	if code = m.Run(); code != 0 || !all() || empty(&ranOnCPU) {
		return code
	}
	defined, err := kernelsOf(patterns)
	if err != nil || len(defined) == 0 {
		fmt.Fprintln(os.Stderr, "no kernels found in the CUDA sources:", patterns, err)
		return 1
	}
	for _, kernel := range defined {
		if _, ok := ranOnCPU.Load(kernel[1]); !ok {
			fmt.Fprintf(os.Stderr, "FAIL: no test ran the kernel %s of %s on the CPU\n", kernel[1], kernel[0])
			code = 1
		}
	}
	return code
}

// all reports whether the flags choose all tests, and all run whole, see Few.
func all() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return !testing.Short() && !again
}

func empty(m *sync.Map) bool {
	none := true
	m.Range(func(any, any) bool { none = false; return false })
	return none
}

// kernelsOf returns the kernels of some sources, each with the name of its file.
func kernelsOf(patterns []string) (kernels [][2]string, err error) {
	files := map[string]bool{}
	for _, p := range patterns {
		found, err := filepath.Glob(strings.TrimPrefix(p, "-"))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			files[file] = !strings.HasPrefix(p, "-")
		}
	}
	for file, wanted := range files {
		if !wanted {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range kernelName.FindAllSubmatch(text, -1) {
			kernels = append(kernels, [2]string{filepath.Base(file), string(m[1])})
		}
	}
	return kernels, nil
}
