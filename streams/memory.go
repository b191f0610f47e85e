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
	addr   uint64 // address for kernels of a GPU
	bytes  []byte // memory as seen by the CPU; nil for GPU memory
	pinned bool
	// borrowed memory belongs to another process, see OpenShared.
	borrowed bool
	handle   any // owned by the driver
	closed   atomic.Bool
}

// Device returns the device that the memory was allocated on.
func (m *Memory) Device() *Device { return m.device }

// Size returns the size in bytes.
func (m *Memory) Size() int64 { return m.size }

// Address returns the address for kernels of a GPU; 0 on a CPU device.
func (m *Memory) Address() uint64 { return m.addr }

// Bytes returns the memory if the CPU can access it: pinned memory, and memory of a CPU device. It is nil for GPU
// memory. On a CPU device, only kernels of that device may access it while streams run.
func (m *Memory) Bytes() []byte { return m.bytes }

// Pinned reports whether this is pinned host memory.
func (m *Memory) Pinned() bool { return m.pinned }

// All returns the whole block as a span.
func (m *Memory) All() Span { return Span{m, 0, m.size} }

// Span returns bytes [offset, offset+length) of the block.
func (m *Memory) Span(offset, length int64) Span { return Span{m, offset, length} }

// within reports whether kernels of d may access the memory.
func (m *Memory) within(d *Device) bool {
	return m.device == d || m.pinned && m.device.Backend == d.Backend
}

// Close frees the memory. No queued work may still use it. Closing twice is allowed.
func (m *Memory) Close() error {
	m.closed.Store(true)
	return m.device.discard(m, m.free, "free %d bytes", m.size)
}

// free returns the memory to the driver.
func (m *Memory) free() error {
	m.device.count(m, -1)
	return m.device.driver.free(m)
}

// Span is a range of bytes of a Memory.
type Span struct {
	Memory *Memory // nil for an empty span
	Offset int64   // in bytes
	Length int64   // in bytes
}

// Part returns bytes [offset, offset+length) of the span.
func (s Span) Part(offset, length int64) Span { return Span{s.Memory, s.Offset + offset, length} }

// String returns the kind of memory and the range.
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

// Check returns an error unless the span is within its memory and the memory is open.
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
	errBeyond = errors.New("the span must be within its memory")
	errFreed  = errors.New("the memory is closed")
)

// Overlaps reports whether two spans share bytes of one Memory.
func (s Span) Overlaps(t Span) bool {
	return s.Memory == t.Memory && s.Memory != nil && s.Offset < t.Offset+t.Length && t.Offset < s.Offset+s.Length
}

// Address returns the address of the first byte for kernels of a GPU; 0 if there is no memory.
func (s Span) Address() uint64 {
	if s.Memory == nil {
		return 0
	}
	return s.Memory.addr + uint64(s.Offset)
}

// view returns the bytes of the span; only for memory that the CPU can access.
func (s Span) view() []byte { return s.Memory.bytes[s.Offset : s.Offset+s.Length] }

// View returns bytes as a slice of T. It panics unless the size of T divides the number of bytes. The memory must
// be aligned for T, as memory from Alloc is.
func View[T any](bytes []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(bytes)%size != 0 {
		panic(fmt.Sprintf("streams: view: number of bytes must be a multiple of %d, got %d", size, len(bytes)))
	}
	if len(bytes) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/size)
}

// Pitched is the location of a box of bytes: planes of rows at fixed distances. The size of the box is an argument
// of CopyBox.
type Pitched struct {
	Span   Span  // memory that contains the box
	Offset int64 // of the first byte of the box, from the start of the span, in bytes
	Pitch  int64 // distance of rows in bytes, including the row itself; ignored if a plane has one row
	Plane  int64 // distance of planes in bytes, including the plane itself; ignored if there is one plane
}

// String returns the location of the box.
func (p Pitched) String() string {
	return fmt.Sprintf("%v at %d, pitch %d, plane %d", p.Span, p.Offset, p.Pitch, p.Plane)
}

// CopyBox queues a copy of a box of depth planes of height rows of width bytes from src to dst; with a depth of 1
// it is a 2-D copy. Either may be memory of this device, of a peer, or pinned host memory, as in Copy. Rows must
// not overlap, nor planes, nor src and dst.
//
// The distance of planes must be a multiple of the pitch, and the pitch within the limit of the device, 2 GiB on
// current GPUs. For other boxes the error is ErrUnsuited, and nothing is queued. Boxes that can be described with
// fewer dimensions are: those with one row per plane, with contiguous planes, or with rows without gaps. CPU
// devices reject the same boxes as GPUs.
func (s *Stream) CopyBox(dst, src Pitched, width, height, depth int64) error {
	if err := s.usable(); err != nil {
		return err
	}
	b := box{dst, src, width, height, depth}
	err := b.check()
	if err != nil {
		return s.device.fail(err, "copy %v", b)
	}
	if err := s.before(); err != nil {
		return err
	}
	if err := s.copyBox(b.folded(s.device.driver.maxPitch())); err != nil {
		return s.device.fail(err, "copy %v", b)
	}
	return s.after(copied(CopyWork, dst.Span.Memory, src.Span.Memory, width*height*depth))
}

