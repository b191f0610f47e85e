package scheme

import (
	"math"
	"time"

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

// intervals cuts a run into intervals of steps at whose ends the devices have done all that
// was queued, so that the time between two ends is that of the steps and of nothing else.
type intervals struct {
	next  func(steps int64, took time.Duration) int64 // Options.Interval; nil for none
	begun int64                                       // the step before the interval
	end   int64                                       // its last step
	since time.Time
}

// noEnd is the end of an interval that has none.
const noEnd = math.MaxInt64

func newIntervals(next func(int64, time.Duration) int64) intervals {
	return intervals{next: next, end: noEnd}
}

// ask ends the interval with the step that was done last, and returns how many steps the next is to have.
func (l *intervals) ask(done int64) (steps int64) {
	if l.next == nil {
		return 0
	}
	var took time.Duration
	if done > 0 {
		took = time.Since(l.since)
	}
	return l.next(done-l.begun, took)
}

// begin begins the next interval after a step. It is false where none is wanted; what is stepped after that belongs to
// none.
func (l *intervals) begin(done, steps int64) bool {
	if l.next == nil {
		return true
	}
	l.begun, l.end = done, noEnd
	if steps > 0 {
		l.end = done + steps
	}
	l.since = time.Now()
	return steps > 0
}
