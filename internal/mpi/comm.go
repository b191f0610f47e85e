package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/dl"
)

// Comm is a communicator. Any goroutine may use it.
type Comm struct {
	library    *Library
	handle     Handle
	rank, size int
}

// Rank returns the rank of this process, from 0.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of processes.
func (c *Comm) Size() int { return c.size }

// Library returns the library of the communicator.
func (c *Comm) Library() *Library { return c.library }

// Dup returns a communicator of the same processes with separate messages. All processes must call it. It waits for the
// others, at most for the limit.
func (c *Comm) Dup(ctx context.Context, limit time.Duration) (*Comm, error) {
	f, err := c.library.frames.take()
	if err != nil {
		return nil, err
	}
	f.put(0)
	if err := c.together(ctx, limit, fCommIdup, uintptr(c.handle), f.request()); err != nil {
		return nil, err // MPI may still write into the frame
	}
	defer c.library.frames.give(f)
	return c.library.made(fCommIdup, f)
}

// Split returns the communicator of the processes with the same color, ordered by key, then by rank. All processes must
// call it. Colors are not negative. It waits for the others, at most for the limit.
//
// The call blocks, and MPI has no non-blocking one: a call that exceeds the limit is abandoned on its thread, with its
// frame.
func (c *Comm) Split(ctx context.Context, limit time.Duration, color, key int) (*Comm, error) {
	l := c.library
	f, err := l.frames.take()
	if err != nil {
		return nil, err
	}
	f.put(0)
	made := make(chan error, 1)
	go func() {
		made <- l.call(fCommSplit, "", dl.Args{uintptr(c.handle), uintptr(color), uintptr(key), f.request()})
	}()
	if err := await(ctx, limit, made, functionNames[fCommSplit], withAllRanks); err != nil {
		return nil, err // MPI may still write into the frame
	}
	defer l.frames.give(f)
	return l.made(fCommSplit, f)
}

// made returns the communicator whose handle is in a frame.
func (l *Library) made(fn function, f frame) (_ *Comm, err error) {
	made := &Comm{library: l, handle: f.handle(l.handles)}
	if made.handle == l.handles.null {
		return nil, fmt.Errorf("%s: the library returned no communicator", functionNames[fn])
	}
	if err := made.returnErrors(); err != nil {
		return nil, err
	}
	if made.rank, err = l.asks(fCommRank, uintptr(made.handle)); err != nil {
		return nil, err
	}
	made.size, err = l.asks(fCommSize, uintptr(made.handle))
	return made, err
}

// returnErrors makes failed calls return instead of ending the process.
func (c *Comm) returnErrors() error {
	return c.library.call(fCommSetErrhandler, "", dl.Args{uintptr(c.handle), uintptr(c.library.handles.errorsReturn)})
}

// minTagBound is the smallest value of MPI_TAG_UB that MPI allows.
const minTagBound = 32767

// LargestTag returns the largest tag that messages may have.
func (c *Comm) LargestTag() (int, error) {
	l := c.library
	f, err := l.frames.take()
	if err != nil {
		return 0, err
	}
	defer l.frames.give(f)
	f.put(0)
	a := dl.Args{uintptr(l.handles.world), uintptr(l.handles.tagBound), f.request(), f.flag()}
	if err := l.call(fCommGetAttr, "", a); err != nil {
		return 0, err
	}
	bound := *(**int32)(unsafe.Pointer(&f.bytes[0]))
	if f.int32At(flagAt) == 0 || bound == nil {
		return minTagBound, nil
	}
	return max(minTagBound, int(*bound)), nil
}

// Free frees the communicator. All processes must call it, with no pending request. Freeing twice does nothing.
func (c *Comm) Free() error {
	if c.handle == c.library.handles.null {
		return nil
	}
	f, err := c.library.frames.take()
	if err != nil {
		return err
	}
	defer c.library.frames.give(f)
	f.put(c.handle)
	c.handle = c.library.handles.null
	return c.library.call(fCommFree, "", dl.Args{f.request()})
}

// quietAbort is MPI_Abort of Open MPI without the eight lines that it prints.
const quietAbort = "ompi_mpi_abort"

// Abort ends all processes at once, including this one, with the exit code. It returns only if the library fails. The
// caller must print the reason first.
func (l *Library) Abort(code int) error {
	if at := l.loaded.Symbol(quietAbort); at != 0 && l.Family == OpenMPI {
		dl.Call(at, dl.Args{uintptr(l.handles.world), uintptr(code)})
	}
	return l.call(fAbort, "", dl.Args{uintptr(l.handles.world), uintptr(code)})
}

// HostName returns MPI's name of this host.
func (l *Library) HostName() (string, error) { return l.text(fGetProcessorName) }

