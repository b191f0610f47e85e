package packing

import (
	"fmt"
	"slices"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
)

// serialize returns count elements of a type as the tree that the kernels walk (Jenkins et al. 2014, section
// 3.1). Constructors become nodes in preorder, except those that a thread does not need: predefined types,
// Resized, which only changes the extent seen by its parent, and parts without data. Identical parts of a
// struct share their nodes. It is an error if count is negative or the elements overflow 64 bits.
func serialize(t *datatype.Type, count int, o treeOptions) (pack.Tree, error) {
	all, err := datatype.Contiguous(count, t)
	if err != nil {
		return pack.Tree{}, fmt.Errorf("packing: %w", err)
	}
	if all.Size() == 0 {
		return pack.Tree{}, nil
	}
	if count == 1 {
		all = t
	}
	root := newShaper(o.Primitive).of(all)
	tree := root.serialize(o)
	tree.Base, tree.Size, tree.Lo, tree.Hi = root.at, all.Size(), all.TrueLB(), all.TrueUB()
	return tree, nil
}

// serialize writes the tree of a shape. If its leaves have words of different sizes but could all have the
// smallest, they get that: then the offset of a word in the packed buffer needs no walk.
func (p placed) serialize(o treeOptions) pack.Tree {
	w := newTreeWriter(o, 0)
	w.root(p)
	if least, ok := w.commonWord(); ok && !o.Primitive {
		w = newTreeWriter(o, least)
		w.root(p)
	}
	w.tree.Word = w.word()
	return w.tree
}

// treeOptions configure the serialized tree.
type treeOptions struct {
	// Primitive follows the paper: one node per constructor call, and one predefined type per thread. Without
	// it, equal layouts become the same tree, and a thread moves up to 16 contiguous bytes.
	Primitive bool

	// Alignment is the common alignment of the origin and the packed buffer: a power of two, at most 16; 0
	// means 16. The tree works for other addresses too, but slower.
	Alignment int64
}

// maxWord is the widest word that a thread moves.
const maxWord = 16

// alignment is the common alignment of all addresses of a part of a tree, up to maxWord: in memory, and
// packed.
type alignment struct{ memory, pack int64 }

// with returns the alignment of data at given offsets in memory and packed, repeated any number of times.
func (a alignment) with(memory, pack int64) alignment {
	return alignment{lowBit(a.memory | memory), lowBit(a.pack | pack)}
}

// lowBit returns the greatest power of two that divides n, which is not 0.
func lowBit(n int64) int64 { return n & -n }

// A treeWriter writes shapes as nodes. It reuses nodes that it has written.
type treeWriter struct {
	tree    pack.Tree
	options treeOptions
	forced  int64 // the word of all leaves; 0 if each has its own
	known   map[nodeKey]written
	leaves  []leaf
}

// nodeKey is everything that a node depends on: its shape (or, for a repeated shape, the distance) and the
// alignment.
type nodeKey struct {
	shape    *shape
	repeated bool
	extent   int64
	alignment
}

// written is the position of a node and the number of primitives in it.
type written struct {
	node       int
	primitives int64
}

// leaf is the word of a leaf, its alignment, and the largest predefined type in it.
type leaf struct {
	word, basic int64
	alignment
}

func newTreeWriter(o treeOptions, forced int64) *treeWriter {
	o.Alignment = lowBit(o.Alignment | maxWord) // also for 0
	return &treeWriter{options: o, forced: forced, known: map[nodeKey]written{}}
}

func (t *treeWriter) root(p placed) {
	a := alignment{t.options.Alignment, t.options.Alignment}.with(p.at, 0)
	t.tree.Primitives = t.write(p.shape, a).primitives
}

// commonWord returns the smallest word of all leaves if they differ unnecessarily: if no leaf has a larger
// predefined type, or one that is moved in pieces.
func (t *treeWriter) commonWord() (least int64, ok bool) {
	least, most := int64(maxWord), int64(0)
	for _, l := range t.leaves {
		least, most = min(least, l.word), max(most, l.word)
	}
	kept := slices.ContainsFunc(t.leaves, func(l leaf) bool { return l.basic > least || l.inPieces() })
	return least, least < most && !kept
}

// inPieces reports whether words are moved in pieces.
func (l leaf) inPieces() bool { return min(l.memory, l.pack) < l.word }

// word returns the word of all leaves, or 0 if they differ or some are moved in pieces.
func (t *treeWriter) word() int64 {
	word := t.leaves[0].word
	if slices.ContainsFunc(t.leaves, func(l leaf) bool { return l.word != word || l.inPieces() }) {
		return 0
	}
	return word
}

// once writes a node before its children, which build writes, unless it has been written.
func (t *treeWriter) once(key nodeKey, build func() (n pack.TreeNode, primitives int64)) written {
	if at, ok := t.known[key]; ok {
		return at
	}
	at := len(t.tree.Nodes)
	t.tree.Nodes = append(t.tree.Nodes, pack.TreeNode{})
	n, primitives := build()
	t.tree.Nodes[at] = n
	t.known[key] = written{at, primitives}
	return t.known[key]
}

// write writes a shape.
func (t *treeWriter) write(s *shape, a alignment) written {
	return t.once(nodeKey{shape: s, alignment: a}, func() (pack.TreeNode, int64) {
		switch {
		case s.run > 0:
			return t.run(s, a)
		case s.dims != nil:
			return t.strided(s.kind, s.child, s.dims, a)
		case s.kind == pack.StructNode:
			return t.structure(s, a)
		}
		return t.indexed(s, a)
	})
}

