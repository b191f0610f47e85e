package datatype

import (
	"crypto/sha256"
	"iter"
	"slices"
)

// MaxPieces is the greatest number of pieces of a strided layout, unless its blocks number more than [MaxBlocks].
const MaxPieces = 64

// MaxBlocks is the greatest number of blocks that Commit lists. A type with more that is not regular either is refused.
const MaxBlocks = 1 << 24

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

// totals is what a layout knows of itself.
type totals struct {
	size, trueLB, trueUB       int64
	blocks, minBlock, maxBlock int64
	alignment                  int64
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

// Key stands for a layout in a cache. Layouts have the same key if and only if they are equal, but for the collisions of
// SHA-256, and it is the same in every process.
type Key [sha256.Size]byte

// Equal reports whether two layouts have the same canonical form: then they touch the same bytes in the same order. The
// converse holds for whatever [Commit] recognises.
func (l *Layout) Equal(other *Layout) bool {
	return slices.Equal(l.pieces, other.pieces) && slices.Equal(l.list, other.list)
}

// Key returns the layout's key, which is computed once.
func (l *Layout) Key() Key { return l.key() }
