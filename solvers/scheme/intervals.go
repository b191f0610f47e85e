package scheme

import (
	"math"
	"time"
)

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
