package testdevices

import "testing"

// Few returns all elements, but n of them, spread from the first to the last, under the race detector and without cgo. It is
// for studies of numbers: the detector looks at threads, which are the same for each element, and cgo changes no number.
func Few[T any](n int, all []T) []T {
	if !again || len(all) <= n {
		return all
	}
	var some []T
	for i := range n {
		some = append(some, all[i*(len(all)-1)/max(1, n-1)])
	}
	return some
}

// OtherCompilers skips a test under the race detector and without cgo: one that has compilers of C++ or CUDA work for
// minutes, of which neither changes anything.
func OtherCompilers(t testing.TB) {
	t.Helper()
	if again {
		t.Skip("SKIPPED: under the race detector, or without cgo: it runs a compiler of C++ or CUDA, and no threads of Go")
	}
}
