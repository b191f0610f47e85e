package mpi

import (
	"fmt"
	"sync"
	"unsafe"
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

// withMemory calls f with zeroed memory. After an error the memory is never freed: MPI may still write into it.
func withMemory(bytes int, f func(m []byte) error) error {
	m, err := NewMemory(max(1, bytes))
	if err != nil {
		return err
	}
	if err := f(m.Bytes); err != nil {
		return err
	}
	m.Free()
	return nil
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
