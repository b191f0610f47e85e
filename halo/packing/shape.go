package packing

import (
	"slices"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
)

// A shape is the layout of the data of a type, starting at the displacement of its first part. It has one of
// three forms:
// - a run: Size bytes without gaps, made of predefined types of which the largest has run bytes;
// - strided: a child repeated over dims;
// - blocks: an indexed type, whose blocks share child and extent, or a struct.
//
// Shapes and all their parts are not empty. Equal runs, and those of equal types, are the same shape.
type shape struct {
	size   int64 // packed bytes
	run    int64 // nonzero in a run
	kind   pack.NodeKind
	child  *shape // for strided and indexed
	extent int64  // extent of an indexed type's child
	dims   []pack.TreeDim
	blocks []block
}

// A block is count elements of a child, extent bytes apart.
type block struct {
	placed
	count, extent int64
}

// bytes returns the packed bytes of the block.
func (b block) bytes() int64 { return b.count * b.size }

// placed is a shape at a displacement.
type placed struct {
	*shape
	at int64
}

// A shaper makes shapes of types. Equal layouts get the same shape, as far as that needs no search, unless it
// is literal: then every constructor except Resized has its own shape.
type shaper struct {
	literal bool
	known   map[*datatype.Type]placed
	runs    map[[2]int64]*shape
}

func newShaper(literal bool) *shaper {
	return &shaper{literal, map[*datatype.Type]placed{}, map[[2]int64]*shape{}}
}

// of returns the shape of a type that is not empty.
func (s *shaper) of(t *datatype.Type) placed {
	if p, ok := s.known[t]; ok {
		return p
	}
	p := s.make(t)
	s.known[t] = p
	return p
}

func (s *shaper) make(t *datatype.Type) placed {
	e := t.Envelope()
	switch e.Combiner {
	case datatype.Named:
		return placed{s.run(t.Size(), t.Size()), 0}
	case datatype.ResizedCombiner:
		return s.of(e.Types[0])
	case datatype.ContiguousCombiner:
		return s.strided(pack.ContiguousNode, s.of(e.Types[0]),
			pack.TreeDim{Count: int64(e.Count), Stride: e.Types[0].Extent()})
	case datatype.VectorCombiner, datatype.HVectorCombiner:
		return s.vector(e)
	case datatype.SubarrayCombiner:
		return s.subarray(e)
	}
	return s.list(e)
}

// run returns the unique run of a size with predefined types of a size.
func (s *shaper) run(size, basic int64) *shape {
	key := [2]int64{size, basic}
	if s.runs[key] == nil {
		s.runs[key] = &shape{size: size, run: basic}
	}
	return s.runs[key]
}

func (s *shaper) vector(e datatype.Envelope) placed {
	return s.strided(pack.VectorNode, s.of(e.Types[0]),
		pack.TreeDim{Count: int64(e.BlockLength), Stride: e.Types[0].Extent()},
		pack.TreeDim{Count: int64(e.Count), Stride: e.StrideBytes()})
}

func (s *shaper) subarray(e datatype.Envelope) placed {
	child, stride := s.of(e.Types[0]), e.Types[0].Extent()
	var dims []pack.TreeDim
	for _, d := range e.FastestFirst() {
		child.at += int64(e.Starts[d]) * stride
		dims = append(dims, pack.TreeDim{Count: int64(e.Subsizes[d]), Stride: stride})
		stride *= int64(e.Sizes[d])
	}
	return s.strided(pack.SubarrayNode, child, dims...)
}

// list returns the shape of a list of blocks: an indexed type, in any form, or a struct.
func (s *shaper) list(e datatype.Envelope) placed {
	var blocks []block
	for i := range e.Displacements {
		at, length, child := e.Block(i)
		blocks = s.append(blocks, at, length, child)
	}
	if !s.literal {
		return s.any(blocks)
	}
	switch e.Combiner {
	case datatype.StructCombiner:
		return blocksOf(pack.StructNode, blocks)
	case datatype.IndexedBlockCombiner, datatype.HIndexedBlockCombiner:
		return blocksOf(pack.IndexedBlockNode, blocks)
	}
	return blocksOf(pack.IndexedNode, blocks)
}

// append appends a block if it has data.
func (s *shaper) append(blocks []block, at int64, length int, child *datatype.Type) []block {
	if length == 0 || child.Size() == 0 {
		return blocks
	}
	p := s.of(child)
	return append(blocks, block{placed{p.shape, p.at + at}, int64(length), child.Extent()})
}

// any returns the shape of blocks: blocks with the same child are an indexed type; adjacent runs are one run.
func (s *shaper) any(blocks []block) placed {
	if areAlike(blocks) {
		return s.alike(blocks)
	}
	var parts []block
	for _, b := range blocks {
		p := s.strided(pack.ContiguousNode, b.placed, pack.TreeDim{Count: b.count, Stride: b.extent})
		parts = s.join(parts, block{p, 1, p.size})
	}
	if areAlike(parts) {
		return s.alike(parts)
	}
	return blocksOf(pack.StructNode, parts)
}

