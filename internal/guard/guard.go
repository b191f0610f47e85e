// Package guard keeps what is in use from being closed, and from a second use that would disturb the first.
package guard

import (
	"errors"
	"sync/atomic"
)

// The errors of Guard. What has a guard wraps them in errors that name it.
var (
	ErrClosed = errors.New("it is closed")
	ErrBusy   = errors.New("it is in use")
)

// Hold is a use of something.
type Hold int64

// The holds. Each keeps the thing open; up to 2^20 of each may be held at once.
const (
	Open  Hold = 1       // beside all others
	Share Hold = 1 << 20 // beside others, except Alone
	Alone Hold = 1 << 40 // beside Open only
)

// Guard counts the holds of something and says whether it is closed. The zero value is open and not held. Its methods
// may be called from any goroutine; they do not wait and do not allocate.
type Guard struct{ state atomic.Int64 } // the sum of all holds; closed if negative

// Hold begins a use, which Release ends. The error is ErrClosed, or ErrBusy beside a hold that excludes this one.
func (g *Guard) Hold(h Hold) error {
	for {
		state := g.state.Load()
		switch {
		case state < 0:
			return ErrClosed
		case h == Alone && state >= int64(Share), h == Share && state >= int64(Alone):
			return ErrBusy
		case g.state.CompareAndSwap(state, state+int64(h)):
			return nil
		}
	}
}

// Release ends a use that Hold began.
func (g *Guard) Release(h Hold) { g.state.Add(-int64(h)) }

// Close closes, for good. The error is ErrClosed the second time, and ErrBusy while there is a hold.
func (g *Guard) Close() error {
	switch {
	case g.state.CompareAndSwap(0, -1):
		return nil
	case g.Closed():
		return ErrClosed
	}
	return ErrBusy
}

// Closed reports whether Close has closed it.
func (g *Guard) Closed() bool { return g.state.Load() < 0 }

// Busy reports whether something holds it.
func (g *Guard) Busy() bool { return g.state.Load() > 0 }
