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

// turn ends the interval with the step that was done last, and begins the next. It is false
// where none is wanted; what is stepped after that belongs to none.
func (l *intervals) turn(done int64) bool {
	if l.next == nil {
		return true
	}
	var took time.Duration
	if done > 0 {
		took = time.Since(l.since)
	}
	steps := l.next(done-l.begun, took)
	l.begun, l.end = done, noEnd
	if steps > 0 {
		l.end = done + steps
	}
	l.since = time.Now()
	return steps > 0
}
