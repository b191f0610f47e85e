package datatype

import (
	"container/heap"
	"iter"
)

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

// interleaved returns how many pieces at the front share their stretch of the packed buffer.
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

// mergeOrder yields the blocks of several pieces by offset and reports whether to go on.
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

func (q cursors) Len() int           { return len(q) }
func (q cursors) Less(i, j int) bool { return q[i].offset < q[j].offset }
func (q cursors) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *cursors) Push(x any)        { *q = append(*q, x.(cursor)) }
func (q *cursors) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// merge joins blocks that touch, in place.
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
