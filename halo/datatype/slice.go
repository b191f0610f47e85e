package datatype

import (
	"fmt"
	"slices"
	"sync"
)

// Slice returns the layout of the packed bytes from lo to hi, hi not included: what of the layout they stand for, at the same
// displacements, packed from 0 on. Messages are sent in such fragments. A slice of pieces is pieces, of a list a list; they
// are as many at most as in the whole, but for two a dimension of each piece.
func (l *Layout) Slice(lo, hi int64) (*Layout, error) {
	if lo < 0 || hi < lo || hi > l.size {
		return nil, fmt.Errorf("datatype: bytes %d to %d of a layout of %d", lo, hi, l.size)
	}
	s := &Layout{totals: totals{size: hi - lo}}
	if l.Strided() {
		for _, p := range l.pieces {
			s.pieces = sliceOf(s.pieces, p, lo-p.Offset, hi-p.Offset)
		}
		for i := range s.pieces {
			s.pieces[i].Offset -= lo
		}
		slices.SortFunc(s.pieces, func(p, q Piece) int { return int(p.Offset - q.Offset) })
	} else {
		s.list = sliceOfList(l.list, lo, hi)
	}
	s.bound()
	s.summarise()
	s.key = sync.OnceValue(s.hash)
	return s, nil
}

// sliceOf appends what of a piece lies from byte lo to byte hi of the packed buffer, counted from the piece's offset.
func sliceOf(all []Piece, p Piece, lo, hi int64) []Piece {
	if p.Rank == 0 {
		lo, hi = max(0, lo), min(p.Length, hi)
		if lo < hi {
			p.Displacement, p.Offset, p.Length = p.Displacement+lo, p.Offset+lo, hi-lo
			all = append(all, p)
		}
		return all
	}
	outer := p.Dims[p.Rank-1]
	inner := p
	inner.Rank--
	inner.Dims[inner.Rank] = Dim{}
	at := func(i int64) Piece {
		q := inner
		q.Displacement, q.Offset = p.Displacement+i*outer.Stride, p.Offset+i*outer.Packed
		return q
	}
	extent := inner.end() - inner.Offset // what the repeated piece takes of the packed buffer, gaps included
	whole := [2]int64{clamp(ceilDiv(lo, outer.Packed), outer.Count), clamp(floorDiv(hi-extent, outer.Packed)+1, outer.Count)}
	first, last := clamp(floorDiv(lo, outer.Packed), outer.Count), clamp(ceilDiv(hi, outer.Packed), outer.Count)
	for i := first; i < min(whole[0], last); i++ {
		all = sliceOf(all, at(i), lo-i*outer.Packed, hi-i*outer.Packed)
	}
	if n := whole[1] - whole[0]; n > 0 {
		q := at(whole[0])
		if n > 1 {
			q.Rank, q.Dims[p.Rank-1] = p.Rank, Dim{n, outer.Stride, outer.Packed}
		}
		all = append(all, q)
	}
	for i := max(whole[0], whole[1], first); i < last; i++ {
		all = sliceOf(all, at(i), lo-i*outer.Packed, hi-i*outer.Packed)
	}
	return all
}

func clamp(n, most int64) int64 { return max(0, min(n, most)) }

// sliceOfList returns the blocks that lie from byte lo to byte hi of the packed buffer; not nil, if there are none.
func sliceOfList(list []Block, lo, hi int64) []Block {
	part := []Block{}
	offset := int64(0)
	for _, b := range list {
		from, to := max(lo, offset), min(hi, offset+b.Length)
		if from < to {
			part = append(part, Block{b.Displacement + from - offset, to - from})
		}
		if offset += b.Length; offset >= hi {
			break
		}
	}
	return part
}

// bound computes the bounds from what the layout is made of.
func (l *Layout) bound() {
	first := true
	include := func(lo, hi int64) {
		if first {
			l.trueLB, l.trueUB, first = lo, hi, false
		}
		l.trueLB, l.trueUB = min(l.trueLB, lo), max(l.trueUB, hi)
	}
	for i := range l.pieces {
		include(l.pieces[i].Bounds())
	}
	for _, b := range l.list {
		include(b.Displacement, b.Displacement+b.Length)
	}
}
