package datatype

import (
	"cmp"
	"slices"
)

// A pattern is the bytes of a part of a type: pieces in the order of their offsets, or a list of blocks in
// pack order. It is immutable. The zero value is empty.
type pattern struct {
	pieces []Piece
	list   []Block // if not nil, more than MaxPieces blocks
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

// asPieces returns the pattern as pieces; the pieces of a list have no repetitions.
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

// flat returns the pattern as a list; merged joins adjacent blocks.
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
				list = append(list, Block{Displacement: place.Displacement + i*extent + b.Displacement,
					Length: b.Length})
			}
		}
	}
	return list
}

// repeatAll returns pieces repeated over one more dimension, in the order of their offsets, and false if they
// are too many.
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

// repeat returns the piece repeated over one more dimension, outside of its own. If there are too many
// dimensions, the one with the smallest count becomes several pieces.
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

// spread returns one piece for each step of the smallest of the piece's dimensions and d, of which there
// would be one too many.
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
		return make([]Piece, maxPieceList+1) // too many
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

// compress returns the pattern of blocks in pack order: strided pieces if they are regular, otherwise the
// merged list. It may change the slice and keep it.
func compress(blocks []Block) pattern {
	if len(blocks) == 0 {
		return pattern{}
	}
	size := sum(blocks)
	if pieces := strided(blocks); pieces != nil {
		return pattern{pieces: pieces, size: size}
	}
	blocks = merge(blocks)
	if pieces := strided(blocks); pieces != nil {
		return pattern{pieces: pieces, size: size}
	}
	pieces := runs(blocks)
	if len(pieces) <= MaxPieces {
		return pattern{pieces: fold(pieces), size: size}
	}
	return pattern{list: blocks, size: size}
}

// strided returns the pieces of blocks that are a short pattern repeated over a regular grid; nil if they are
// not, or if there are too many pieces.
func strided(blocks []Block) []Piece {
	period, dims, ok := regular(blocks)
	if !ok {
		return nil
	}
	body := blocks[:period]
	packed := sum(body)
	pieces := fold(runs(merge(append([]Block(nil), body...))))
	for _, d := range dims {
		d.Packed = packed
		packed *= d.Count
		if pieces, ok = repeatAll(pieces, d); !ok || len(pieces) > MaxPieces {
			return nil
		}
	}
	return pieces
}

// regular finds the shortest group, of at most MaxPieces blocks, that the list repeats on a grid, and returns
// the length of the group and the dimensions of the grid. A single block is regular.
func regular(blocks []Block) (period int, dims []Dim, ok bool) {
	if len(blocks) == 0 {
		return 0, nil, false
	}
	if dims, ok = grid(blocks, 1); ok && periodic(blocks, 1) {
		return 1, dims, true
	}
	// A group shorter than the run at the front would be part of a run everywhere, and single blocks have failed.
	for period = max(2, equalRun(blocks)); period <= min(MaxPieces, len(blocks)/2); period++ {
		if len(blocks)%period != 0 || !periodic(blocks, period) {
			continue
		}
		if dims, ok = grid(blocks, period); ok {
			return period, dims, true
		}
	}
	return 0, nil, false
}

// periodic reports whether each group of blocks is the first one, moved.
func periodic(blocks []Block, period int) bool {
	first := blocks[0].Displacement
	start := first
	for i, b := range blocks {
		in := i % period
		if in == 0 {
			start = b.Displacement
		}
		if b.Length != blocks[in].Length || b.Displacement-start != blocks[in].Displacement-first {
			return false
		}
	}
	return true
}

// grid finds the dimensions over which the first blocks of all groups are spread, innermost first, without Packed. Each
// dimension takes as many steps as it can, so that the result is unique.
func grid(blocks []Block, period int) ([]Dim, bool) {
	var dims []Dim
	for period < len(blocks) {
		d := firstRun(blocks, period)
		group := period * int(d.Count)
		if len(blocks)%group != 0 || !spacedBy(blocks, period, d) {
			return nil, false
		}
		dims = append(dims, d)
		period = group
	}
	return dims, true
}

// firstRun returns how many of the groups at the front have equal distances, and the distance.
func firstRun(blocks []Block, period int) Dim {
	d := Dim{Count: 2, Stride: blocks[period].Displacement - blocks[0].Displacement}
	for i := 2 * period; i < len(blocks) &&
		blocks[i].Displacement-blocks[i-period].Displacement == d.Stride; i += period {
		d.Count++
	}
	return d
}

// spacedBy reports whether all distances within groups of d.Count are d.Stride.
func spacedBy(blocks []Block, period int, d Dim) bool {
	in := int64(0)
	for i := period; i < len(blocks); i += period {
		in++
		if in == d.Count {
			in = 0
			continue
		}
		if blocks[i].Displacement-blocks[i-period].Displacement != d.Stride {
			return false
		}
	}
	return true
}

