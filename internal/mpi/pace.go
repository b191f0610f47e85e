package mpi

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/halox/halox/internal/nap"
)

// waits limits how many loops of a process poll MPI without sleeping. Libraries make progress within calls alone, so while all loops sleep a
// large message rests. One loop that polls makes progress for the messages of all.
type waits struct{ most, spinning atomic.Int32 }

// take reports whether one more loop may poll without sleeping, until give.
func (w *waits) take() bool {
	if w.spinning.Add(1) <= w.most.Load() {
		return true
	}
	w.spinning.Add(-1)
	return false
}

func (w *waits) give() { w.spinning.Add(-1) }

// pace is how a loop that polls for an event waits between two polls. If it may poll without sleeping it keeps its thread for spinFor, and yields to other
// goroutines now and then: to yield takes a lock, and may wake a thread. Else it yields for yieldFor. Then it sleeps a share of the time that it
// has waited, so that it finds out late by no more than that.
type pace struct {
	waits   *waits
	began   time.Time
	yielded time.Duration // after the beginning
	spins   bool          // whether it may poll without sleeping
}

const (
	yieldFor   = 50 * time.Microsecond
	yieldEvery = 50 * time.Microsecond // of a loop that keeps its thread
	spinFor    = 50 * time.Millisecond
	leastSleep = 20 * time.Microsecond
	mostSleep  = 500 * time.Microsecond
	sleepShare = 8 // of the time waited, one part
)

func newPace(w *waits) pace { return pace{waits: w, began: time.Now(), spins: w.take()} }

// rest waits a little and returns how long the loop has waited.
func (p *pace) rest() time.Duration {
	waited := time.Since(p.began)
	if waited >= spinFor {
		p.end()
	}
	switch {
	case p.spins && waited < p.yielded+yieldEvery:
	case p.spins, waited < yieldFor:
		p.yielded = waited
		runtime.Gosched()
	default:
		nap.Sleep(min(max(waited/sleepShare, leastSleep), mostSleep))
	}
	return waited
}

// end lets another loop poll without sleeping.
func (p *pace) end() {
	if p.spins {
		p.spins = false
		p.waits.give()
	}
}

// Spin lets at most so many waits at a time poll without sleeping, for up to 50 ms each, and as many calls of Linger; before it is called no wait
// does for longer than 50 us. Libraries that carry large messages in pieces make progress within calls alone, and so need it. It costs a core for
// each such wait.
func (l *Library) Spin(most int) {
	l.waits.most.Store(int32(most))
	l.idle.most.Store(int32(most))
}

// lingerFor is how long a thread without work polls for more: longer than most steps take. A thread that sleeps takes as long to wake as a message of
// some 100 KiB takes to arrive.
const lingerFor = 2 * time.Millisecond

// Linger polls came without sleeping, for up to 2 ms, and reports whether it returned true. It returns false at once where as many other calls poll
// as Spin allows.
func (l *Library) Linger(came func() bool) bool {
	if !l.idle.take() {
		return false
	}
	defer l.idle.give()
	for p := (pace{began: time.Now(), spins: true}); p.rest() < lingerFor; {
		if came() {
			return true
		}
	}
	return false
}
