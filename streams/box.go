package streams

import (
	"errors"
	"fmt"
)

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

// check refuses what does not lie in its spans, or overlaps.
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
// pitch. A distance between things of which there is one is left as it is.
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

// suits refuses with ErrUnsuited a box of several rows that the devices' copies
// cannot be told of.
func (b box) suits(limit int64) error {
	for _, p := range [...]Pitched{b.dst, b.src} {
		if p.Pitch > limit {
			return fmt.Errorf("%w: rows lie %d bytes apart, the device takes %d at most", ErrUnsuited, p.Pitch, limit)
		}
		if b.depth > 1 && p.Plane%p.Pitch != 0 {
			return fmt.Errorf("%w: planes lie %d bytes apart, which is no whole number of rows of %d", ErrUnsuited, p.Plane, p.Pitch)
		}
	}
	return nil
}
