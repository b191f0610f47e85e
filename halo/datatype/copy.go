package datatype

import "fmt"

// Pack copies the bytes of the layout from src to the start of dst. Displacement 0 lies at src[origin]. It allocates
// nothing.
//
// An error says that dst is too short or that the layout reaches out of src; then nothing was copied.
func (l *Layout) Pack(dst, src []byte, origin int64) error {
	if err := fits(len(dst), len(src), origin, l.size, l.trueLB, l.trueUB); err != nil {
		return fmt.Errorf("datatype: pack: %w", err)
	}
	l.rows(func(r row) {
		copyRow(dst, r.offset, r.Packed, src, origin+r.displacement, r.Stride, r.Count, r.length)
	})
	return nil
}

// Unpack copies packed bytes from the start of src to where they lie in dst, and touches no other byte. Where the layout
// overlaps itself it is not said which bytes stay.
func (l *Layout) Unpack(dst []byte, origin int64, src []byte) error {
	if err := fits(len(src), len(dst), origin, l.size, l.trueLB, l.trueUB); err != nil {
		return fmt.Errorf("datatype: unpack: %w", err)
	}
	l.rows(func(r row) {
		copyRow(dst, origin+r.displacement, r.Stride, src, r.offset, r.Packed, r.Count, r.length)
	})
	return nil
}

// A row is blocks of one length, repeated over one dimension.
type row struct {
	displacement, offset, length int64
	Dim
}

// rows calls f for all rows of the layout.
func (l *Layout) rows(f func(row)) {
	for i := range l.pieces {
		l.pieces[i].rows(f)
	}
	offset := int64(0)
	for _, b := range l.list {
		f(row{b.Displacement, offset, b.Length, Dim{Count: 1}})
		offset += b.Length
	}
}

// rows calls f for all rows of the piece: its blocks over the innermost dimension.
func (p *Piece) rows(f func(row)) {
	if p.Rank == 0 {
		f(row{p.Displacement, p.Offset, p.Length, Dim{Count: 1}})
		return
	}
	outer := *p
	outer.Rank--
	copy(outer.Dims[:], p.Dims[1:])
	c := cursor{piece: &outer, displacement: p.Displacement, offset: p.Offset}
	for more := true; more; more = c.next() {
		f(row{c.displacement, c.offset, p.Length, p.Dims[0]})
	}
}

// copyRow copies count blocks of length bytes, whose starts are steps apart on both sides.
func copyRow(dst []byte, to, toStep int64, src []byte, from, fromStep, count, length int64) {
	switch length {
	case 4:
		for range count {
			*(*[4]byte)(dst[to:]) = *(*[4]byte)(src[from:])
			to, from = to+toStep, from+fromStep
		}
	case 8:
		for range count {
			*(*[8]byte)(dst[to:]) = *(*[8]byte)(src[from:])
			to, from = to+toStep, from+fromStep
		}
	case 16:
		for range count {
			*(*[16]byte)(dst[to:]) = *(*[16]byte)(src[from:])
			to, from = to+toStep, from+fromStep
		}
	default:
		for range count {
			copy(dst[to:to+length], src[from:])
			to, from = to+toStep, from+fromStep
		}
	}
}
