package testdevices

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/kernels"
)

// Long reports whether tests run completely, as in make test-long. Otherwise long lists, and products of lists, are
// tested partially, see Some and Turn.
func Long() bool { return os.Getenv("HALOX_TEST_LONG") != "" }

// Instrumented reports whether a tool such as compute-sanitizer instruments kernels: HALOX_TEST_INSTRUMENTED. Tests
// then run no more rounds on GPUs than on the CPU.
func Instrumented() bool { return os.Getenv("HALOX_TEST_INSTRUMENTED") != "" }

// Seed selects the cases of Some, Again and Turn: HALOX_TEST_SEED, which make sets to the number of commits, otherwise
// 0.
func Seed() int {
	n, err := strconv.ParseUint(os.Getenv("HALOX_TEST_SEED"), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// generations are the generations of GPUs that halox supports.
var generations = []string{"sm_80", "sm_90", "sm_100"}

// Generations returns the generations for which the i-th of several programs is compiled: all if tests are long,
// otherwise one that depends on i and the seed.
func Generations(i int) []string {
	if Long() {
		return generations
	}
	return generations[(i+Seed())%len(generations):][:1]
}

// rank and processes are those of Share.
var rank, processes = 0, 1

// Share makes GPUs open an equal share of the GPUs of this host in each of several processes that run a test together.
// If there are fewer GPUs than processes, GPUs skips the test: kernels of two processes that wait for each other would
// alternate on a GPU, once per message.
func Share(r, of int) { rank, processes = r, of }

// shareOf returns the IDs of the share of n devices: none if there are too few.
func shareOf(n int) (ids []int) {
	each := n / processes
	for i := range each {
		ids = append(ids, rank*each+i)
	}
	return ids
}

//go:embed slow/nvrtc.c
var slowSource string

// Slow is an NVRTC with slow compilations, for a driver of package cudafake that runs no kernels.
type Slow struct {
	Library string
	log     string
}

// SlowNVRTC builds one. It fails to compile the named program; "" for none.
func SlowNVRTC(t testing.TB, takes time.Duration, refuses string) Slow {
	t.Helper()
	cc := cudafake.Compiler(t)
	dir := t.TempDir()
	s := Slow{filepath.Join(dir, "libnvrtc.so"), filepath.Join(dir, "log")}
	source := filepath.Join(dir, "nvrtc.c")
	if err := os.WriteFile(source, []byte(slowSource), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(cc[1:]), "-shared", "-fPIC", "-O1", "-Wall",
		fmt.Sprintf("-DSLOW=%d", takes.Milliseconds()), fmt.Sprintf("-DREFUSES=%q", refuses),
		fmt.Sprintf("-DLOG=%q", s.log), "-o", s.Library, source)
	build := exec.Command(cc[0], args...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build an NVRTC that is slow: %v\n%s", err, out)
	}
	return s
}

// NoCompiler returns a compiler that compiles nothing, for a driver of package cudafake that runs no kernels.
func NoCompiler(t testing.TB) *kernels.Compiler {
	t.Helper()
	return kernels.NewCompiler(kernels.Options{NVRTC: SlowNVRTC(t, 0, "").Library, Cache: t.TempDir()})
}

// Compiled returns the programs so far, in the order of their start, and the maximum number of simultaneous
// compilations.
func (s Slow) Compiled(t testing.TB) (names []string, together int) {
	t.Helper()
	log, err := os.ReadFile(s.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	now := 0
	for line := range strings.Lines(string(log)) {
		name := strings.TrimSpace(line[1:])
		if line[0] == '-' {
			now--
			continue
		}
		names = append(names, name)
		now++
		together = max(together, now)
	}
	return names, together
}

// Some returns n elements of a list, and all if tests are long, see Long. Each is from a different part of the list;
// the seed selects the element of each part, so that all are tested over time, see Seed.
func Some[T any](n int, all []T) []T {
	if Long() {
		return all
	}
	return some(n, all)
}

// Again returns all elements, or n of them, chosen like Some, if tests run again: under the race detector and without
// cgo. It is for cases with the same threads, which do not depend on cgo. Again(n, Some(m, all)) combines both.
func Again[T any](n int, all []T) []T {
	if again {
		return some(n, all)
	}
	return all
}

// Turn reports whether to run the i-th of several cases: each n-th, all if tests are long, or each m-th if tests run
// again, see Again. If cases are products of lists, i is the sum of the indices, so that each element of each list is
// tested, and over all seeds each case.
func Turn(i, n, m int) bool {
	switch {
	case again:
		n = m
	case Long():
		n = 1
	}
	return (i+Seed())%n == 0
}

// Numbers returns 0 to n-1, as the seeds of n random cases.
func Numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// InTurn skips a test unless the seed has the i-th of n turns. It is for slow tests whose faults other tests usually
// find too. Each turn occurs once in the n seeds from a multiple of n. InTurn skips nothing if tests are long, if tests
// run again, and without a seed, as during development of a package.
func InTurn(t testing.TB, i, n int) {
	t.Helper()
	if !again && !Long() && Seed() > 0 && turnOf(Seed(), n) != i {
		t.Skipf("SKIPPED: this seed selects another one of %d tests; make test-long runs all", n)
	}
}

// turnOf returns which of n turns a seed has: the seed, its n-th part, and half, a quarter and so on of that, all
// added, modulo n. The seeds of a turn have all remainders modulo any number, so that Some and Turn reach all cases of
// a test that has turns. With seed modulo n they would reach a part.
func turnOf(seed, n int) int {
	turn := seed
	for rest := seed / n; rest > 0; rest /= 2 {
		turn += rest
	}
	return turn % n
}

// Once skips a test if tests run again, see Again: one with the same threads as other tests of its package, or that
// runs compilers of C++ or CUDA and no Go threads, and whose numbers do not depend on cgo.
func Once(t testing.TB) {
	t.Helper()
	if again {
		t.Skip("SKIPPED: under the race detector, or without cgo: neither changes what it tests")
	}
}

func some[T any](n int, all []T) []T {
	if len(all) <= n {
		return all
	}
	var chosen []T
	for i := range n {
		from, to := i*len(all)/n, (i+1)*len(all)/n
		chosen = append(chosen, all[from+(i+Seed())%(to-from)])
	}
	return chosen
}

// ranOnCPU has the names of the kernels that devices of CPU have completed.
var ranOnCPU sync.Map

// kernelName matches the definition of a kernel in most sources, kernelMacro in point.cu.
var (
	kernelName  = regexp.MustCompile(`(?s)extern "C" __global__[^;{\\]*?(\w+)\(const __grid_constant__`)
	kernelMacro = regexp.MustCompile(`(?m)^(MEASURED_)?KERNEL\((\w+),`)
)

// Main runs the tests of a package, and returns the exit status of the process. It fails if all tests ran, also on
// devices of CPU, but a kernel never ran there. The kernels are those of the CUDA sources that match the patterns,
// without those that match a pattern after a minus sign.
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

// all reports whether the flags select all tests, and all run completely.
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
		for _, m := range kernelMacro.FindAllSubmatch(text, -1) {
			name := string(m[2])
			if len(m[1]) > 0 {
				name += "_measured"
			}
			kernels = append(kernels, [2]string{filepath.Base(file), name})
		}
	}
	return kernels, nil
}