// copyBox queues a checked and folded box.
func (s *Stream) copyBox(b box) error {
	if b.height == 1 {
		return s.queue.copy(b.spans())
	}
	if err := b.suits(s.device.driver.maxPitch()); err != nil {
		return err
	}
	return s.queue.copyBox(b)
}

// box is a copy of a box.
type box struct {
	dst, src             Pitched
	width, height, depth int64
}

// String returns the size, destination and source.
func (b box) String() string {
	return fmt.Sprintf("%d planes of %d rows of %d bytes to %v from %v", b.depth, b.height, b.width, b.dst, b.src)
}

// spans returns the extent of the box at either end, including gaps.
func (b box) spans() (dst, src Span) { return b.span(b.dst), b.span(b.src) }

func (b box) span(p Pitched) Span {
	length := b.width + (b.height-1)*p.Pitch + (b.depth-1)*p.Plane
	return Span{p.Span.Memory, p.Span.Offset + p.Offset, length}
}

// check returns an error if the box exceeds its spans, or overlaps.
func (b box) check() error {
	if b.width < 1 || b.height < 1 || b.depth < 1 {
		return errors.New("width, height and depth must be at least 1")
	}
	if err := b.checkEnd(b.dst); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if err := b.checkEnd(b.src); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	return nil
}

// checkEnd divides instead of multiplying: products of the caller's values may overflow 64 bits. The bytes
// remaining after the last row of a plane bound the next product.
func (b box) checkEnd(p Pitched) error {
	if err := p.Span.Check(); err != nil {
		return err
	}
	if p.Offset < 0 || p.Pitch < 0 || p.Plane < 0 {
		return errors.New("offset, pitch and plane must not be negative")
	}
	past := func() error { return fmt.Errorf("must be within its span of %d bytes", p.Span.Length) }
	if b.width > p.Span.Length || p.Offset > p.Span.Length-b.width {
		return past()
	}
	room, plane := p.Span.Length-p.Offset-b.width, b.width
	if more := b.height - 1; more > 0 {
		if p.Pitch < b.width {
			return fmt.Errorf("rows must not overlap, got rows of %d bytes and a pitch of %d", b.width, p.Pitch)
		}
		if more > room/p.Pitch {
			return past()
		}
		room, plane = room-more*p.Pitch, plane+more*p.Pitch
	}
	if more := b.depth - 1; more > 0 {
		if p.Plane < plane {
			return fmt.Errorf("planes must not overlap, got planes of %d bytes at a distance of %d", plane, p.Plane)
		}
		if more > room/p.Plane {
			return past()
		}
	}
	return nil
}

// folded returns the same box with as few planes and rows as possible. If planes without gaps become rows, their
// distance must be within the limit of a pitch. The distance of rows or planes is unchanged if there is only one.
func (b box) folded(limit int64) box {
	if b.height == 1 {
		b = b.planesAsRows()
	}
	if b.depth > 1 && b.goesOn(b.dst) && b.goesOn(b.src) {
		b.height, b.depth = b.height*b.depth, 1
	}
	dense := b.height > 1 && b.dst.Pitch == b.width && b.src.Pitch == b.width
	if dense && (b.depth == 1 || max(b.dst.Plane, b.src.Plane) <= limit) {
		b = b.planesAsRows()
	}
	return b
}

// planesAsRows returns the 2-D form of a box whose planes have no gaps.
func (b box) planesAsRows() box {
	b.width, b.height, b.depth = b.width*b.height, b.depth, 1
	b.dst.Pitch, b.src.Pitch = b.dst.Plane, b.src.Plane
	return b
}

// goesOn reports whether the first row of each plane is one pitch after the last row of the plane before.
func (b box) goesOn(p Pitched) bool { return p.Plane-(b.height-1)*p.Pitch == p.Pitch }

// suits returns ErrUnsuited for a box of several rows that a device copy cannot describe.
func (b box) suits(limit int64) error {
	for _, p := range [...]Pitched{b.dst, b.src} {
		if p.Pitch > limit {
			return fmt.Errorf("%w: pitch must be at most %d bytes, got %d", ErrUnsuited, limit, p.Pitch)
		}
		if b.depth > 1 && p.Plane%p.Pitch != 0 {
			return fmt.Errorf("%w: the distance of planes, %d bytes, must be a multiple of the pitch, %d", ErrUnsuited,
				p.Plane, p.Pitch)
		}
	}
	return nil
}