// areAlike reports whether all blocks have the same child, at the same distances.
func areAlike(blocks []block) bool {
	return !slices.ContainsFunc(blocks,
		func(b block) bool { return b.shape != blocks[0].shape || b.extent != blocks[0].extent })
}

// join appends a part. Adjacent runs are joined if the larger of their predefined types divides both lengths,
// so that no word becomes smaller.
func (s *shaper) join(parts []block, next block) []block {
	if len(parts) == 0 {
		return append(parts, next)
	}
	last := &parts[len(parts)-1]
	size, basic := last.size+next.size, max(last.run, next.run)
	if last.run == 0 || next.run == 0 || last.at+last.size != next.at || size%basic != 0 {
		return append(parts, next)
	}
	*last = block{placed{s.run(size, basic), last.at}, 1, size}
	return parts
}

// alike returns the shape of blocks with the same child: a vector if possible, an indexed block if their
// lengths are equal, otherwise an indexed type. Adjacent blocks are joined.
func (s *shaper) alike(blocks []block) placed {
	merged := blocks[:1]
	for _, b := range blocks[1:] {
		last := &merged[len(merged)-1]
		if last.at+last.count*last.extent == b.at {
			last.count += b.count
		} else {
			merged = append(merged, b)
		}
	}
	s.lengthen(merged)
	first := merged[0]
	if slices.ContainsFunc(merged, func(b block) bool { return b.count != first.count }) {
		return blocksOf(pack.IndexedNode, merged)
	}
	if stride, ok := strideOf(merged); ok {
		return s.strided(pack.VectorNode, first.placed,
			pack.TreeDim{Count: first.count, Stride: first.extent},
			pack.TreeDim{Count: int64(len(merged)), Stride: stride})
	}
	return blocksOf(pack.IndexedBlockNode, merged)
}

// lengthen makes the runs of blocks as long as all blocks allow.
func (s *shaper) lengthen(blocks []block) {
	first, all := blocks[0], int64(0)
	if first.run == 0 || first.extent != first.size {
		return
	}
	for _, b := range blocks {
		all = divisor(all, b.count)
	}
	run := s.run(first.size*all, first.run)
	for i := range blocks {
		b := &blocks[i]
		b.shape, b.count, b.extent = run, b.count/all, run.size
	}
}

// divisor returns the greatest common divisor.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// strideOf returns the distance between consecutive blocks, if it is constant.
func strideOf(blocks []block) (stride int64, ok bool) {
	if len(blocks) > 1 {
		stride = blocks[1].at - blocks[0].at
	}
	for i := 1; i < len(blocks); i++ {
		if blocks[i].at-blocks[i-1].at != stride {
			return 0, false
		}
	}
	return stride, true
}

// blocksOf returns the shape of blocks.
func blocksOf(kind pack.NodeKind, blocks []block) placed {
	size := int64(0)
	for _, b := range blocks {
		size += b.bytes()
	}
	p := placed{&shape{kind: kind, size: size, blocks: blocks}, 0}
	if kind != pack.StructNode {
		p.child, p.extent = blocks[0].shape, blocks[0].extent
	}
	return p
}

// strided returns the shape of a child repeated over dimensions, fastest first.
func (s *shaper) strided(kind pack.NodeKind, child placed, dims ...pack.TreeDim) placed {
	if !s.literal {
		return s.simplest(child, dims)
	}
	size := child.size
	for _, d := range dims {
		size *= d.Count
	}
	return placed{&shape{kind: kind, size: size, child: child.shape, dims: dims}, child.at}
}

// simplest returns the shape with the fewest dimensions: it includes the child's dimensions, joins dimensions
// that continue each other, and turns gapless data into a run.
func (s *shaper) simplest(child placed, outer []pack.TreeDim) placed {
	all := outer
	if child.dims != nil {
		all = slices.Concat(child.dims, outer)
		child.shape = child.child
	}
	var dims []pack.TreeDim
	size := child.size
	for _, d := range all {
		size *= d.Count
		last := len(dims) - 1
		switch {
		case d.Count == 1:
		case last >= 0 && d.Stride == dims[last].Count*dims[last].Stride:
			dims[last].Count *= d.Count
		default:
			dims = append(dims, d)
		}
	}
	if child.run > 0 && len(dims) > 0 && dims[0].Stride == child.size {
		child.shape = s.run(child.size*dims[0].Count, child.run)
		dims = dims[1:]
	}
	if len(dims) == 0 {
		return child
	}
	return placed{&shape{kind: kindOf(dims), size: size, child: child.shape, dims: dims}, child.at}
}

// kindOf returns the least general kind of node with the given dimensions.
func kindOf(dims []pack.TreeDim) pack.NodeKind {
	switch len(dims) {
	case 1:
		return pack.ContiguousNode
	case 2:
		return pack.VectorNode
	}
	return pack.SubarrayNode
}