// runs returns blocks as pieces of at most one dimension, each as long as possible. It gives up after more
// pieces than are useful, and returns too many.
func runs(blocks []Block) []Piece {
	var pieces []Piece
	offset := int64(0)
	for len(blocks) > 0 && len(pieces) <= MaxPieces {
		n := equalRun(blocks)
		p := Piece{Displacement: blocks[0].Displacement, Offset: offset, Length: blocks[0].Length}
		if n > 1 {
			p = p.repeat(Dim{Count: int64(n), Stride: blocks[1].Displacement - p.Displacement, Packed: p.Length})[0]
		}
		pieces = append(pieces, p)
		offset += p.Size()
		blocks = blocks[n:]
	}
	return pieces
}

// equalRun returns how many blocks at the front have equal lengths and distances.
func equalRun(blocks []Block) int {
	n := 1
	for n < len(blocks) && blocks[n].Length == blocks[0].Length &&
		blocks[n].Displacement-blocks[n-1].Displacement == blocks[1].Displacement-blocks[0].Displacement {
		n++
	}
	return n
}

// fold turns runs of equal pieces at equal distances into one piece with an additional dimension, and joins
// pieces that continue others, as often as possible.
func fold(pieces []Piece) []Piece {
	for {
		folded := extend(foldOnce(pieces))
		if len(folded) == len(pieces) {
			return folded
		}
		pieces = folded
	}
}

// extend merges neighbors that differ at most in the count of their outermost dimension, if the second
// continues the steps of the first. It works in place.
func extend(pieces []Piece) []Piece {
	extended := pieces[:0]
	for _, p := range pieces {
		if n := len(extended); n > 0 && extended[n-1].takes(&p) {
			continue
		}
		extended = append(extended, p)
	}
	return extended
}

// takes appends a piece that continues this one, and reports whether it does.
func (p *Piece) takes(q *Piece) bool {
	rank := max(p.Rank, q.Rank)
	if rank == 0 {
		return false
	}
	step := p.Dims[rank-1]
	if p.Rank < rank {
		step = q.Dims[rank-1]
	}
	mine, n := p.inside(rank, step)
	theirs, m := q.inside(rank, step)
	follows := q.Displacement-p.Displacement == n*step.Stride && q.Offset-p.Offset == n*step.Packed
	if n == 0 || m == 0 || !follows || !mine.isCopy(&theirs) {
		return false
	}
	step.Count = n + m
	p.Rank, p.Dims[rank-1] = rank, step
	return true
}

// inside returns what the piece repeats by that step as its dimension of that rank, and how often: once if it
// has one dimension less, 0 times if it is not such a repetition.
func (p *Piece) inside(rank int, step Dim) (Piece, int64) {
	inner := *p
	switch {
	case p.Rank < rank-1:
		return inner, 0
	case p.Rank < rank:
		return inner, 1
	}
	outer := p.Dims[rank-1]
	inner.Rank, inner.Dims[rank-1] = rank-1, Dim{}
	if outer.Stride != step.Stride || outer.Packed != step.Packed {
		return inner, 0
	}
	return inner, outer.Count
}

func foldOnce(pieces []Piece) []Piece {
	var folded []Piece
	for len(pieces) > 0 {
		n, d := siblings(pieces)
		p := pieces[0]
		if n > 1 {
			p = p.repeat(d)[0]
		}
		folded = append(folded, p)
		pieces = pieces[n:]
	}
	return folded
}

// siblings returns how many pieces at the front are copies of the first at equal distances, and the dimension
// that they form. It returns fewer than two if the dimension would be one too many, or not the outermost one.
func siblings(pieces []Piece) (int, Dim) {
	first := &pieces[0]
	if len(pieces) == 1 || first.Rank == MaxDims {
		return 1, Dim{}
	}
	d := Dim{Stride: pieces[1].Displacement - first.Displacement, Packed: pieces[1].Offset - first.Offset}
	if d.Packed < first.reach() {
		return 1, Dim{}
	}
	n := 1
	for n < len(pieces) && pieces[n].isCopy(first) &&
		pieces[n].Displacement-pieces[n-1].Displacement == d.Stride && pieces[n].Offset-pieces[n-1].Offset == d.Packed {
		n++
	}
	d.Count = int64(n)
	return n, d
}

// isCopy reports whether two pieces differ at most in their start.
func (p *Piece) isCopy(q *Piece) bool {
	return p.Length == q.Length && p.Rank == q.Rank && p.Dims == q.Dims
}

// reach returns the smallest possible Packed of a dimension outside of those of the piece.
func (p *Piece) reach() int64 {
	if p.Rank == 0 {
		return p.Length
	}
	outer := p.Dims[p.Rank-1]
	return outer.Count * outer.Packed
}

// join merges adjacent neighbors without repetitions, in place. Nothing is between them in the packed buffer.
func join(pieces []Piece) []Piece {
	joined := pieces[:0]
	for _, p := range pieces {
		if n := len(joined); n > 0 && p.Rank == 0 && joined[n-1].Rank == 0 &&
			joined[n-1].Displacement+joined[n-1].Length == p.Displacement {
			joined[n-1].Length += p.Length
			continue
		}
		joined = append(joined, p)
	}
	return joined
}
