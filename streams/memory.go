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

// Overlaps reports whether two spans have bytes of one Memory in common.
func (s Span) Overlaps(t Span) bool {
	return s.Memory == t.Memory && s.Memory != nil && s.Offset < t.Offset+t.Length && t.Offset < s.Offset+s.Length
}

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

// Pitched is where a box of bytes lies: planes of rows of bytes, at fixed
// distances. The size of the box is CopyBox's to say.
type Pitched struct {
	Span   Span  // the box lies within it
	Offset int64 // of the first byte of the box, from that of the span
	Pitch  int64 // bytes from one row to the next, the row's own included; of no meaning where a plane has one row
	Plane  int64 // bytes from one plane to the next, the plane's own included; of no meaning where there is one plane
}

// String says where the box lies.
func (p Pitched) String() string {
	return fmt.Sprintf("%v at %d, pitch %d, plane %d", p.Span, p.Offset, p.Pitch, p.Plane)
}

// CopyBox queues a copy of a box of depth planes of height rows of width bytes
// from src to dst; a depth of 1 makes it a copy in 2-D. Either may be memory of
// this device, of a peer, or pinned host memory, as in Copy. Rows must not
// overlap, nor planes, nor src and dst.
//
// A device copies boxes whose planes are a whole number of rows apart, and whose
// pitch is not beyond what it takes, 2 GiB on today's GPUs. Of another box the
// error is ErrUnsuited, and nothing was queued. What is a box of fewer
// dimensions counts as such: one row a plane, planes that go on where the last
// one ended, rows without a gap. Host devices refuse the same boxes as GPUs.
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

// copyBox queues a box that was checked and folded.
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

// String says what goes where.
func (b box) String() string {
	return fmt.Sprintf("%d planes of %d rows of %d bytes to %v from %v", b.depth, b.height, b.width, b.dst, b.src)
}

// spans returns what the box spans at either end, gaps included.
func (b box) spans() (dst, src Span) { return b.span(b.dst), b.span(b.src) }

func (b box) span(p Pitched) Span {
	length := b.width + (b.height-1)*p.Pitch + (b.depth-1)*p.Plane
	return Span{p.Span.Memory, p.Span.Offset + p.Offset, length}
}

// check rejects what does not lie in its spans, or overlaps.
func (b box) check() error {
	if b.width < 1 || b.height < 1 || b.depth < 1 {
		return errors.New("a box has a byte, a row and a plane at least")
	}
	if err := b.checkEnd(b.dst); err != nil {
		return fmt.Errorf("the destination: %w", err)
	}
	if err := b.checkEnd(b.src); err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	return nil
}

// checkEnd divides where it could multiply: products of what a caller says may
// not fit in 64 bits. The room that is left after the last row of a plane bounds
// the next product.
func (b box) checkEnd(p Pitched) error {
	if err := p.Span.Check(); err != nil {
		return err
	}
	if p.Offset < 0 || p.Pitch < 0 || p.Plane < 0 {
		return errors.New("it has a negative offset or distance")
	}
	past := func() error { return fmt.Errorf("it reaches past its span of %d bytes", p.Span.Length) }
	if b.width > p.Span.Length || p.Offset > p.Span.Length-b.width {
		return past()
	}
	room, plane := p.Span.Length-p.Offset-b.width, b.width
	if more := b.height - 1; more > 0 {
		if p.Pitch < b.width {
			return fmt.Errorf("rows of %d bytes overlap at a pitch of %d", b.width, p.Pitch)
		}
		if more > room/p.Pitch {
			return past()
		}
		room, plane = room-more*p.Pitch, plane+more*p.Pitch
	}
	if more := b.depth - 1; more > 0 {
		if p.Plane < plane {
			return fmt.Errorf("planes that span %d bytes overlap %d bytes apart", plane, p.Plane)
		}
		if more > room/p.Plane {
			return past()
		}
	}
	return nil
}

// folded returns the same box with as few planes and rows as it can have. Where
// planes without gaps become rows, their distance is not beyond the limit of a
// pitch. The distance between rows or planes is left as it is where there is only one.
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

// planesAsRows returns a box whose planes have no gaps in 2-D.
func (b box) planesAsRows() box {
	b.width, b.height, b.depth = b.width*b.height, b.depth, 1
	b.dst.Pitch, b.src.Pitch = b.dst.Plane, b.src.Plane
	return b
}

// goesOn reports whether the first row of each plane comes one pitch after the
// last row of the plane before.
func (b box) goesOn(p Pitched) bool { return p.Plane-(b.height-1)*p.Pitch == p.Pitch }

// suits rejects with ErrUnsuited a box of several rows that the devices' copies
// cannot be told of.
func (b box) suits(limit int64) error {
	for _, p := range [...]Pitched{b.dst, b.src} {
		if p.Pitch > limit {
			return fmt.Errorf("%w: rows lie %d bytes apart, the device takes %d at most", ErrUnsuited, p.Pitch, limit)
		}
		if b.depth > 1 && p.Plane%p.Pitch != 0 {
			return fmt.Errorf("%w: planes lie %d bytes apart, which is no whole number of rows of %d", ErrUnsuited,
				p.Plane, p.Pitch)
		}
	}
	return nil
}
