package testdevices

import "testing"

// Some returns n elements of a list, and all if tests are long, see Long. They are spread over the list, each taken from a part of
// its own; which element of its part that is depends on the seed, so that each has its turn, see Seed.
func Some[T any](n int, all []T) []T {
	if Long() {
		return all
	}
	return some(n, all)
}

// Again returns all elements, but n of them, chosen as by Some, where tests run again: under the race detector and without cgo. It
// is for cases whose threads are the same, and which cgo does not change. Again(n, Some(m, all)) thins both.
func Again[T any](n int, all []T) []T {
	if again {
		return some(n, all)
	}
	return all
}

// Turn reports whether the i-th of several cases is to run: each n-th, all if tests are long, but each m-th where tests run again,
// see Again. Where cases are products of lists, i is a sum of places in these, so that each element of each list has its turn;
// with the seed each case has.
func Turn(i, n, m int) bool {
	switch {
	case again:
		n = m
	case Long():
		n = 1
	}
	return (i+Seed())%n == 0
}

// Numbers are those from 0 below n, as the seeds of n random cases.
func Numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// InTurn skips a test unless the seed has the i-th of n turns. It is for tests that take long and whose faults other tests mostly find
// too. Each turn comes once in the n seeds from a multiple of n. InTurn skips nothing if tests are long, where tests run again, and
// without a seed, as for who works on a package.
func InTurn(t testing.TB, i, n int) {
	t.Helper()
	if !again && !Long() && Seed() > 0 && turnOf(Seed(), n) != i {
		t.Skipf("SKIPPED: with this seed others have their turn, one of %d; make test-long takes all", n)
	}
}

// turnOf returns which of n turns a seed has: the seed, its n-th part, and half, a quarter and so on of that, all added, modulo n.
// The seeds of a turn have all remainders modulo any number, so that Some and Turn reach all cases of a test that has turns. With seed
// modulo n they would reach a part.
func turnOf(seed, n int) int {
	turn := seed
	for rest := seed / n; rest > 0; rest /= 2 {
		turn += rest
	}
	return turn % n
}

// Once skips a test where tests run again, see Again: one whose threads are those of other tests of its package, or that runs
// compilers of C++ or CUDA and no threads of Go, and whose numbers cgo does not change.
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
