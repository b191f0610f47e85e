// Package poll paces loops that poll for an event.
package poll

import (
	"runtime"
	"time"
)

// Policy defines the pauses between two polls of a loop: it first keeps its thread, then yields to other goroutines,
// then sleeps for increasing times. A loop that keeps its thread reacts within 100 ns; one that sleeps needs at least
// 60 us, and costs other threads nothing.
type Policy struct {
	Spin       time.Duration // how long it keeps its thread
	YieldEvery time.Duration // how often it yields in that time, which takes a lock and may wake a thread; 0: never
	Yields     int           // it then yields at least this many times,
	YieldFor   time.Duration // and at least for this long
	Share      int           // it then sleeps the time waited so far divided by Share,
	Min, Max   time.Duration // within these bounds

	// Sleep is [Sleep] if it is nil. With time.Sleep a loop does not hold its thread while it sleeps, which suits many
	// loops in one process.
	Sleep func(time.Duration)
}

// Wait is one wait of a loop.
type Wait struct {
	policy  *Policy
	last    time.Time
	waited  time.Duration
	yielded time.Duration // when it yielded last
	yields  int
}

// Begin begins a wait, which does not allocate.
func (p *Policy) Begin() Wait { return Wait{policy: p} }

// Pause waits according to the policy, and returns how long the loop had waited before.
func (w *Wait) Pause() time.Duration {
	p, waited := w.policy, w.Waited()
	switch {
	case waited < p.Spin:
		if p.YieldEvery > 0 && waited >= w.yielded+p.YieldEvery {
			w.yielded = waited
			runtime.Gosched()
		}
	case w.yields < p.Yields || waited < p.Spin+p.YieldFor:
		w.yields++
		runtime.Gosched()
	default:
		sleep := p.Sleep
		if sleep == nil {
			sleep = Sleep
		}
		sleep(min(max(waited/time.Duration(p.Share), p.Min), p.Max))
	}
	return waited
}

// maxGap is the maximum time between two calls of Waited that counts: while the process is stopped, or the machine
// suspended, the loop does not wait.
const maxGap = time.Second

// Waited returns how long the loop has waited since the first call of Pause or Waited.
func (w *Wait) Waited() time.Duration {
	now := time.Now()
	if !w.last.IsZero() {
		w.waited += min(now.Sub(w.last), maxGap)
	}
	w.last = now
	return w.waited
}
