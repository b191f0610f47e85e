package mpi

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/poll"
)

// Memory is memory of the host that Go's collector does not know. MPI may keep its address
// beyond a call.
type Memory struct {
	Bytes []byte
}

// NewMemory allocates zeroed memory. Free returns it.
func NewMemory(bytes int) (*Memory, error) {
	if bytes < 1 {
		return nil, fmt.Errorf("mpi: %d bytes of memory", bytes)
	}
	m, err := mapMemory(bytes)
	if err != nil {
		return nil, fmt.Errorf("mpi: %d bytes of memory: %w", bytes, err)
	}
	return &Memory{Bytes: m}, nil
}

// Free returns the memory, which MPI must no longer use. Freeing twice does nothing.
func (m *Memory) Free() {
	if m != nil && m.Bytes != nil {
		unmapMemory(m.Bytes)
		m.Bytes = nil
	}
}

// addressOf returns where the bytes lie, 0 of none.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// A frame is what one request needs where MPI writes: the request itself, a flag and a status.
type frame struct{ bytes []byte }

const (
	frameBytes = 64
	flagAt     = 8
	statusAt   = 16 // 32 bytes at most
)

// frames lends frames. The memory that they lie in is never returned, so that one that MPI
// still knows when its wait was given up stays valid.
type frames struct {
	lock sync.Mutex
	free []frame
}

const framesAtOnce = 1024

// take returns a frame for one request.
func (f *frames) take() (frame, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if len(f.free) == 0 {
		m, err := mapMemory(framesAtOnce * frameBytes)
		if err != nil {
			return frame{}, fmt.Errorf("mpi: memory for requests: %w", err)
		}
		for i := range framesAtOnce {
			f.free = append(f.free, frame{m[i*frameBytes : (i+1)*frameBytes : (i+1)*frameBytes]})
		}
	}
	last := len(f.free) - 1
	taken := f.free[last]
	f.free = f.free[:last]
	return taken, nil
}

// give takes a frame back, which MPI must no longer know.
func (f *frames) give(returned frame) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.free = append(f.free, returned)
}

// request returns where the request lies.
func (f frame) request() uintptr { return addressOf(f.bytes) }
func (f frame) flag() uintptr    { return f.request() + flagAt }
func (f frame) status() uintptr  { return f.request() + statusAt }

// int32At reads an int of the frame.
func (f frame) int32At(offset int) int32 {
	return *(*int32)(unsafe.Pointer(&f.bytes[offset]))
}

// handle reads the handle at the beginning of the frame.
func (f frame) handle(h handles) Handle {
	if h.handleIs32Bit {
		return Handle(uint32(f.int32At(0)))
	}
	return *(*Handle)(unsafe.Pointer(&f.bytes[0]))
}

// put writes the handle at the beginning of the frame.
func (f frame) put(h Handle) { *(*uint64)(unsafe.Pointer(&f.bytes[0])) = uint64(h) }

// waits limits how many loops of a process poll MPI without sleeping. Libraries make progress within calls alone, so
// while all loops sleep a large message rests. One loop that polls makes progress for the messages of all.
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

// How loops wait that may poll without sleeping, and others.
var (
	spinning = poll.Policy{
		Spin: 50 * time.Millisecond, YieldEvery: 50 * time.Microsecond,
		Share: 8, Min: 20 * time.Microsecond, Max: 500 * time.Microsecond,
	}
	yielding = poll.Policy{
		YieldFor: 50 * time.Microsecond, Share: 8, Min: 20 * time.Microsecond, Max: 500 * time.Microsecond,
	}
)

// pace is a wait of a loop, and its place among those that may poll without sleeping, if it has one.
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

// rest waits a little and returns how long the loop has waited.
func (p *pace) rest() time.Duration {
	waited := p.Pause()
	if waited >= spinning.Spin {
		p.end()
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

// Spin lets at most so many waits at a time poll without sleeping, for up to 50 ms each, and as many calls of Linger;
// before it is called no wait does for longer than 50 us. Libraries that carry large messages in pieces make progress
// within calls alone, and so need it. It costs a core for each such wait.
func (l *Library) Spin(most int) {
	l.waits.most.Store(int32(most))
	l.idle.most.Store(int32(most))
}

// lingerFor is how long a thread without work polls for more: longer than most steps take. A thread that sleeps takes
// as long to wake as a message of some 100 KiB takes to arrive.
const lingerFor = 2 * time.Millisecond

// Linger polls came without sleeping, for up to 2 ms, and reports whether it returned true. It returns false at once
// where as many other calls poll as Spin allows.
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
