package packing

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/streams"
)

// Copies is the driver's 1-, 2- and 3-D copies (HAND's DT).
const Copies Engine = "copies"

var copiesEngine = engine{Copies, 1, (*Packer).copies}

// maxCopies is the maximum number of driver copies of a job.
const maxCopies = 1 << 14

// boxCopy is one driver copy.
type boxCopy struct {
	dst, src             streams.Pitched
	width, height, depth int64
}

// copies makes a job of driver copies: one per three dimensions of a piece if the driver can copy them at
// once, otherwise one per two or one dimensions, and one per block of a list.
func (p *Packer) copies(j *Job, t *task) error {
	l := t.message.Layout
	var all []boxCopy
	add := func(c datatype.Piece) error {
		if all = append(all, t.box(&c)); len(all) > maxCopies {
			return fmt.Errorf("%w: it needs more than %d copies", ErrUnsuited, maxCopies)
		}
		return nil
	}
	for _, piece := range l.Pieces() {
		if err := eachBox(piece, add); err != nil {
			return err
		}
	}
	if !l.Strided() {
		for offset, b := range l.Blocks() {
			if err := add(datatype.Piece{Displacement: b.Displacement, Offset: offset, Length: b.Length}); err != nil {
				return err
			}
		}
	}
	j.most = len(all)
	j.queue = func(s *streams.Stream) error {
		for i := range all {
			c := &all[i]
			if err := s.CopyBox(c.dst, c.src, c.width, c.height, c.depth); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// box returns the copy of a piece of at most three dimensions.
func (t *task) box(p *datatype.Piece) boxCopy {
	place := streams.Pitched{Span: t.place.Data, Offset: t.place.Origin + p.Displacement}
	packed := streams.Pitched{Span: t.packed, Offset: p.Offset}
	c := boxCopy{width: p.Length, height: 1, depth: 1}
	if p.Rank > 0 {
		c.height, place.Pitch, packed.Pitch = p.Dims[0].Count, p.Dims[0].Stride, p.Dims[0].Packed
	}
	if p.Rank > 1 {
		c.depth, place.Plane, packed.Plane = p.Dims[1].Count, p.Dims[1].Stride, p.Dims[1].Packed
	}
	c.dst, c.src = packed, place
	if t.unpack {
		c.dst, c.src = place, packed
	}
	return c
}

// maxPitch is the maximum pitch of rows that the driver supports, in bytes.
const maxPitch = 1<<31 - 1

// isBox reports whether the driver can copy the piece at once: rows must not overlap, and the distance of
// planes must be a multiple of that of rows, on both sides.
func isBox(p *datatype.Piece) bool {
	pitched := func(stride int64) bool { return stride >= p.Length && stride <= maxPitch }
	switch p.Rank {
	case 0:
		return true
	case 1:
		return pitched(p.Dims[0].Stride) && pitched(p.Dims[0].Packed)
	case 2:
		rows, planes := p.Dims[0], p.Dims[1]
		stacked := func(row, plane int64) bool { return plane >= row*rows.Count && plane%row == 0 }
		return pitched(rows.Stride) && pitched(rows.Packed) && stacked(rows.Stride, planes.Stride) &&
			stacked(rows.Packed, planes.Packed)
	}
	return false
}

// eachBox divides a piece into pieces that the driver can copy at once, along its outermost dimensions.
func eachBox(p datatype.Piece, f func(datatype.Piece) error) error {
	if isBox(&p) {
		return f(p)
	}
	p.Rank--
	outer := p.Dims[p.Rank]
	for range outer.Count {
		if err := eachBox(p, f); err != nil {
			return err
		}
		p.Displacement += outer.Stride
		p.Offset += outer.Packed
	}
	return nil
}
