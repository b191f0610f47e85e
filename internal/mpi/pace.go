package mpi

import (
	"runtime"
	"time"

	"github.com/halox/halox/internal/nap"
)

// pace is how a loop that looks for an event waits between two looks: it lets other goroutines
// run for a while, and then sleeps longer and longer.
type pace struct {
	began time.Time
	sleep time.Duration
}

const (
	yieldFor   = 50 * time.Microsecond
	firstSleep = 20 * time.Microsecond
	lastSleep  = 500 * time.Microsecond
)

func newPace() pace { return pace{began: time.Now(), sleep: firstSleep} }

// rest waits a little and returns how long the loop has waited.
func (p *pace) rest() time.Duration {
	waited := time.Since(p.began)
	if waited < yieldFor {
		runtime.Gosched()
		return waited
	}
	nap.Sleep(p.sleep)
	p.sleep = min(2*p.sleep, lastSleep)
	return waited
}
