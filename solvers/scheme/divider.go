package scheme

import (
	"math"

	"github.com/halox/halox/kernels/temporal"
)

// divider is a scheme that divides steps into rounds itself, and takes norms of steps within launches.
type divider interface {
	// divide returns the next round. It is called between rounds, by one thread.
	divide(a ask) division
	// take returns what was taken of the worker's subdomain at a look of the last round or of the one before, once it
	// is on the host.
	take(worker int, l look, to *taken)
	// finish has the variables hold the level of a step, the last that was made or the one before the last launch of
	// the last round.
	finish(worker int, step int64) error
}

// ask is what rounds a divider may make.
type ask struct {
	after, to int64 // the steps after one, up to another one at most
	pace      int64 // about so many, where there are more
	final     bool  // the run ends with the last of them
	one       bool  // one launch alone, as what the one before has read is still needed
	every     int64 // norms are wanted of steps that it divides; 0 for none
	norms     bool  // and of the last where it is final
}

// mostLooks is the most steps of a launch whose norms are taken.
const mostLooks = temporal.MaxNorms

// division is a round that ends with step last. Norms are taken of the steps looks alone, by the last launch, which
// begins after step from.
type division struct {
	from, last int64
	looks      []int64
}

// within reports whether norms are taken of others than the last step of the launch: where they end the run, the
// launch is made again up to there, so they are looked at before another one is queued.
func (d division) within() bool { return len(d.looks) > 0 && d.looks[0] < d.last }

// lookAfter returns the first step after one whose norms are wanted, math.MaxInt64 for none.
func (a ask) lookAfter(n int64) int64 {
	look := int64(math.MaxInt64)
	if a.every > 0 {
		look = (n/a.every + 1) * a.every
	}
	if a.norms && n < a.to {
		look = min(look, a.to)
	}
	return look
}

// look is norms of a step that workers bring to a barrier.
type look struct {
	step   int64
	number int64 // of the round that has taken them
	place  int   // among the looks of that
}