// Barrier returns when all processes have called it, or an error after the limit.
func (c *Comm) Barrier(ctx context.Context, limit time.Duration) error {
	return c.together(ctx, limit, fIbarrier, uintptr(c.handle))
}

// together starts a collective call, with a request after the arguments, and waits for it.
func (c *Comm) together(ctx context.Context, limit time.Duration, fn function, arguments ...uintptr) error {
	r := &Request{}
	if err := r.begin(c, fn, allRanks, 0); err != nil {
		return err
	}
	if err := r.add(arguments...); err != nil {
		return err
	}
	return r.Wait(ctx, limit)
}

// Broadcast returns, on all processes, the bytes of the root; those of others are ignored. All must call it.
func (c *Comm) Broadcast(ctx context.Context, limit time.Duration, b []byte, root int) ([]byte, error) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(b)))
	if err := c.broadcast(ctx, limit, length[:], root); err != nil {
		return nil, err
	}
	all := make([]byte, binary.LittleEndian.Uint64(length[:]))
	if c.rank == root {
		copy(all, b)
	}
	for piece := range slices.Chunk(all, c.library.most) {
		if err := c.broadcast(ctx, limit, piece, root); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// broadcast is one call.
func (c *Comm) broadcast(ctx context.Context, limit time.Duration, b []byte, root int) error {
	return withMemory(len(b), func(m []byte) error {
		copy(m, b)
		err := c.together(ctx, limit, fIbcast, addressOf(m), uintptr(len(b)), uintptr(c.library.handles.byteType),
			uintptr(root), uintptr(c.handle))
		copy(b, m)
		return err
	})
}

// Allgather returns the bytes of all processes, by rank. All must call it; the total must be at most 1 GiB.
func (c *Comm) Allgather(ctx context.Context, limit time.Duration, b []byte) (all [][]byte, err error) {
	lengths, total := make([]int, c.size), 0
	kind := uintptr(c.library.handles.byteType)
	err = withMemory(8+8*c.size, func(m []byte) error {
		binary.LittleEndian.PutUint64(m, uint64(len(b)))
		at := addressOf(m)
		if err := c.together(ctx, limit, fIallgather, at, 8, kind, at+8, 8, kind, uintptr(c.handle)); err != nil {
			return err
		}
		for i := range lengths {
			lengths[i] = int(binary.LittleEndian.Uint64(m[8+8*i:]))
			total += lengths[i]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if total > c.library.most {
		return nil, fmt.Errorf("MPI_Iallgatherv with all ranks: must be at most %d bytes in total, got %d",
			c.library.most, total)
	}
	// The memory has the counts, the offsets, this process's piece and all pieces.
	offsets, mine := 4*c.size, 8*c.size
	pieces := mine + len(b)
	err = withMemory(pieces+total, func(m []byte) error {
		offset := 0
		for i, n := range lengths {
			binary.LittleEndian.PutUint32(m[4*i:], uint32(n))
			binary.LittleEndian.PutUint32(m[offsets+4*i:], uint32(offset))
			offset += n
		}
		copy(m[mine:], b)
		at := func(offset int) uintptr { return addressOf(m) + uintptr(offset) }
		err := c.together(ctx, limit, fIallgatherv, at(mine), uintptr(len(b)), kind,
			at(pieces), at(0), at(offsets), kind, uintptr(c.handle))
		if err != nil {
			return err
		}
		for rest := slices.Clone(m[pieces : pieces+total]); len(all) < c.size; {
			n := lengths[len(all)]
			all, rest = append(all, rest[:n:n]), rest[n:]
		}
		return nil
	})
	return all, err
}

// Request is a pending message or collective call. The zero value is not pending. It can be reused once Test or Wait
// reports that it is done. One goroutine may use it at a time.
type Request struct {
	comm *Comm
	fn   function
	peer int // the other rank; allRanks for a collective call
	tag  int
	open []frame // requests of the pieces that are not done
}

const allRanks = -2

// withAllRanks describes the ranks of a collective call in errors.
const withAllRanks = "with all ranks"

// with describes the other rank and the tag.
func (r *Request) with() string {
	switch {
	case r.peer == allRanks:
		return withAllRanks
	case r.fn == fIsend:
		return fmt.Sprintf("to rank %d, tag %d", r.peer, r.tag)
	}
	return fmt.Sprintf("from rank %d, tag %d", r.peer, r.tag)
}

// begin prepares the request for calls of a function.
func (r *Request) begin(c *Comm, fn function, peer, tag int) error {
	if len(r.open) > 0 {
		return fmt.Errorf("mpi: %s %s is still pending", functionNames[r.fn], r.with())
	}
	r.comm, r.fn, r.peer, r.tag = c, fn, peer, tag
	return nil
}

// Isend begins to send the bytes to a rank. They must not be Go memory, see Memory, and must not change until the
// request is done. More than 1 GiB is sent in several pieces, for which the receiver must request exactly as many
// bytes.
func (c *Comm) Isend(r *Request, b []byte, to, tag int) error {
	return c.IsendAt(r, addressOf(b), len(b), to, tag)
}

// IsendAt is Isend of bytes at an address, which may be GPU memory if the library supports that.
func (c *Comm) IsendAt(r *Request, address uintptr, bytes, to, tag int) error {
	return c.message(r, fIsend, address, bytes, to, tag)
}

// Irecv begins to receive a message of at most len(b) bytes from a rank. It must not be Go memory. A longer message is
// an error. A message of more than 1 GiB must have exactly len(b) bytes.
func (c *Comm) Irecv(r *Request, b []byte, from, tag int) error {
	return c.IrecvAt(r, addressOf(b), len(b), from, tag)
}

// IrecvAt is Irecv to an address, as IsendAt.
func (c *Comm) IrecvAt(r *Request, address uintptr, bytes, from, tag int) error {
	return c.message(r, fIrecv, address, bytes, from, tag)
}

// message makes one call for each piece of the bytes, or one call for zero bytes. Messages of one rank, communicator
// and tag arrive in order.
func (c *Comm) message(r *Request, fn function, address uintptr, bytes, peer, tag int) error {
	if err := r.begin(c, fn, peer, tag); err != nil {
		return err
	}
	for first := true; first || bytes > 0; first = false {
		n := min(bytes, c.library.most)
		err := r.add(
			address, uintptr(n), uintptr(c.library.handles.byteType), uintptr(peer), uintptr(tag), uintptr(c.handle),
		)
		if err != nil {
			return err
		}
		address, bytes = address+uintptr(n), bytes-n
	}
	return nil
}

// add calls the request's function with the given arguments and a frame, to which it writes an MPI_Request.
func (r *Request) add(first ...uintptr) error {
	l := r.comm.library
	f, err := l.frames.take()
	if err != nil {
		return err
	}
	f.put(0)
	var a dl.Args
	a[copy(a[:], first)] = f.request()
	if code := dl.Call(l.at[r.fn], a); code != 0 {
		l.frames.give(f)
		return l.failure(r.fn, r.with(), code)
	}
	r.open = append(r.open, f)
	return nil
}

// Test reports whether the request is done, which it also does for one that was never begun. After an error the request
// cannot be used.
func (r *Request) Test() (bool, error) {
	for len(r.open) > 0 {
		l, f := r.comm.library, r.open[0]
		code := dl.Call(l.at[fTest], dl.Args{f.request(), f.flag(), f.status()})
		if code == 0 && f.int32At(flagAt) == 0 {
			return false, nil
		}
		r.open = r.open[:copy(r.open, r.open[1:])]
		if code != 0 { // the frame is never used again: MPI may still write into it
			return false, l.failure(r.fn, r.with(), code)
		}
		l.frames.give(f)
	}
	return true, nil
}

// Wait waits until the request is done, at most for the limit. After a *LateError, or if the context ended, the request
// is still pending: MPI may write to its memory.
func (r *Request) Wait(ctx context.Context, limit time.Duration) error {
	if done, err := r.Test(); done || err != nil {
		return err
	}
	late := func() error { return &LateError{functionNames[r.fn], r.with(), limit} }
	return r.comm.library.Await(ctx, limit, r.Test, late)
}

// Await polls until done returns true or an error, at most for the limit: then it returns the result of late. If the
// context ends, the error also has its cause.
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

// Cancel cancels a receive for which nothing has arrived. Test reports when that is done.
func (r *Request) Cancel() error {
	for _, f := range r.open {
		if err := r.comm.library.call(fCancel, r.with(), dl.Args{f.request()}); err != nil {
			return err
		}
	}
	return nil
}

// Spin sets how many waits at a time may poll without sleeping, for up to 50 ms each, and how many calls of Linger;
// before it is called no wait does so for longer than 50 us. Libraries that send large messages in pieces make progress
// only within calls, and need it. Each such wait costs a core.
func (l *Library) Spin(most int) {
	l.waits.most.Store(int32(most))
	l.idle.most.Store(int32(most))
}

// lingerFor is how long a thread without work polls for more: longer than most steps. Waking a sleeping thread takes as
// long as a message of about 100 KiB.
const lingerFor = 2 * time.Millisecond

// Linger polls came without sleeping, for up to 2 ms, and reports whether it returned true. It returns false at once if
// as many other calls poll as Spin allows.
func (l *Library) Linger(came func() bool) bool {
	if !l.idle.take() {
		return false
	}
	defer l.idle.give()
	for wait := spinning.Begin(); wait.Pause() < lingerFor; {
		if came() {
			return true
		}
	}
	return false
}

// await waits for the result of a call that cannot be canceled.
func await(ctx context.Context, limit time.Duration, done <-chan error, name, with string) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return &LateError{name, with, limit}
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
}
