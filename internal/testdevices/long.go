package testdevices

import "os"

// Long reports whether tests run whole, as .ci/run has them by make test-long. Otherwise what is the product of several lists
// is tested in part: each element of each list still is, and each pair of elements where that is said.
func Long() bool { return os.Getenv("HALOX_TEST_LONG") != "" }

// generations of GPUs that halox runs on.
var generations = []string{"sm_80", "sm_90", "sm_100"}

// Generations returns those that the i-th of some programs is compiled for: all of them if tests are long, else one, by turns.
func Generations(i int) []string {
	if Long() {
		return generations
	}
	return generations[i%len(generations):][:1]
}
