package pack

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrTreeTooLarge is returned for a tree whose nodes do not fit into the shared memory of a thread block.
var ErrTreeTooLarge = errors.New("pack: a type tree of more nodes than fit into shared memory")

// sharedBytes is the shared memory that every GPU gives a block that asks for nothing special.
const sharedBytes = 48 << 10

// maxTreeNodes is the greatest number of nodes of a tree. Of what lies in its look-aside buffer there may be any number.
const maxTreeNodes = sharedBytes / int(unsafe.Sizeof(treeNode{}))

// NodeKind says how a node of a tree places its children.
type NodeKind int32

// The kinds of nodes, table 1 of Jenkins et al. 2014 with contiguous and indexed block besides.
const (
	ContiguousNode   NodeKind = iota // child i lies i extents on
	VectorNode                       // in blocks of equal length, a stride apart
	SubarrayNode                     // over the dimensions in the look-aside buffer
	IndexedNode                      // in blocks whose lengths and displacements are in the look-aside buffer
	IndexedBlockNode                 // in blocks of equal length whose displacements are in the look-aside buffer
	StructNode                       // in blocks with a child node each
	nodeKinds
)

// String returns the name.
func (k NodeKind) String() string {
	if k < 0 || k >= nodeKinds {
		return fmt.Sprintf("kind %d", int32(k))
	}
	return [nodeKinds]string{"contiguous", "vector", "subarray", "indexed", "indexed block", "struct"}[k]
}

// A TreeNode is the parameters of fixed length of one constructor. Its children are numbered in pack order: child i
// begins with primitive i*Primitives and byte i*Size of the node. A leaf, whose Unit is not 0, has primitives for
// children. How many children there are is nowhere needed, so that nodes may be shared.
//
//	kind           child i lies at
//	contiguous     i*Extent
//	vector         i/BlockLength*Stride + i%BlockLength*Extent
//	subarray       the sum of i_d*stride_d over Entries dimensions, i_0 running fastest
//	indexed        displacement_b + (i-first_b)*Extent, in block b of Entries
//	indexed block  displacement_b + i%BlockLength*Extent, b = i/BlockLength
//	struct         displacement_b, in block b of Entries; see [AppendFields]
type TreeNode struct {
	Kind        NodeKind
	Primitives  int64 // of a child; 1 in a leaf
	Size        int64 // of a child, in packed bytes
	Extent      int64 // bytes
	Stride      int64 // bytes
	BlockLength int64 // children
	Table       int64 // where its part of the look-aside buffer begins
	Entries     int64 // blocks or dimensions in it
	Child       int   // place of the child node; 0 in a leaf and in a struct

	// Of a leaf: the bytes of a primitive, 1, 2, 4, 8 or 16, and what all its addresses are multiples of, up to Unit, if
	// those that a launch binds are multiples of 16.
	Unit                           int
	MemoryAlignment, PackAlignment int
}

// A Tree is a datatype as Jenkins et al. 2014 serialise it, section 3.1: the parameters of fixed length of all its
// constructors in preorder, which every thread block caches, and those of variable length in one look-aside buffer. It
// is position independent: all displacements are relative to an origin that a launch binds.
//
// A primitive is what one thread moves: a predefined type or, where the layout allows, a word made of several.
type Tree struct {
	Nodes      []TreeNode // the root first
	LookAside  []int64
	Base       int64 // added to all displacements
	Primitives int64
	Size       int64 // packed bytes
	Lo, Hi     int64 // the half-open range of displacements that the tree touches, Base included
	Word       int64 // the Unit and the alignments of every leaf; 0 if they are not all the same
}

// A TreeDim is one dimension of a subarray node: so many children, a stride in bytes apart.
type TreeDim struct{ Count, Stride int64 }

// AppendDims appends the part of the look-aside buffer of a subarray, the dimension that runs fastest first.
func AppendDims(lookAside []int64, dims ...TreeDim) []int64 {
	for _, d := range dims {
		magic, rest := divisionBy(d.Count).words()
		lookAside = append(lookAside, d.Count, d.Stride, magic, rest)
	}
	return lookAside
}

// AppendBlocks appends the part of the look-aside buffer of an indexed node: the prefix sums of the lengths, which are
// at least 1, and the displacements in bytes.
func AppendBlocks(lookAside []int64, lengths, displacements []int64) []int64 {
	return append(appendSums(lookAside, lengths), displacements...)
}

