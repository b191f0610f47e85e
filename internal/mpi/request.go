package mpi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Request is a message on its way, or a collective call. The zero value is none. It can be
// used again once Test or Wait has said that it is done. One goroutine may use it at a time.
type Request struct {
	comm *Comm
	fn   function
	peer int // the other rank; of a collective call allRanks
	tag  int
	open []frame // of the pieces that are not done

	// Source and Tag are those of the message that Irecv has received last.
	Source, Tag int
}

// AnySource and AnyTag, as arguments of Irecv and Probe, match messages of any.
const (
	AnySource = -1
	AnyTag    = -1
)

const allRanks = -2

// withAllRanks is how errors name whom a collective call waited for.
const withAllRanks = "with all ranks"

// with says whom a request is for.
func (r *Request) with() string {
	switch {
	case r.peer == allRanks:
		return withAllRanks
	case r.fn == fIsend:
		return fmt.Sprintf("to rank %d, tag %d", r.peer, r.tag)
	}
	from, tag := fmt.Sprintf("rank %d", r.peer), fmt.Sprint(r.tag)
	if r.peer == AnySource {
		from = "any rank"
	}
	if r.tag == AnyTag {
		tag = "any"
	}
	return fmt.Sprintf("from %s, tag %s", from, tag)
}

// begin makes the request ready for calls of a function.
func (r *Request) begin(c *Comm, fn function, peer, tag int) error {
	if len(r.open) > 0 {
		return fmt.Errorf("mpi: %s %s is still under way", functionNames[r.fn], r.with())
	}
	r.comm, r.fn, r.peer, r.tag = c, fn, peer, tag
	return nil
}

// Isend begins to send the bytes to a rank. They must not be memory of Go, see Memory, and stay
// as they are until the request is done. More than 1 GiB travels in several pieces, which the
// receiver must expect in as many bytes.
func (c *Comm) Isend(r *Request, b []byte, to, tag int) error {
	return c.IsendAt(r, addressOf(b), len(b), to, tag)
}

// IsendAt is Isend of so many bytes at an address, which may be one of a GPU's memory where the library takes those.
func (c *Comm) IsendAt(r *Request, address uintptr, bytes, to, tag int) error {
	if err := r.begin(c, fIsend, to, tag); err != nil {
		return err
	}
	return r.inPieces(address, bytes, func(at uintptr, n int, f frame) arguments {
		return arguments{at, uintptr(n), uintptr(c.library.handles.byteType), uintptr(to), uintptr(tag),
			uintptr(c.handle), f.request()}
	})
}

// Irecv begins to receive at most as many bytes as there is room for, from a rank or AnySource,
// with a tag or AnyTag. The memory must not be Go's. A longer message is an error. One of more
// than 1 GiB must have as many bytes as there is room for, and a given rank and tag.
func (c *Comm) Irecv(r *Request, b []byte, from, tag int) error {
	return c.IrecvAt(r, addressOf(b), len(b), from, tag)
}

// IrecvAt is Irecv to an address, as IsendAt.
func (c *Comm) IrecvAt(r *Request, address uintptr, bytes, from, tag int) error {
	if err := r.begin(c, fIrecv, from, tag); err != nil {
		return err
	}
	h := c.library.handles
	source, mark := h.match(from, tag)
	return r.inPieces(address, bytes, func(at uintptr, n int, f frame) arguments {
		return arguments{at, uintptr(n), uintptr(h.byteType), source, mark, uintptr(c.handle), f.request()}
	})
}

// match returns the arguments that stand for a rank and a tag of messages to be received.
func (h handles) match(from, tag int) (source, mark uintptr) {
	if from == AnySource {
		from = int(h.anySource)
	}
	if tag == AnyTag {
		tag = int(h.anyTag)
	}
	return uintptr(from), uintptr(tag)
}

// inPieces makes one call for each piece of the bytes, and one for no bytes. Messages of one
// rank, communicator and tag do not overtake each other.
func (r *Request) inPieces(address uintptr, bytes int, one func(at uintptr, n int, f frame) arguments) error {
	for first := true; first || bytes > 0; first = false {
		n := min(bytes, r.comm.library.most)
		if err := r.add(func(f frame) arguments { return one(address, n, f) }); err != nil {
			return err
		}
		address, bytes = address+uintptr(n), bytes-n
	}
	return nil
}

// add makes a call of the request's function, which writes an MPI_Request into a frame.
func (r *Request) add(one func(frame) arguments) error {
	l := r.comm.library
	f, err := l.frames.take()
	if err != nil {
		return err
	}
	f.put(0)
	if code := call(l.at[r.fn], one(f)); code != 0 {
		l.frames.give(f)
		return l.failure(r.fn, r.with(), code)
	}
	r.open = append(r.open, f)
	return nil
}

// Test reports whether the request is done. One that was never begun is. After an error the
// request is of no more use.
func (r *Request) Test() (bool, error) {
	for len(r.open) > 0 {
		done, err := r.testFirst()
		if !done || err != nil {
			return false, err
		}
	}
	return true, nil
}

// testFirst tests the first open piece.
func (r *Request) testFirst() (bool, error) {
	l, f := r.comm.library, r.open[0]
	code := call(l.at[fTest], arguments{f.request(), f.flag(), f.status()})
	if code != 0 {
		r.open = r.open[:copy(r.open, r.open[1:])] // its frame is never used again: who knows what MPI does with it
		return false, l.failure(r.fn, r.with(), code)
	}
	if f.int32At(flagAt) == 0 {
		return false, nil
	}
	at := statusAt + l.handles.sourceAt
	r.Source, r.Tag = int(f.int32At(at)), int(f.int32At(at+4))
	l.frames.give(f)
	r.open = r.open[:copy(r.open, r.open[1:])]
	return true, nil
}

// Wait waits until the request is done, at most that long. After a *LateError, or when the
// context has ended, the request is still open: MPI may write what it was begun with.
func (r *Request) Wait(ctx context.Context, limit time.Duration) error {
	if done, err := r.Test(); done || err != nil {
		return err
	}
	return r.comm.library.Await(ctx, limit, r.Test, func() error {
		return &LateError{functionNames[r.fn], r.with(),
			limit}
	})
}

// Await looks again and again until done says so or fails, at most that long: then it returns what late does. When the
// context ends it returns its cause too.
func (l *Library) Await(ctx context.Context, limit time.Duration, done func() (bool, error), late func() error) error {
	p := newPace(&l.waits)
	defer p.end()
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(late(), context.Cause(ctx))
		}
		if p.rest() > limit {
			return late()
		}
	}
}

// Cancel gives a receive up that nothing has come for. It is done when Test says so.
func (r *Request) Cancel() error {
	for _, f := range r.open {
		if err := r.comm.library.call(fCancel, r.with(), arguments{f.request()}); err != nil {
			return err
		}
	}
	return nil
}

// Probe reports whether a message from a rank or AnySource, with a tag or AnyTag, can be
// received, and from whom and with which tag.
func (c *Comm) Probe(from, tag int) (source, mark int, ok bool, err error) {
	l := c.library
	f, err := l.frames.take()
	if err != nil {
		return 0, 0, false, err
	}
	defer l.frames.give(f)
	s, t := l.handles.match(from, tag)
	if err := l.call(fIprobe, "", arguments{s, t, uintptr(c.handle), f.flag(), f.status()}); err != nil {
		return 0, 0, false, err
	}
	if f.int32At(flagAt) == 0 {
		return 0, 0, false, nil
	}
	at := statusAt + l.handles.sourceAt
	return int(f.int32At(at)), int(f.int32At(at + 4)), true, nil
}
