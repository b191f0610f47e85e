package datatype

import (
	"cmp"
	"slices"
)

// A pattern is what a part of a type occupies: pieces in the order of their offsets, or a list of blocks in pack order. It
// is not changed once made. The zero value is empty.
type pattern struct {
	pieces []Piece
	list   []Block // more than MaxPieces blocks, if not nil
	size   int64   // bytes when packed
}

// blockPattern returns the pattern of one block.
func blockPattern(b Block) pattern {
	return pattern{pieces: []Piece{{Displacement: b.Displacement, Length: b.Length}}, size: b.Length}
}

// single returns the only block of a pattern that has just one.
func (p pattern) single() (Block, bool) {
	if len(p.pieces) != 1 || p.pieces[0].Rank > 0 {
		return Block{}, false
	}
	return Block{Displacement: p.pieces[0].Displacement, Length: p.pieces[0].Length}, true
}

// isFlat reports whether no piece has a repetition.
func (p pattern) isFlat() bool {
	return !slices.ContainsFunc(p.pieces, func(q Piece) bool { return q.Rank > 0 })
}

// blocks returns the number of blocks.
func (p pattern) blocks() int64 {
	n := int64(len(p.list))
	for i := range p.pieces {
		n += p.pieces[i].Blocks()
	}
	return n
}

// shift returns the pattern moved by a displacement.
func (p pattern) shift(by int64) pattern {
	if by == 0 {
		return p
	}
	p.pieces, p.list = slices.Clone(p.pieces), slices.Clone(p.list)
	for i := range p.pieces {
		p.pieces[i].Displacement += by
	}
	for i := range p.list {
		p.list[i].Displacement += by
	}
	return p
}

// asPieces returns the pattern as pieces, those of a list without repetitions.
func (p pattern) asPieces() []Piece {
	if p.list == nil {
		return p.pieces
	}
	pieces := make([]Piece, 0, len(p.list))
	for offset, b := range listed(p.list) {
		pieces = append(pieces, Piece{Displacement: b.Displacement, Offset: offset, Length: b.Length})
	}
	return pieces
}

// flat returns the pattern as a list, with blocks that touch merged if asked for.
func (p pattern) flat(merged bool) []Block {
	if p.list != nil {
		return p.list
	}
	list := make([]Block, 0, p.blocks())
	for _, b := range inPackOrder(p.pieces) {
		list = append(list, b)
	}
	if merged {
		list = merge(list)
	}
	return list
}

// copies returns count copies of a list, stride bytes apart, as a list.
func (p pattern) copies(count, stride int64) pattern {
	list := make([]Block, 0, int64(len(p.list))*count)
	for i := range count {
		for _, b := range p.list {
			list = append(list, Block{Displacement: b.Displacement + i*stride, Length: b.Length})
		}
	}
	return pattern{list: merge(list), size: p.size * count}
}

// at returns a list of all elements at places whose lengths are in elements.
func (p pattern) at(places []Block, elements, extent int64) []Block {
	one := p.flat(true)
	list := make([]Block, 0, elements*int64(len(one)))
	for _, place := range places {
		for i := range place.Length {
			for _, b := range one {
				list = append(list, Block{Displacement: place.Displacement + i*extent + b.Displacement, Length: b.Length})
			}
		}
	}
	return list
}

// repeatAll returns pieces repeated over one more dimension, in the order of their offsets. It reports whether they are
// not too many.
func repeatAll(pieces []Piece, d Dim) ([]Piece, bool) {
	repeated := make([]Piece, 0, len(pieces))
	for _, p := range pieces {
		more := p.repeat(d)
		if len(repeated)+len(more) > maxPieceList {
			return nil, false
		}
		repeated = append(repeated, more...)
	}
	if len(repeated) > len(pieces) {
		slices.SortFunc(repeated, func(p, q Piece) int { return cmp.Compare(p.Offset, q.Offset) })
	}
	return repeated, true
}

// repeat returns the piece repeated over one more dimension, outside of those that it has. Where there are too many of
// them, the one with the smallest count becomes several pieces.
func (p Piece) repeat(d Dim) []Piece {
	if p.Rank == 0 && d.Stride == p.Length && d.Packed == p.Length {
		p.Length *= d.Count
		return []Piece{p}
	}
	if p.Rank > 0 {
		outer := &p.Dims[p.Rank-1]
		if d.Stride == outer.Stride*outer.Count && d.Packed == outer.Packed*outer.Count {
			outer.Count *= d.Count
			return []Piece{p}
		}
	}
	if p.Rank < MaxDims {
		p.Dims[p.Rank] = d
		p.Rank++
		return []Piece{p}
	}
	return p.spread(d)
}

// spread returns one piece for each step of the smallest of the piece's dimensions and d, which would be one too many.
func (p Piece) spread(d Dim) []Piece {
	dims := append(p.Dims[:], d)
	least := 0
	for i := range dims {
		if dims[i].Count < dims[least].Count {
			least = i
		}
	}
	out := dims[least]
	if out.Count > maxPieceList {
		return make([]Piece, maxPieceList+1) // too many in any case
	}
	copy(p.Dims[:], slices.Delete(dims, least, least+1))
	pieces := make([]Piece, out.Count)
	for i := range pieces {
		pieces[i] = p
		pieces[i].Displacement += int64(i) * out.Stride
		pieces[i].Offset += int64(i) * out.Packed
	}
	return pieces
}

// maxPieceList is the number of pieces at which Commit gives up.
const maxPieceList = MaxBlocks / 16