// A TreeField is one block of a struct node.
type TreeField struct {
	Displacement int64 // bytes
	Primitives   int64 // at least 1
	Size         int64 // packed bytes
	Child        int   // node
}

// AppendFields appends the part of the look-aside buffer of a struct: the prefix sums of the primitives, and of each
// block its displacement, its offset among the packed bytes and its child.
func AppendFields(lookAside []int64, fields ...TreeField) []int64 {
	var primitives []int64
	for _, f := range fields {
		primitives = append(primitives, f.Primitives)
	}
	lookAside = appendSums(lookAside, primitives)
	offset := int64(0)
	for _, f := range fields {
		lookAside = append(lookAside, f.Displacement, offset, int64(f.Child))
		offset += f.Size
	}
	return lookAside
}

// appendSums appends 0 and the sums of the first, the first two, and so on.
func appendSums(sums, numbers []int64) []int64 {
	sum := int64(0)
	sums = append(sums, sum)
	for _, n := range numbers {
		sum += n
		sums = append(sums, sum)
	}
	return sums
}

// entryWords is how many numbers of the look-aside buffer a node of the kind has in all, and for each of its entries.
var entryWords = [nodeKinds]struct{ all, each int64 }{
	SubarrayNode: {0, dimWords}, IndexedNode: {1, 2}, IndexedBlockNode: {0, 1}, StructNode: {1, 1 + fieldWords},
}

const (
	dimWords   = 4 // as AppendDims
	fieldWords = 3 // as AppendFields
)

// check returns an error if a walk could leave the nodes or the look-aside buffer.
func (t *Tree) check() error {
	if len(t.Nodes) > maxTreeNodes {
		return fmt.Errorf("%w: %d; %d are possible", ErrTreeTooLarge, len(t.Nodes), maxTreeNodes)
	}
	if t.Primitives < 0 || t.Size < t.Primitives || t.Primitives > 0 && len(t.Nodes) == 0 {
		return fmt.Errorf("pack: a type tree of %d nodes with %d primitives in %d bytes", len(t.Nodes), t.Primitives, t.Size)
	}
	for i := range t.Nodes {
		if !t.holds(&t.Nodes[i]) {
			return fmt.Errorf("pack: node %d of a type tree is none: %+v", i, t.Nodes[i])
		}
	}
	return nil
}

// holds reports whether the node, its children and its table lie in the tree.
func (t *Tree) holds(n *TreeNode) bool {
	if n.Kind < 0 || n.Kind >= nodeKinds {
		return false
	}
	words := entryWords[n.Kind]
	blocked := n.Kind == VectorNode || n.Kind == IndexedBlockNode
	room := int64(len(t.LookAside)) - n.Table - words.all
	switch {
	case n.Kind != StructNode && (n.Primitives < 1 || n.Child < 0 || n.Child >= len(t.Nodes)), blocked && n.BlockLength < 1:
		return false
	case words.each == 0:
		return true
	case n.Table < 0 || n.Entries < 1 || n.Entries > room/words.each:
		return false
	}
	return n.Kind != StructNode || t.holdsFields(n)
}

func (t *Tree) holdsFields(n *TreeNode) bool {
	fields := t.LookAside[n.Table+n.Entries+1:][:n.Entries*fieldWords]
	for i := fieldWords - 1; i < len(fields); i += fieldWords {
		if fields[i] < 0 || fields[i] >= int64(len(t.Nodes)) {
			return false
		}
	}
	return true
}

// treeNode is struct Node of tree.cu: a TreeNode with what divisions by its numbers become.
type treeNode struct {
	primitives, size, extent, stride, block int64
	table, entries                          int64
	byPrimitives, byBlock                   division
	kind                                    NodeKind
	child                                   int32
	unit, memory, packed, _                 uint16
}

// ready returns the node as threads read it.
func (n *TreeNode) ready() treeNode {
	return treeNode{
		primitives: n.Primitives, size: n.Size, extent: n.Extent, stride: n.Stride, block: n.BlockLength,
		table: n.Table, entries: n.Entries,
		byPrimitives: divisionBy(max(1, n.Primitives)), byBlock: divisionBy(max(1, n.BlockLength)),
		kind: n.Kind, child: int32(n.Child),
		unit: uint16(n.Unit), memory: uint16(n.MemoryAlignment), packed: uint16(n.PackAlignment),
	}
}
