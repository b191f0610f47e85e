package streams

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Memory is a block of device memory or of pinned host memory.
type Memory struct {
	device *Device
	size   int64
	addr   uint64 // where kernels of a GPU find it
	bytes  []byte // where the CPU finds it; nil for memory of a GPU
	pinned bool
	handle any // the driver's own
	closed atomic.Bool
}

// Device returns the device that the memory was allocated on.
func (m *Memory) Device() *Device { return m.device }

// Size returns the size in bytes.
func (m *Memory) Size() int64 { return m.size }

// Address returns the address that kernels of a GPU use; 0 on a host device.
func (m *Memory) Address() uint64 { return m.addr }

// Bytes returns the memory as the CPU sees it: pinned memory, and memory of
// a host device. It is nil for memory of a GPU. On a host device, only kernels
// of that device may touch it while streams run.
func (m *Memory) Bytes() []byte { return m.bytes }

// Pinned reports whether this is host memory.
func (m *Memory) Pinned() bool { return m.pinned }

// All returns the whole block as a span.
func (m *Memory) All() Span { return Span{m, 0, m.size} }

// Span returns bytes [offset, offset+length) of the block.
func (m *Memory) Span(offset, length int64) Span { return Span{m, offset, length} }

// within reports whether kernels of d may touch the memory.
func (m *Memory) within(d *Device) bool {
	return m.device == d || m.pinned && m.device.Backend == d.Backend
}

// Close frees the memory. Nothing queued may still use it. Closing twice is no
// error.
func (m *Memory) Close() error {
	m.closed.Store(true)
	return m.device.discard(m, m.free, "free %d bytes", m.size)
}

// free gives the memory back.
func (m *Memory) free() error {
	m.device.count(m, -1)
	return m.device.driver.free(m)
}

// Span is a part of a Memory, in bytes.
type Span struct {
	Memory *Memory
	Offset int64
	Length int64
}

// String says what the span is part of and where it lies.
func (s Span) String() string {
	if s.Memory == nil {
		return "no memory"
	}
	kind := s.Memory.device.String()
	if s.Memory.pinned {
		kind = "pinned memory"
	}
	return fmt.Sprintf("%s [%d, %d) of %d bytes", kind, s.Offset, s.Offset+s.Length, s.Memory.size)
}

// Check returns an error unless the span lies within its memory, which is not closed.
func (s Span) Check() error {
	switch {
	case s.Memory == nil || s.Offset < 0 || s.Length < 0 || s.Offset > s.Memory.size-s.Length:
		return errBeyond
	case s.Memory.closed.Load():
		return errFreed
	}
	return nil
}

var (
	errBeyond = errors.New("the span is not within its memory")
	errFreed  = errors.New("the memory is closed")
)

// Address returns the address of the first byte that kernels of a GPU use; 0 where there is no
// memory.
func (s Span) Address() uint64 {
	if s.Memory == nil {
		return 0
	}
	return s.Memory.addr + uint64(s.Offset)
}

// view returns the bytes of the span; only for memory that the CPU sees.
func (s Span) view() []byte { return s.Memory.bytes[s.Offset : s.Offset+s.Length] }

// View returns bytes as a slice of T, whose size must divide the number of
// bytes; the memory must be aligned for T, as Alloc's is.
func View[T any](bytes []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(bytes)%size != 0 {
		panic(fmt.Sprintf("streams: %d bytes are no whole number of elements of %d bytes", len(bytes), size))
	}
	if len(bytes) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/size)
}
