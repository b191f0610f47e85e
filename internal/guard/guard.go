// Package guard counts the uses of an object, so that it cannot be closed while in use, or used twice at once where the
// uses would conflict.
package guard

import (
	"errors"
	"sync/atomic"
)

// The errors of Guard. Callers wrap them in errors that name the object.
var (
	ErrClosed = errors.New("it is closed")
	ErrBusy   = errors.New("it is in use")
)

// Hold is a type of use.
type Hold int64

// The kinds of use. Each keeps the object open. At most 2^20 of each may be held at once.
const (
	Open  Hold = 1       // together with any other
	Share Hold = 1 << 20 // together with Open and Share
	Alone Hold = 1 << 40 // together with Open only
)

// Guard counts the holds of an object and records whether it is closed. The zero value is open and not held. Methods
// may be called from any goroutine. They do not block and do not allocate.
type Guard struct{ state atomic.Int64 } // the sum of all holds; closed if negative

// Hold begins a use, which Release ends. It returns ErrClosed, or ErrBusy if another hold excludes this one.
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

// Close marks the object as closed. It returns ErrClosed if it was closed before, and ErrBusy while it is held.
func (g *Guard) Close() error {
	switch {
	case g.state.CompareAndSwap(0, -1):
		return nil
	case g.Closed():
		return ErrClosed
	}
	return ErrBusy
}

// Closed reports whether Close succeeded.
func (g *Guard) Closed() bool { return g.state.Load() < 0 }

// Busy reports whether the object is held.
func (g *Guard) Busy() bool { return g.state.Load() > 0 }
