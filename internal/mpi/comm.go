package mpi

import (
	"context"
	"encoding/binary"
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
	return c.derived(ctx, limit, fCommSplitType, arguments{uintptr(c.handle), uintptr(h.shared), 0, uintptr(h.noInfo)},
		4)
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
	if err := l.call(fCommGetAttr, "", arguments{uintptr(l.handles.world), uintptr(l.handles.tagBound), f.request(),
		f.flag()}); err != nil {
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

// Barrier returns when all processes have called it, or an error after that long.
func (c *Comm) Barrier(ctx context.Context, limit time.Duration) error {
	return c.together(ctx, limit, fIbarrier, func(f frame) arguments {
		return arguments{uintptr(c.handle), f.request()}
	})
}

// together makes one collective call and waits for it.
func (c *Comm) together(ctx context.Context, limit time.Duration, fn function, one func(frame) arguments) error {
	r := &Request{}
	if err := r.begin(c, fn, allRanks, 0); err != nil {
		return err
	}
	if err := r.add(one); err != nil {
		return err
	}
	return r.Wait(ctx, limit)
}

// Broadcast returns, on all processes, the bytes that the root has given. All must call it;
// what others than the root give is not looked at.
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
	for at := 0; at < len(all); at += c.library.most {
		if err := c.broadcast(ctx, limit, all[at:min(len(all), at+c.library.most)], root); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// broadcast is one call, through memory that stays as it is when the wait is given up.
func (c *Comm) broadcast(ctx context.Context, limit time.Duration, b []byte, root int) error {
	m, err := NewMemory(max(1, len(b)))
	if err != nil {
		return err
	}
	copy(m.Bytes, b)
	err = c.together(ctx, limit, fIbcast, func(f frame) arguments {
		return arguments{addressOf(m.Bytes), uintptr(len(b)), uintptr(c.library.handles.byteType), uintptr(root),
			uintptr(c.handle), f.request()}
	})
	if err != nil {
		return err // MPI may still write into the memory
	}
	copy(b, m.Bytes)
	m.Free()
	return nil
}

// Allgather returns what each process has given, by rank. All must call it; together they may
// give 1 GiB.
func (c *Comm) Allgather(ctx context.Context, limit time.Duration, b []byte) ([][]byte, error) {
	lengths, err := c.allgatherLengths(ctx, limit, len(b))
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for _, n := range lengths {
		total += n
	}
	if total > int64(c.library.most) {
		return nil, fmt.Errorf("MPI_Iallgatherv with all ranks: %d bytes together; at most %d are possible", total,
			c.library.most)
	}
	return c.allgather(ctx, limit, b, lengths, int(total))
}

// allgatherLengths returns how many bytes each process gives.
func (c *Comm) allgatherLengths(ctx context.Context, limit time.Duration, n int) ([]int64, error) {
	m, err := NewMemory(8 + 8*c.size)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(m.Bytes, uint64(n))
	kind := uintptr(c.library.handles.byteType)
	err = c.together(ctx, limit, fIallgather, func(f frame) arguments {
		return arguments{addressOf(m.Bytes), 8, kind, addressOf(m.Bytes) + 8, 8, kind, uintptr(c.handle), f.request()}
	})
	if err != nil {
		return nil, err // MPI may still write into the memory
	}
	lengths := make([]int64, c.size)
	for i := range lengths {
		lengths[i] = int64(binary.LittleEndian.Uint64(m.Bytes[8+8*i:]))
	}
	m.Free()
	return lengths, nil
}

// allgather gathers pieces of known lengths. The memory has the counts, the places, this
// process's piece and all pieces.
func (c *Comm) allgather(ctx context.Context, limit time.Duration, b []byte, lengths []int64, total int) ([][]byte,
	error) {
	countsAt, placesAt, mineAt := 0, 4*c.size, 8*c.size
	allAt := mineAt + len(b)
	m, err := NewMemory(allAt + max(1, total))
	if err != nil {
		return nil, err
	}
	place := int64(0)
	for i, n := range lengths {
		binary.LittleEndian.PutUint32(m.Bytes[countsAt+4*i:], uint32(n))
		binary.LittleEndian.PutUint32(m.Bytes[placesAt+4*i:], uint32(place))
		place += n
	}
	copy(m.Bytes[mineAt:], b)
	base, kind := addressOf(m.Bytes), uintptr(c.library.handles.byteType)
	err = c.together(ctx, limit, fIallgatherv, func(f frame) arguments {
		return arguments{base + uintptr(mineAt), uintptr(len(b)), kind, base + uintptr(allAt), base + uintptr(countsAt),
			base + uintptr(placesAt), kind, uintptr(c.handle), f.request()}
	})
	if err != nil {
		return nil, err // MPI may still write into the memory
	}
	all := make([][]byte, c.size)
	place = int64(allAt)
	for i, n := range lengths {
		all[i] = append([]byte(nil), m.Bytes[place:place+n]...)
		place += n
	}
	m.Free()
	return all, nil
}
