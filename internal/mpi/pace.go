package mpi

import (
	"sync/atomic"
	"time"

	"github.com/halox/halox/internal/poll"
)

// waits limits the number of loops of a process that poll MPI without sleeping. Libraries make progress only within
// calls, so a large message stops while all loops sleep. One polling loop makes progress for the messages of all.
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

// Policies of loops that may poll without sleeping, and of others.
var (
	spinning = poll.Policy{
		Spin: 50 * time.Millisecond, YieldEvery: 50 * time.Microsecond,
		Share: 8, Min: 20 * time.Microsecond, Max: 500 * time.Microsecond,
	}
	yielding = poll.Policy{
		YieldFor: 50 * time.Microsecond, Share: 8, Min: 20 * time.Microsecond, Max: 500 * time.Microsecond,
	}
)

// pace is a wait of a loop, and whether it is one of those that may poll without sleeping.
type pace struct {
	poll.Wait
	waits *waits
	spins bool
}

func newPace(w *waits) pace {
	if w.take() {
		return pace{spinning.Begin(), w, true}
	}
	return pace{yielding.Begin(), w, false}
}

// rest pauses and returns how long the loop has waited.
func (p *pace) rest() time.Duration {
	waited := p.Pause()
	if waited >= spinning.Spin {
		p.end()
	}
	return waited
}

// end allows another loop to poll without sleeping.
func (p *pace) end() {
	if p.spins {
		p.spins = false
		p.waits.give()
	}
}
