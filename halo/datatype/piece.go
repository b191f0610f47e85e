package datatype

import (
	"container/heap"
	"fmt"
	"iter"
)

// MaxDims is the maximum number of repetitions of a [Piece].
const MaxDims = 4

// A Block is Length bytes at Displacement bytes from the origin.
type Block struct {
	Displacement int64 // bytes from the origin
	Length       int64 // bytes
}

// A Dim repeats what is inside it Count times, Stride bytes apart in memory and Packed bytes apart in the
// packed buffer. Count is at least 2. Stride may be negative, or 0 if blocks overlap. Packed is positive.
type Dim struct {
	Count  int64 // number of repetitions, at least 2
	Stride int64 // bytes in memory
	Packed int64 // bytes in the packed buffer
}

// A Piece is a contiguous block of Length bytes, repeated over Rank dimensions. Block (i0, i1, ...) is at
//
//	memory: Displacement + i0*Dims[0].Stride + i1*Dims[1].Stride + ...   bytes from the origin
//	packed: Offset       + i0*Dims[0].Packed + i1*Dims[1].Packed + ...   bytes from the start
//
// Dimensions are ordered innermost first, in pack order: Dims[0].Packed >= Length, and Dims[d+1].Packed is at
// least Dims[d].Count * Dims[d].Packed. They are equal if the piece has its range of the packed buffer for
// itself, and greater if it shares it with other pieces, like the members of an array of structs.
type Piece struct {
	Displacement int64        // of the first block, from the origin
	Offset       int64        // of the first block in the packed buffer
	Length       int64        // of each block; at least 1
	Rank         int          // dimensions in use, 0 to MaxDims
	Dims         [MaxDims]Dim // innermost first; zero from Rank on
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

// Bounds returns the half-open range of displacements of the piece.
func (p *Piece) Bounds() (lo, hi int64) {
	lo, hi = p.Displacement, p.Displacement+p.Length
	for _, d := range p.Dims[:p.Rank] {
		reach := (d.Count - 1) * d.Stride
		lo, hi = lo+min(0, reach), hi+max(0, reach)
	}
	return lo, hi
}

// listed yields blocks with their prefix sums.
func listed(list []Block) iter.Seq2[int64, Block] {
	return func(yield func(int64, Block) bool) {
		offset := int64(0)
		for _, b := range list {
			if !yield(offset, b) {
				return
			}
			offset += b.Length
		}
	}
}

// inPackOrder yields the blocks of pieces in the order of their offsets.
func inPackOrder(pieces []Piece) iter.Seq2[int64, Block] {
	return func(yield func(int64, Block) bool) {
		for len(pieces) > 0 {
			n := interleaved(pieces)
			if !mergeOrder(pieces[:n], yield) {
				return
			}
			pieces = pieces[n:]
		}
	}
}

// interleaved returns how many pieces at the front share their range of the packed buffer.
func interleaved(pieces []Piece) int {
	n, end := 1, pieces[0].end()
	for n < len(pieces) && pieces[n].Offset < end {
		end = max(end, pieces[n].end())
		n++
	}
	return n
}

// end returns the offset after the last block of the piece.
func (p *Piece) end() int64 {
	end := p.Offset + p.Length
	for _, d := range p.Dims[:p.Rank] {
		end += (d.Count - 1) * d.Packed
	}
	return end
}

// mergeOrder yields the blocks of several pieces by offset and reports whether to continue.
func mergeOrder(pieces []Piece, yield func(int64, Block) bool) bool {
	q := make(cursors, len(pieces))
	for i := range pieces {
		q[i] = cursor{piece: &pieces[i], displacement: pieces[i].Displacement, offset: pieces[i].Offset}
	}
	for len(q) > 0 {
		c := &q[0]
		if !yield(c.offset, Block{Displacement: c.displacement, Length: c.piece.Length}) {
			return false
		}
		if !c.next() {
			heap.Pop(&q)
			continue
		}
		if len(q) > 1 {
			heap.Fix(&q, 0)
		}
	}
	return true
}

// A cursor is at one block of a piece.
type cursor struct {
	piece        *Piece
	at           [MaxDims]int64
	displacement int64
	offset       int64
}

// next moves to the next block in pack order and reports whether there was one.
func (c *cursor) next() bool {
	for i, d := range c.piece.Dims[:c.piece.Rank] {
		c.at[i]++
		c.displacement += d.Stride
		c.offset += d.Packed
		if c.at[i] < d.Count {
			return true
		}
		c.at[i] = 0
		c.displacement -= d.Count * d.Stride
		c.offset -= d.Count * d.Packed
	}
	return false
}

// cursors is a heap.Interface by offset.
type cursors []cursor

func (c cursors) Len() int           { return len(c) }
func (c cursors) Less(i, j int) bool { return c[i].offset < c[j].offset }
func (c cursors) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(x any)        { *c = append(*c, x.(cursor)) }
func (c *cursors) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// merge joins adjacent blocks, in place.
func merge(blocks []Block) []Block {
	merged := blocks[:0]
	for _, b := range blocks {
		if n := len(merged); n > 0 && merged[n-1].Displacement+merged[n-1].Length == b.Displacement {
			merged[n-1].Length += b.Length
			continue
		}
		merged = append(merged, b)
	}
	return merged
}

// sum returns the length of all blocks.
func sum(blocks []Block) int64 {
	n := int64(0)
	for _, b := range blocks {
		n += b.Length
	}
	return n
}

// String returns the length and displacement of a block, and the count and stride of each dimension.
func (p Piece) String() string {
	text := fmt.Sprintf("%d B at %d", p.Length, p.Displacement)
	for _, d := range p.Dims[:p.Rank] {
		text += fmt.Sprintf(", %d times %+d", d.Count, d.Stride)
	}
	return text
}
