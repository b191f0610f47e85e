package testdevices

import "testing"

// Few returns all elements if tests are long, see Long, and otherwise 2n of them, spread from the first to the last. Under the
// race detector and without cgo it returns n. It is for studies of numbers: the detector looks at threads, which are the same for
// each element, and cgo changes no number.
func Few[T any](n int, all []T) []T {
	if again {
		return spread(n, all)
	}
	return Spread(2*n, all)
}

// Spread returns all elements if tests are long, see Long, and otherwise n of them, spread from the first to the last.
func Spread[T any](n int, all []T) []T {
	if Long() {
		return all
	}
	return spread(n, all)
}

func spread[T any](n int, all []T) []T {
	if len(all) <= n {
		return all
	}
	var some []T
	for i := range n {
		some = append(some, all[i*(len(all)-1)/max(1, n-1)])
	}
	return some
}

// Fewer returns all elements, but n of them, spread from the first to the last, where tests run again: under the race detector and
// without cgo. It is for cases whose threads are the same.
func Fewer[T any](n int, all []T) []T {
	if again {
		return spread(n, all)
	}
	return all
}

// Times returns all, but n where tests run again, see Fewer.
func Times(n, all int) int {
	if again {
		return n
	}
	return all
}

// Turn reports whether the i-th of several cases is to run. All are, but where tests run again, see Fewer, every n-th. Where cases
// are products of lists, i is a sum of places in these, so that each element of each list has its turn.
func Turn(i, n int) bool { return !again || i%n == 0 }

// Half reports whether the i-th of several cases is to run: all if tests are long, see Long, and where tests run again, which Turn thins
// out; otherwise every other.
func Half(i int) bool { return again || Long() || i%2 == 0 }

// Once skips a test where tests run again, see Fewer: one whose threads are those of other tests of its package, and whose numbers
// cgo does not change.
func Once(t testing.TB) {
	t.Helper()
	if again {
		t.Skip("SKIPPED: under the race detector, or without cgo: its threads are those of other tests")
	}
}

// OtherCompilers skips a test under the race detector and without cgo: one that has compilers of C++ or CUDA work for
// minutes, of which neither changes anything.
func OtherCompilers(t testing.TB) {
	t.Helper()
	if again {
		t.Skip("SKIPPED: under the race detector, or without cgo: it runs a compiler of C++ or CUDA, and no threads of Go")
	}
}
