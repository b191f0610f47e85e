package packing

import "github.com/halox/halox/halo/datatype"

// maxPitch is what rows may be apart for the driver: less than 2^31 bytes.
const maxPitch = 1<<31 - 1

// isBox reports whether the driver copies the piece at once: rows that do not overlap,
// and planes that are whole numbers of rows apart, on both sides.
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
		return pitched(rows.Stride) && pitched(rows.Packed) && stacked(rows.Stride, planes.Stride) && stacked(rows.Packed, planes.Packed)
	}
	return false
}

// eachBox cuts a piece into pieces that the driver copies at once, along its outermost
// dimensions.
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

// calls returns how many copies of the driver's a layout takes.
func calls(l *datatype.Layout) int64 {
	n := int64(len(l.List()))
	for i := range l.Pieces() {
		p := l.Pieces()[i]
		each := int64(1)
		for !isBox(&p) {
			p.Rank--
			each *= p.Dims[p.Rank].Count
		}
		n += each
	}
	return n
}
