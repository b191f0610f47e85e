package datatype

import (
	"fmt"
	"sync"
)

// Commit brings count elements of a type, an extent apart, to their canonical form:
//
//   - blocks that touch, in memory and when packed, are merged, within a list and within a repetition;
//   - repetitions of one are dropped, and two that run on into each other become one;
//   - lists of blocks that are regular, whole or in runs, become strided pieces.
//
// Blocks that touch across the ends of two copies of a pattern stay two: one strided piece is worth more than a few
// blocks less. Nothing regular is ever expanded: the time depends on the arguments of the constructors, not on the
// bytes.
//
// An error says that count is negative, that a number does not fit in 64 bits, or that the type is so irregular that it
// takes more than [MaxBlocks] blocks and, where those repeat, more than a sixteenth as many pieces.
func Commit(t *Type, count int) (*Layout, error) {
	if t == nil {
		return nil, fmt.Errorf("datatype: commit: %w", errNoType)
	}
	if count < 0 {
		return nil, fmt.Errorf("datatype: commit: count must not be negative, got %d", count)
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
	l.summarize()
	l.key = sync.OnceValue(l.hash)
	return l, nil
}

// settle chooses the form of the layout: pieces if there are few and they save something, otherwise a list if
// it is not too long.
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

// A builder turns a tree of types into a pattern, each type of the tree once.
type builder struct {
	done map[*Type]pattern
	err  error // of the first pattern that was too long
}

// build returns the pattern of one element.
func (b *builder) build(t *Type) pattern {
	if p, ok := b.done[t]; ok || t.size == 0 {
		return p
	}
	p := b.assemble(t)
	b.done[t] = p
	return p
}

func (b *builder) assemble(t *Type) pattern {
	e := &t.env
	switch e.Combiner {
	case Named:
		return blockPattern(Block{Length: t.size})
	case ContiguousCombiner:
		return b.run(t.child(), e.Count)
	case VectorCombiner, HVectorCombiner:
		return b.repeat(b.run(t.child(), e.BlockLength), int64(e.Count), e.StrideBytes())
	case SubarrayCombiner:
		return b.subarray(t)
	case ResizedCombiner:
		return b.build(t.child())
	case StructCombiner:
		return b.structure(e)
	}
	return b.list(e)
}

// run returns the pattern of length elements one after another.
func (b *builder) run(t *Type, length int) pattern {
	return b.repeat(b.build(t), int64(length), t.Extent())
}

func (b *builder) subarray(t *Type) pattern {
	e, pitch := &t.env, t.child().Extent()
	p := b.build(t.child())
	for _, d := range e.FastestFirst() {
		p = b.repeat(p, int64(e.Subsizes[d]), pitch).shift(int64(e.Starts[d]) * pitch)
		pitch *= int64(e.Sizes[d])
	}
	return p
}

func (b *builder) structure(e *Envelope) pattern {
	parts := make([]pattern, 0, len(e.Types))
	for i, displacement := range e.Displacements {
		parts = append(parts, b.run(e.Types[i], e.BlockLengths[i]).shift(displacement))
	}
	return b.concat(parts)
}

// list returns the pattern of a list of blocks of one type.
func (b *builder) list(e *Envelope) pattern {
	child := b.build(e.Types[0])
	blocks := e.places()
	if block, ok := child.single(); ok && e.dense(blocks, block) {
		for i := range blocks {
			blocks[i].Displacement += block.Displacement
			blocks[i].Length *= block.Length
		}
		return compress(blocks)
	}
	return b.scatter(blocks, e.Types[0])
}

// places returns the blocks of a list that are not empty: displacements in bytes, lengths in elements.
func (e *Envelope) places() []Block {
	blocks := make([]Block, 0, len(e.Displacements))
	for i := range e.Displacements {
		if displacement, length, _ := e.Block(i); length > 0 {
			blocks = append(blocks, Block{Displacement: displacement, Length: int64(length)})
		}
	}
	return blocks
}

// dense reports whether elements, each of which is a block, fill the places without gaps.
func (e *Envelope) dense(places []Block, element Block) bool {
	if e.Types[0].Extent() == element.Length {
		return true
	}
	for _, p := range places {
		if p.Length > 1 {
			return false
		}
	}
	return true
}

// scatter returns the pattern of elements of a type at places whose lengths are in elements.
func (b *builder) scatter(places []Block, t *Type) pattern {
	child := b.build(t)
	period, dims, ok := regular(places)
	elements := sum(places)
	if !ok && (child.isFlat() || len(places) > manyPieces) && elements <= MaxBlocks/max(1, child.blocks()) {
		return compress(child.at(places, elements, t.Extent()))
	}
	if !ok {
		period, dims = len(places), nil
	}
	parts := make([]pattern, 0, period)
	for _, p := range places[:period] {
		parts = append(parts, b.run(t, int(p.Length)).shift(p.Displacement))
	}
	p := b.concat(parts)
	for _, d := range dims {
		p = b.repeat(p, d.Count, d.Stride)
	}
	return p
}

// repeat returns count copies of a pattern, stride bytes apart.
func (b *builder) repeat(p pattern, count, stride int64) pattern {
	switch {
	case count == 0 || p.size == 0:
		return pattern{}
	case count == 1:
		return p
	case p.list != nil && count <= MaxBlocks/int64(len(p.list)):
		return p.copies(count, stride)
	}
	pieces, ok := repeatAll(b.pieces(p), Dim{Count: count, Stride: stride, Packed: p.size})
	if !ok {
		return b.refuse(p.blocks() * count)
	}
	return pattern{pieces: pieces, size: p.size * count}
}

// concat returns patterns one after another.
func (b *builder) concat(parts []pattern) pattern {
	all := pattern{}
	pieces, blocks, flat, listed := 0, int64(0), true, false
	for _, p := range parts {
		all.size += p.size
		pieces += len(p.pieces)
		blocks += p.blocks()
		flat = flat && p.isFlat()
		listed = listed || p.list != nil
	}
	if blocks <= MaxBlocks && (flat || listed || pieces > manyPieces) {
		for _, p := range parts {
			all.list = append(all.list, p.flat(false)...)
		}
		return compress(all.list)
	}
	offset := int64(0)
	for _, p := range parts {
		for _, piece := range b.pieces(p) {
			piece.Offset += offset
			all.pieces = append(all.pieces, piece)
		}
		offset += p.size
	}
	if len(all.pieces) > maxPieceList {
		return b.refuse(blocks)
	}
	all.pieces = fold(join(all.pieces))
	return all
}

// manyPieces is the number of pieces from which a list of their blocks is preferred while patterns are put together.
const manyPieces = 16 * MaxPieces

// pieces returns a pattern as pieces. It rejects lists with too many blocks.
func (b *builder) pieces(p pattern) []Piece {
	if len(p.list) > maxPieceList {
		b.refuse(p.blocks())
		return nil
	}
	return p.asPieces()
}

// refuse records that a pattern is too long and returns an empty one instead.
func (b *builder) refuse(blocks int64) pattern {
	if b.err == nil {
		b.err = fmt.Errorf("must have at most %d irregular blocks, got %d", MaxBlocks, blocks)
	}
	return pattern{}
}
