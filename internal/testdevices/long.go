package testdevices

import (
	"os"
	"strconv"
)

// Long reports whether tests run whole, as make test-long has them. Otherwise long lists, and products of lists, are tested in part,
// see Some and Turn.
func Long() bool { return os.Getenv("HALOX_TEST_LONG") != "" }

// Instrumented reports whether a tool such as compute-sanitizer instruments kernels: HALOX_TEST_INSTRUMENTED. Tests then do no more rounds on
// GPUs than on the CPU.
func Instrumented() bool { return os.Getenv("HALOX_TEST_INSTRUMENTED") != "" }

// Seed decides which cases Some, Again and Turn take: HALOX_TEST_SEED, which make has count the commits, else 0.
func Seed() int {
	n, err := strconv.ParseUint(os.Getenv("HALOX_TEST_SEED"), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// generations of GPUs that halox runs on.
var generations = []string{"sm_80", "sm_90", "sm_100"}

// Generations returns those that the i-th of some programs is compiled for: all of them if tests are long, else one, by turns and by
// the seed.
func Generations(i int) []string {
	if Long() {
		return generations
	}
	return generations[(i+Seed())%len(generations):][:1]
}
