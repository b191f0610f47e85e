package datatype

import "iter"

// MaxDims is the greatest number of repetitions of a [Piece].
const MaxDims = 4

// MaxPieces is the greatest number of pieces of a strided layout, unless its blocks number more than [MaxBlocks].
const MaxPieces = 64

// MaxBlocks is the greatest number of blocks that Commit lists. A type with more that is not regular either is refused.
const MaxBlocks = 1 << 24

// A Block is Length bytes that lie Displacement bytes from the origin.
type Block struct {
	Displacement int64
	Length       int64
}

// A Dim repeats what is inside it Count times: Stride bytes apart in memory, Packed bytes apart in the packed buffer.
// Count is at least 2. Stride may be negative or, where blocks overlap, 0. Packed is positive.
type Dim struct {
	Count  int64
	Stride int64
	Packed int64
}

// A Piece is a contiguous block of Length bytes, repeated over Rank dimensions. Block (i0, i1, ...) lies at
//
//	memory: Displacement + i0*Dims[0].Stride + i1*Dims[1].Stride + ...   bytes from the origin
//	packed: Offset       + i0*Dims[0].Packed + i1*Dims[1].Packed + ...   bytes from the start
//
// Dimensions are ordered innermost first, in pack order: Dims[0].Packed >= Length, and Dims[d+1].Packed is at least
// Dims[d].Count * Dims[d].Packed. They are equal where the piece has its stretch of the packed buffer for itself, greater
// where it shares it with other pieces, as the members of an array of structs do.
type Piece struct {
	Displacement int64 // of the first block, from the origin
	Offset       int64 // of the first block in the packed buffer
	Length       int64 // of each block; at least 1
	Rank         int   // dimensions in use, 0 to MaxDims
	Dims         [MaxDims]Dim
}

// Blocks returns the number of blocks of the piece.
func (p *Piece) Blocks() int64 {
	n := int64(1)
	for _, d := range p.Dims[:p.Rank] {
		n *= d.Count
	}
	return n
}

// Size returns the number of bytes of the piece.
func (p *Piece) Size() int64 { return p.Length * p.Blocks() }

// Bounds returns the half-open range of displacements that the piece touches.
func (p *Piece) Bounds() (lo, hi int64) {
	lo, hi = p.Displacement, p.Displacement+p.Length
	for _, d := range p.Dims[:p.Rank] {
		reach := (d.Count - 1) * d.Stride
		lo, hi = lo+min(0, reach), hi+max(0, reach)
	}
	return lo, hi
}

// A Layout is where the bytes of count elements of a type lie, in canonical form. It is made by [Commit] and never
// changes. It has one of two forms:
//
//   - strided: Pieces, in the order of their offsets, which cover the packed buffer exactly once between them. What is
//     contiguous is one piece of rank 0. What is empty has none.
//   - listed: List, the blocks in pack order, no two of them adjacent. Each begins in the packed buffer where its
//     predecessor ends.
//
// Both forms are there to be read only.
type Layout struct {
	pieces []Piece // nil if listed
	list   []Block // nil if strided
	totals
	key func() Key
}

// Strided reports whether the layout is a set of pieces. If not it is a list of blocks.
func (l *Layout) Strided() bool { return l.list == nil }

// Pieces returns the pieces of a strided layout, in the order of their offsets. The slice must not be changed.
func (l *Layout) Pieces() []Piece { return l.pieces }

// List returns the blocks of a listed layout, in pack order. The slice must not be changed.
func (l *Layout) List() []Block { return l.list }

// Contiguous reports whether the layout is at most one block.
func (l *Layout) Contiguous() bool { return l.blocks <= 1 }

// Size returns the number of bytes when packed.
func (l *Layout) Size() int64 { return l.size }

// TrueLB returns the smallest displacement that the layout touches; 0 if it is empty.
func (l *Layout) TrueLB() int64 { return l.trueLB }

// TrueUB returns the displacement after the greatest that the layout touches; 0 if it is empty.
func (l *Layout) TrueUB() int64 { return l.trueUB }

// NumBlocks returns the number of blocks.
func (l *Layout) NumBlocks() int64 { return l.blocks }

// MinBlock returns the length in bytes of the shortest block; 0 if the layout is empty.
func (l *Layout) MinBlock() int64 { return l.minBlock }

// MaxBlock returns the length in bytes of the longest block; 0 if the layout is empty.
func (l *Layout) MaxBlock() int64 { return l.maxBlock }

// Alignment returns the greatest power of two, at most 16, that divides all displacements, lengths, strides and packed
// offsets. Words of that many bytes may be copied if the origin and the packed buffer are aligned to them.
func (l *Layout) Alignment() int64 { return l.alignment }

// Blocks yields all blocks in pack order, each with its offset in the packed buffer. Of pieces it lists nothing.
func (l *Layout) Blocks() iter.Seq2[int64, Block] {
	if !l.Strided() {
		return listed(l.list)
	}
	return inPackOrder(l.pieces)
}
