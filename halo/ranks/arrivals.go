package ranks

import "sync/atomic"

// arrivals counts who of others has come to a barrier, of odd and of even numbers apart: one may come to the next barrier before it is
// known here that another has come to this one, and to none after that before all have.
type arrivals [2]atomic.Uint64

func (a *arrivals) begin() {
	for i := range a {
		a[i].Store(0)
	}
}

// add counts one that has come to the n-th barrier, from 1.
func (a *arrivals) add(n uint64) { a[n%2].Add(1) }

// haveCome reports whether so many others, all, have come to the n-th barrier.
func (a *arrivals) haveCome(n uint64, others int) bool {
	return a[n%2].Load() >= (n+1)/2*uint64(others)
}