// run returns a leaf for a run: its words one after another.
func (t *treeWriter) run(s *shape, a alignment) (pack.TreeNode, int64) {
	n := t.leaf(s, a)
	n.Kind, n.Extent = pack.ContiguousNode, n.Size
	return n, s.size / n.Size
}

// leaf returns a leaf whose primitives are the words of a run, without its layout.
func (t *treeWriter) leaf(s *shape, a alignment) pack.TreeNode {
	word := t.wordOf(s, a)
	a.memory, a.pack = min(a.memory, word), min(a.pack, word)
	t.leaves = append(t.leaves, leaf{word, s.run, a})
	return pack.TreeNode{Primitives: 1, Size: word, Unit: int(word), MemoryAlignment: int(a.memory),
		PackAlignment: int(a.pack)}
}

// wordOf returns the word of a run that a thread moves: the common alignment of both sides, but not less than
// the largest predefined type, which is moved in pieces if necessary.
func (t *treeWriter) wordOf(s *shape, a alignment) int64 {
	switch {
	case t.options.Primitive:
		return s.run
	case t.forced > 0:
		return t.forced
	}
	return max(s.run, lowBit(s.size|a.memory|a.pack))
}

// over returns a node over a child that is not a leaf, without layout, and the child's primitives.
func (t *treeWriter) over(child *shape, a alignment) (pack.TreeNode, int64) {
	below := t.write(child, a)
	return pack.TreeNode{Primitives: below.primitives, Size: child.size, Child: below.node}, below.primitives
}

// strided returns the node of a child repeated over dimensions. The words of a run are an additional
// dimension.
func (t *treeWriter) strided(kind pack.NodeKind, child *shape, dims []pack.TreeDim,
	a alignment) (n pack.TreeNode, primitives int64) {
	for _, d := range dims {
		a = a.with(d.Stride, child.size)
	}
	if child.run == 0 {
		n, primitives = t.over(child, a)
	} else {
		n, primitives = t.leaf(child, a), 1
		if words := child.size / n.Size; words > 1 {
			dims = slices.Insert(slices.Clone(dims), 0, pack.TreeDim{Count: words, Stride: n.Size})
			kind = kindOf(dims)
		}
	}
	for _, d := range dims {
		primitives *= d.Count
	}
	n.Kind, n.Extent = kind, dims[0].Stride
	switch kind {
	case pack.VectorNode:
		n.BlockLength, n.Stride = dims[0].Count, dims[1].Stride
	case pack.SubarrayNode:
		n.Table, n.Entries = int64(len(t.tree.LookAside)), int64(len(dims))
		t.tree.LookAside = pack.AppendDims(t.tree.LookAside, dims...)
	}
	return n, primitives
}

// indexed returns the node of an indexed type. A run of several words followed by a gap has its own node.
func (t *treeWriter) indexed(s *shape, a alignment) (n pack.TreeNode, primitives int64) {
	single := true
	for _, b := range s.blocks {
		a = a.with(b.at, s.child.size)
		single = single && b.count == 1
	}
	if !single {
		a = a.with(s.extent, 0)
	}
	extent, scale := s.extent, int64(1)
	switch words := t.wordsOf(s.child, a); {
	case words == 0 || words > 1 && !single && extent != s.child.size:
		n, primitives = t.over(s.child, a)
	default:
		n, primitives = t.leaf(s.child, a), 1
		if words > 1 {
			extent, scale = n.Size, words
		}
	}
	n.Kind, n.Extent = s.kind, extent
	return n, primitives * t.list(&n, s.blocks, scale)
}

// wordsOf returns the number of words in a run; 0 for other shapes.
func (t *treeWriter) wordsOf(s *shape, a alignment) int64 {
	if s.run == 0 {
		return 0
	}
	return s.size / t.wordOf(s, a)
}

// list writes the blocks of an indexed type, scale children per child, and returns the total number of
// children.
func (t *treeWriter) list(n *pack.TreeNode, blocks []block, scale int64) (children int64) {
	var lengths, displacements []int64
	for _, b := range blocks {
		lengths, displacements = append(lengths, b.count*scale), append(displacements, b.at)
		children += b.count * scale
	}
	n.Table, n.Entries = int64(len(t.tree.LookAside)), int64(len(blocks))
	if n.Kind == pack.IndexedBlockNode {
		n.BlockLength = lengths[0]
		t.tree.LookAside = append(t.tree.LookAside, displacements...)
	} else {
		t.tree.LookAside = pack.AppendBlocks(t.tree.LookAside, lengths, displacements)
	}
	return children
}

// structure returns the node of a struct.
func (t *treeWriter) structure(s *shape, a alignment) (n pack.TreeNode, primitives int64) {
	var fields []pack.TreeField
	offset := int64(0)
	for _, b := range s.blocks {
		field := t.field(b, a.with(b.at, offset))
		fields = append(fields, pack.TreeField{Displacement: b.at, Primitives: field.primitives, Size: b.bytes(),
			Child: field.node})
		offset += b.bytes()
		primitives += field.primitives
	}
	n = pack.TreeNode{Kind: pack.StructNode, Table: int64(len(t.tree.LookAside)), Entries: int64(len(fields))}
	t.tree.LookAside = pack.AppendFields(t.tree.LookAside, fields...)
	return n, primitives
}

// field writes the child node of a block of a struct, and returns it with the primitives of the block.
func (t *treeWriter) field(b block, a alignment) written {
	if b.count == 1 {
		return t.write(b.shape, a)
	}
	child := t.once(nodeKey{b.shape, true, b.extent, a}, func() (pack.TreeNode, int64) {
		return t.strided(pack.ContiguousNode, b.shape, []pack.TreeDim{{Count: 1, Stride: b.extent}}, a)
	})
	return written{child.node, child.primitives * b.count}
}
