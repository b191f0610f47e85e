package mpi

import (
	"runtime"
	"time"

	"github.com/halox/halox/internal/nap"
)

// pace is how a loop that looks for an event waits between two looks: it lets other goroutines
// run for a while, and then sleeps a share of the time that it has waited, so that it finds out late by no more than that.
type pace struct{ began time.Time }

const (
	yieldFor   = 50 * time.Microsecond
	leastSleep = 20 * time.Microsecond
	mostSleep  = 500 * time.Microsecond
	sleepShare = 8 // of the time waited, one part
)

func newPace() pace { return pace{began: time.Now()} }

// rest waits a little and returns how long the loop has waited.
func (p pace) rest() time.Duration {
	waited := time.Since(p.began)
	if waited < yieldFor {
		runtime.Gosched()
		return waited
	}
	nap.Sleep(min(max(waited/sleepShare, leastSleep), mostSleep))
	return waited
}
