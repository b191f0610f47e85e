package datatype

import (
	"fmt"
	"math/bits"
	"sync"
)

// Commit brings count elements of a type, an extent apart, to their canonical form:
//
//   - blocks that touch, in memory and when packed, are merged, within a list and within a repetition;
//   - repetitions of one are dropped, and two that run on into each other become one;
//   - lists of blocks that are regular, whole or in runs, become strided pieces.
//
// Blocks that touch across the ends of two copies of a pattern stay two: one strided piece is worth more than a few blocks
// less. Nothing regular is ever expanded: the time depends on the arguments of the constructors, not on the bytes.
//
// An error says that count is negative, that a number does not fit in 64 bits, or that the type is so irregular that it
// takes more than [MaxBlocks] blocks and, where those repeat, more than a sixteenth as many pieces.
func Commit(t *Type, count int) (*Layout, error) {
	if t == nil {
		return nil, fmt.Errorf("datatype: commit: %w", errNoType)
	}
	if count < 0 {
		return nil, fmt.Errorf("datatype: commit: count %d is negative", count)
	}
	var c checked
	data := t.data.repeat(&c, int64(count), t.Extent())
	size := c.mul(t.size, int64(count))
	c.sub(data.hi, data.lo)
	if c.overflow {
		return nil, fmt.Errorf("datatype: commit %d elements: %w", count, errOverflow)
	}
	b := builder{done: map[*Type]pattern{}}
	p := b.repeat(b.build(t), int64(count), t.Extent())
	if b.err != nil {
		return nil, fmt.Errorf("datatype: commit %d elements of %v: %w", count, t.env.Combiner, b.err)
	}
	l := &Layout{totals: totals{size: size, trueLB: data.lo, trueUB: data.hi}}
	l.settle(p)
	l.summarise()
	l.key = sync.OnceValue(l.hash)
	return l, nil
}

// settle chooses the form of the layout: pieces if there are few and they save something, else a list if it is not too long.
func (l *Layout) settle(p pattern) {
	if p.list == nil && !p.worth() && p.blocks() <= MaxBlocks {
		p = pattern{list: p.flat(true)}
	}
	l.pieces, l.list = p.pieces, p.list
}

// worth reports whether pieces are better than a list of their blocks.
func (p pattern) worth() bool {
	n := len(p.pieces)
	return p.list == nil && (n <= 1 || n <= MaxPieces && p.blocks() >= int64(4*n))
}

// summarise computes the totals that Commit does not know yet.
func (l *Layout) summarise() {
	var s summary
	for i := range l.pieces {
		p := &l.pieces[i]
		s.block(p.Displacement, p.Length, p.Blocks())
		s.divides |= p.Offset
		for _, d := range p.Dims[:p.Rank] {
			s.divides |= d.Stride | d.Packed
		}
	}
	for _, b := range l.list {
		s.block(b.Displacement, b.Length, 1)
	}
	l.blocks, l.minBlock, l.maxBlock = s.blocks, s.shortest, s.longest
	l.alignment = 1 << min(4, bits.TrailingZeros64(uint64(s.divides)))
}

// A summary gathers what blocks have in common.
type summary struct {
	blocks, shortest, longest int64
	divides                   int64 // the bits that are set in any of the numbers
}

func (s *summary) block(displacement, length, times int64) {
	if s.blocks == 0 {
		s.shortest = length
	}
	s.blocks += times
	s.shortest, s.longest = min(s.shortest, length), max(s.longest, length)
	s.divides |= displacement | length
}
