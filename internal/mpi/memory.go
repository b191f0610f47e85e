package mpi

import (
	"fmt"
	"sync"
	"unsafe"
)

// Memory is host memory outside of the Go heap. MPI may keep its address after a call.
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

// withMemory calls f with zeroed memory. After an error the memory is never freed: MPI may still write to it.
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

// addressOf returns the address of the bytes, 0 for an empty slice.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// A frame is the memory of one request that MPI writes: the request itself, a flag and a status.
type frame struct{ bytes []byte }

const (
	frameBytes = 64
	flagAt     = 8
	statusAt   = 16 // 32 bytes at most
)

// frames is a pool of frames. Their memory is never freed, so that a frame that MPI still uses after its wait was
// abandoned stays valid.
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

// give returns a frame to the pool; MPI must no longer use it.
func (f *frames) give(returned frame) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.free = append(f.free, returned)
}

// request returns the address of the request.
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
