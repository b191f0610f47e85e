package mpi

import (
	"context"
	"fmt"
	"time"
	"unsafe"
)

// Comm is a communicator. Any goroutine may use it.
type Comm struct {
	library    *Library
	handle     Handle
	rank, size int
}

// Rank returns which of the processes this one is, from 0.
func (c *Comm) Rank() int { return c.rank }

// Size returns how many processes there are.
func (c *Comm) Size() int { return c.size }

// Library returns the library that the communicator is of.
func (c *Comm) Library() *Library { return c.library }

// Dup returns a communicator of the same processes whose messages never meet those of this
// one. All processes must call it. It waits for the others, at most that long.
func (c *Comm) Dup(ctx context.Context, limit time.Duration) (*Comm, error) {
	f, err := c.library.frames.take()
	if err != nil {
		return nil, err
	}
	f.put(0)
	err = c.together(ctx, limit, fCommIdup, func(request frame) arguments {
		return arguments{uintptr(c.handle), f.request(), request.request()}
	})
	if err != nil {
		return nil, err // MPI may still write into the frame
	}
	defer c.library.frames.give(f)
	return c.library.made(fCommIdup, f)
}

// Split returns the communicator of those processes that give the same color, in the order of
// their keys, then of their ranks. All processes must call it. Colors are not negative. It waits
// for the others, at most that long.
func (c *Comm) Split(ctx context.Context, limit time.Duration, color, key int) (*Comm, error) {
	return c.derived(ctx, limit, fCommSplit, arguments{uintptr(c.handle), uintptr(color), uintptr(key)}, 3)
}

// SplitShared returns the communicator of the processes that can share memory: those of this
// host, or of this container. All processes must call it. It waits for the others, at most that
// long.
func (c *Comm) SplitShared(ctx context.Context, limit time.Duration) (*Comm, error) {
	h := c.library.handles
	return c.derived(ctx, limit, fCommSplitType, arguments{uintptr(c.handle), uintptr(h.shared), 0, uintptr(h.noInfo)}, 4)
}

// derived calls a function that writes a new communicator, as argument number out. The call
// blocks, and MPI has none that does not: one that is not back in time is left behind on its
// thread, with its frame.
func (c *Comm) derived(ctx context.Context, limit time.Duration, fn function, a arguments, out int) (*Comm, error) {
	l := c.library
	f, err := l.frames.take()
	if err != nil {
		return nil, err
	}
	f.put(0)
	a[out] = f.request()
	made := make(chan error, 1)
	go func() { made <- l.call(fn, "", a) }()
	if err := within(ctx, limit, made, functionNames[fn], withAllRanks); err != nil {
		return nil, err // MPI may still write into the frame
	}
	defer l.frames.give(f)
	return l.made(fn, f)
}

// made returns the communicator whose handle a function has written into a frame.
func (l *Library) made(fn function, f frame) (_ *Comm, err error) {
	made := &Comm{library: l, handle: f.handle(l.handles)}
	if made.handle == l.handles.null {
		return nil, fmt.Errorf("%s: the library gave no communicator", functionNames[fn])
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

// returnErrors has failed calls return, and not end the process.
func (c *Comm) returnErrors() error {
	return c.library.call(fCommSetErrhandler, "", arguments{uintptr(c.handle), uintptr(c.library.handles.errorsReturn)})
}

// leastTag is the largest tag that every library has.
const leastTag = 32767

// LargestTag returns the largest tag that messages may have.
func (c *Comm) LargestTag() (int, error) {
	l := c.library
	f, err := l.frames.take()
	if err != nil {
		return 0, err
	}
	defer l.frames.give(f)
	f.put(0)
	if err := l.call(fCommGetAttr, "", arguments{uintptr(l.handles.world), uintptr(l.handles.tagBound), f.request(), f.flag()}); err != nil {
		return 0, err
	}
	at := *(*uintptr)(unsafe.Pointer(&f.bytes[0]))
	copier := symbolOf(l.loaded, "memcpy")
	if f.int32At(flagAt) == 0 || at == 0 || copier == 0 {
		return leastTag, nil
	}
	call(copier, arguments{f.status(), at, 4})
	return max(leastTag, int(f.int32At(statusAt))), nil
}

// Free returns what the communicator holds. All processes must call it, with no request open.
// Freeing twice does nothing.
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
	return c.library.call(fCommFree, "", arguments{f.request()})
}

// Abort ends all processes at once, this one among them, with that exit code. It returns only if
// the library fails to.
func (l *Library) Abort(code int) error {
	return l.call(fAbort, "", arguments{uintptr(l.handles.world), uintptr(code)})
}

// HostName returns what MPI calls this host.
func (l *Library) HostName() (string, error) { return l.text(fGetProcessorName) }
