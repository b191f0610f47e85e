package pack

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// ErrTreeTooLarge is returned for a tree whose nodes exceed the shared memory of a thread block.
var ErrTreeTooLarge = errors.New("pack: the nodes of a type tree must fit in shared memory")

// sharedBytes is the shared memory that every GPU gives a block by default.
const sharedBytes = 48 << 10

// maxTreeNodes is the largest number of nodes of a tree. The size of its look-aside buffer is not limited.
const maxTreeNodes = sharedBytes / int(unsafe.Sizeof(treeNode{}))

// NodeKind is how a node of a tree places its children.
type NodeKind int32

// The kinds of nodes: table 1 of Jenkins et al. 2014, plus contiguous and indexed block.
const (
	ContiguousNode   NodeKind = iota // child i is i extents from the start
	VectorNode                       // in blocks of equal length, at a constant stride
	SubarrayNode                     // over the dimensions in the look-aside buffer
	IndexedNode                      // in blocks with lengths and displacements in the look-aside buffer
	IndexedBlockNode                 // in blocks of equal length with displacements in the look-aside buffer
	StructNode                       // in blocks with one child node each
	nodeKinds
)

// String returns the name.
func (n NodeKind) String() string {
	if n < 0 || n >= nodeKinds {
		return fmt.Sprintf("kind %d", int32(n))
	}
	return [nodeKinds]string{"contiguous", "vector", "subarray", "indexed", "indexed block", "struct"}[n]
}

// A TreeNode holds the parameters of fixed length of one constructor. Its children are numbered in pack order:
// child i begins with primitive i*Primitives and byte i*Size of the node. The children of a leaf, whose Unit is
// not 0, are primitives. The number of children is not stored, so that nodes may be shared.
//
//	kind           location of child i
//	contiguous     i*Extent
//	vector         i/BlockLength*Stride + i%BlockLength*Extent
//	subarray       the sum of i_d*stride_d over Entries dimensions, i_0 fastest
//	indexed        displacement_b + (i-first_b)*Extent, in block b of Entries
//	indexed block  displacement_b + i%BlockLength*Extent, b = i/BlockLength
//	struct         displacement_b, in block b of Entries; see [AppendFields]
type TreeNode struct {
	Kind        NodeKind // how it places its children
	Primitives  int64    // per child; 1 in a leaf
	Size        int64    // per child, in packed bytes
	Extent      int64    // bytes
	Stride      int64    // bytes
	BlockLength int64    // children
	Table       int64    // start of its part of the look-aside buffer
	Entries     int64    // blocks or dimensions in it
	Child       int      // index of the child node; 0 in a leaf and in a struct

	// Unit is the size of a primitive of a leaf in bytes, 1, 2, 4, 8 or 16, and 0 otherwise. The alignments of its
	// addresses are at most Unit, if the addresses bound by a launch are multiples of 16.
	Unit                           int
	MemoryAlignment, PackAlignment int // bytes
}

// A Tree is a datatype serialized as in Jenkins et al. 2014, section 3.1: the parameters of fixed length of all
// its constructors in preorder, which every thread block caches, and those of variable length in one look-aside
// buffer. It is position independent: all displacements are relative to an origin that a launch binds.
//
// A primitive is the unit that one thread moves: a predefined type or, if the layout allows, a word of several.
type Tree struct {
	Nodes      []TreeNode // the root first
	LookAside  []int64    // see AppendDims, AppendBlocks and AppendFields
	Base       int64      // added to all displacements, in bytes
	Primitives int64      // in total
	Size       int64      // packed bytes
	Lo, Hi     int64      // the half-open range of accessed displacements, including Base
	Word       int64      // the Unit and the alignments of every leaf; 0 if they differ
}

// A TreeDim is one dimension of a subarray node: the number of children, and the stride in bytes.
type TreeDim struct {
	Count  int64 // children
	Stride int64 // bytes
}

// AppendDims appends the part of the look-aside buffer of a subarray, the fastest dimension first.
func AppendDims(lookAside []int64, dims ...TreeDim) []int64 {
	for _, d := range dims {
		magic, rest := divisionBy(d.Count).words()
		lookAside = append(lookAside, d.Count, d.Stride, magic, rest)
	}
	return lookAside
}

// AppendBlocks appends the part of the look-aside buffer of an indexed node: the prefix sums of the lengths, which
// are at least 1, and the displacements in bytes.
func AppendBlocks(lookAside []int64, lengths, displacements []int64) []int64 {
	return append(appendSums(lookAside, lengths), displacements...)
}

// A TreeField is one block of a struct node.
type TreeField struct {
	Displacement int64 // bytes
	Primitives   int64 // at least 1
	Size         int64 // packed bytes
	Child        int   // index of the child node
}

// AppendFields appends the part of the look-aside buffer of a struct: the prefix sums of the primitives, and for
// each block its displacement, its offset in the packed bytes and its child.
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

// appendSums appends 0 and the prefix sums.
func appendSums(sums, numbers []int64) []int64 {
	sum := int64(0)
	sums = append(sums, sum)
	for _, n := range numbers {
		sum += n
		sums = append(sums, sum)
	}
	return sums
}

// entryWords is the number of look-aside numbers of a node of each kind, in total and per entry.
var entryWords = [nodeKinds]struct{ all, each int64 }{
	SubarrayNode: {0, dimWords}, IndexedNode: {1, 2}, IndexedBlockNode: {0, 1}, StructNode: {1, 1 + fieldWords},
}

const (
	dimWords   = 4 // as in AppendDims
	fieldWords = 3 // as in AppendFields
)

// check returns an error if a walk could leave the nodes or the look-aside buffer.
func (t *Tree) check() error {
	if len(t.Nodes) > maxTreeNodes {
		return fmt.Errorf("%w: must be at most %[3]d nodes, got %[2]d", ErrTreeTooLarge, len(t.Nodes), maxTreeNodes)
	}
	if t.Primitives < 0 || t.Size < t.Primitives || t.Primitives > 0 && len(t.Nodes) == 0 {
		return fmt.Errorf("pack: type tree: must have nodes and sizes, got %d nodes with %d primitives in %d bytes",
			len(t.Nodes), t.Primitives, t.Size)
	}
	for i := range t.Nodes {
		if !t.holds(&t.Nodes[i]) {
			return fmt.Errorf("pack: node %d of a type tree: must be valid, got %+v", i, t.Nodes[i])
		}
	}
	return nil
}

// holds reports whether the node, its children and its table are within the tree.
func (t *Tree) holds(n *TreeNode) bool {
	if n.Kind < 0 || n.Kind >= nodeKinds {
		return false
	}
	words := entryWords[n.Kind]
	blocked := n.Kind == VectorNode || n.Kind == IndexedBlockNode
	room := int64(len(t.LookAside)) - n.Table - words.all
	switch {
	case n.Kind != StructNode && (n.Primitives < 1 || n.Child < 0 || n.Child >= len(t.Nodes)),
		blocked && n.BlockLength < 1:
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

// treeNode is struct Node of tree.cu: a TreeNode with constants for divisions by its numbers.
type treeNode struct {
	primitives, size, extent, stride, block int64
	table, entries                          int64
	byPrimitives, byBlock                   division
	kind                                    NodeKind
	child                                   int32
	unit, memory, packed, _                 uint16
}

// ready returns the node in the form read by threads.
func (t *TreeNode) ready() treeNode {
	return treeNode{
		primitives: t.Primitives, size: t.Size, extent: t.Extent, stride: t.Stride, block: t.BlockLength,
		table: t.Table, entries: t.Entries,
		byPrimitives: divisionBy(max(1, t.Primitives)), byBlock: divisionBy(max(1, t.BlockLength)),
		kind: t.Kind, child: int32(t.Child),
		unit: uint16(t.Unit), memory: uint16(t.MemoryAlignment), packed: uint16(t.PackAlignment),
	}
}

// A TreePacker packs and unpacks by type trees on one device: the engine of Jenkins et al. 2014, with one
// primitive per thread.
type TreePacker struct {
	device       *streams.Device
	pack, unpack [2]streams.Function // with 32-bit and with 64-bit ids; nil on CPU devices
}

// treeArgs is struct Tree of tree.cu.
type treeArgs struct {
	nodes, lookAside               uint64
	user, packed                   uint64
	words                          int64 // of 8 bytes, for the nodes
	primitives, word               int64
	memoryAlignment, packAlignment int64
}

func treeProgram() kernels.Program {
	return kernels.Program{File: "tree.cu", Mirrors: []kernels.Mirror{
		{Name: "Tree", Value: treeArgs{}}, {Name: "Node", Value: treeNode{}},
		{Name: "sizeof(Dim)", Value: 8 * dimWords}, {Name: "sizeof(Field)", Value: 8 * fieldWords},
		{Name: "CONTIGUOUS", Value: ContiguousNode}, {Name: "VECTOR", Value: VectorNode},
		{Name: "SUBARRAY", Value: SubarrayNode}, {Name: "INDEXED", Value: IndexedNode},
		{Name: "INDEXED_BLOCK", Value: IndexedBlockNode}, {Name: "STRUCT", Value: StructNode},
	}}
}

// NewTreePacker compiles the kernels for the device.
func NewTreePacker(c *kernels.Compiler, d *streams.Device) (*TreePacker, error) {
	m := &TreePacker{device: d}
	found, err := c.Load(d, treeProgram(), "pack_narrow", "pack_wide", "unpack_narrow", "unpack_wide")
	if err != nil {
		return nil, err
	}
	copy(m.pack[:], found)
	copy(m.unpack[:], found[2:])
	return m, nil
}

// A TreeTable is a tree on a device. Any number of launches may be bound to it.
type TreeTable struct {
	packer    *TreePacker
	tree      Tree // without the nodes
	nodes     []treeNode
	lookAside []int64
	memory    streams.Resources // on a GPU: nodes, and the look-aside buffer if there is one
	onDevice  [2]streams.Span
}

// Table copies a tree to the device. It returns ErrTreeTooLarge if the nodes do not fit in shared memory. The
// table must be closed after its launches.
func (m *TreePacker) Table(t Tree) (*TreeTable, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	table := &TreeTable{packer: m, tree: t, lookAside: slices.Clone(t.LookAside)}
	table.tree.Nodes, table.tree.LookAside = nil, nil
	for i := range t.Nodes {
		table.nodes = append(table.nodes, t.Nodes[i].ready())
	}
	if m.device.GoKernels || t.Primitives == 0 { // Go walks the tree itself
		return table, nil
	}
	put(table, 0, table.nodes)
	put(table, 1, table.lookAside)
	return table, table.memory.Done()
}

// put uploads a part of the table, unless it is empty.
func put[T any](t *TreeTable, part int, values []T) {
	var memory *streams.Memory
	if len(values) > 0 {
		streams.Into(&t.memory, &memory)(streams.Upload(t.packer.device, values))
	}
	if memory != nil {
		t.onDevice[part] = memory.All()
	}
}

// Close frees the table. Closing twice is allowed.
func (t *TreeTable) Close() error { return t.memory.Close() }

// Primitive returns the location of primitive n of the tree, 0 <= n < Primitives: its displacement from the
// origin, its offset in the packed bytes, and its size, all in bytes. It is algorithm 1 of Jenkins et al. 2014: a
// walk from the root to a leaf by integer arithmetic on n.
func (t *TreeTable) Primitive(n int64) (displacement, offset, size int64) {
	displacement = t.tree.Base
	for node := &t.nodes[0]; ; {
		if node.kind == StructNode {
			first, field := t.field(node, n)
			n -= first
			displacement += field[0]
			offset += field[1]
			node = &t.nodes[field[2]]
			continue
		}
		child := node.byPrimitives.of(n)
		n -= child * node.primitives
		displacement += t.place(node, child)
		offset += child * node.size
		if node.unit > 0 {
			return displacement, offset, int64(node.unit)
		}
		node = &t.nodes[node.child]
	}
}

// place returns the location of a child of a node.
func (t *TreeTable) place(n *treeNode, child int64) int64 {
	switch n.kind {
	case VectorNode:
		block := n.byBlock.of(child)
		return block*n.stride + (child-block*n.block)*n.extent
	case SubarrayNode:
		return t.element(n, child)
	case IndexedBlockNode:
		block := n.byBlock.of(child)
		return t.lookAside[n.table+block] + (child-block*n.block)*n.extent
	case IndexedNode:
		block := t.search(n, child)
		first, displacement := t.lookAside[n.table+block], t.lookAside[n.table+n.entries+1+block]
		return displacement + (child-first)*n.extent
	}
	return child * n.extent
}

// element returns the location of a child of a subarray.
func (t *TreeTable) element(n *treeNode, child int64) (at int64) {
	for d := range n.entries {
		dim := t.lookAside[n.table+d*dimWords:][:dimWords]
		by := divisionOf(dim[2], dim[3])
		rest := by.of(child)
		at += (child - rest*dim[0]) * dim[1]
		child = rest
	}
	return at
}

// field returns the first primitive of the struct block that contains primitive n, and its entry written by
// AppendFields.
func (t *TreeTable) field(node *treeNode, n int64) (first int64, field []int64) {
	block := t.search(node, n)
	return t.lookAside[node.table+block], t.lookAside[node.table+node.entries+1+block*fieldWords:][:fieldWords]
}

// search returns the block that contains n, by its node's prefix sums: sum(block) <= n < sum(block+1).
func (t *TreeTable) search(node *treeNode, n int64) int64 {
	after := t.lookAside[node.table+1:][:node.entries]
	return int64(sort.Search(len(after), func(b int) bool { return after[b] > n }))
}

// copyOnHost is the Go counterpart of all kernels of tree.cu.
func (t *TreeTable) copyOnHost(p Passage) {
	h := p.host()
	for n := range t.tree.Primitives {
		displacement, offset, size := t.Primitive(n)
		h.move(displacement, offset, size)
	}
}

// Kernel prepares a launch that packs or unpacks the tree, with at most the given number of thread blocks of a
// GPU; 0 selects an automatic number. Addresses are arbitrary, but those of the origin and of the packed buffer
// should be multiples of the tree's words: otherwise each word is moved in pieces.
func (t *TreeTable) Kernel(p Passage, blocks int) (*streams.Kernel, error) {
	if blocks < 0 {
		return nil, fmt.Errorf("pack: number of thread blocks: must be at least 0, got %d", blocks)
	}
	functions := t.packer.pack
	if p.Unpack {
		functions = t.packer.unpack
	}
	spec := streams.KernelSpec{Name: p.name() + " a tree", Function: functions[0], Run: func() { t.copyOnHost(p) }}
	if t.tree.Primitives > 1<<31-1 { // 64-bit ids
		spec.Function = functions[1]
	}
	grid := max(1, launch.FlatGrid(t.tree.Primitives))
	if blocks > 0 {
		grid = min(grid, blocks)
	}
	spec.Grid, spec.Block = [3]int{grid, 1, 1}, [3]int{launch.BlockSize, 1, 1}
	arg := treeArgs{primitives: t.tree.Primitives}
	if arg.primitives > 0 {
		if err := (extent{t.tree.Size, t.tree.Lo, t.tree.Hi}).fits(p); err != nil {
			return nil, err
		}
		spec.Shared = len(t.nodes) * int(unsafe.Sizeof(treeNode{}))
		t.bind(&arg, p)
		spec.Reaches = []streams.Span{p.Packed, p.Strided}
		for _, part := range t.onDevice {
			if part.Memory != nil {
				spec.Uses = append(spec.Uses, part)
			}
		}
	} else {
		spec.Run = func() {}
	}
	spec.Argument = launch.Argument(&arg)
	return launch.New(t.packer.device, spec)
}

// bind sets the addresses. Words are moved whole if both addresses are multiples of them.
func (t *TreeTable) bind(arg *treeArgs, p Passage) {
	arg.nodes, arg.lookAside = t.onDevice[0].Address(), t.onDevice[1].Address()
	arg.words = int64(len(t.nodes)) * int64(unsafe.Sizeof(treeNode{})) / 8
	arg.user, arg.packed, _ = p.addresses()
	arg.user += uint64(t.tree.Base)
	arg.memoryAlignment, arg.packAlignment = wordOf(arg.user), wordOf(arg.packed)
	if t.tree.Word <= min(arg.memoryAlignment, arg.packAlignment) {
		arg.word = t.tree.Word
	}
}

// wordOf returns the largest word, of at most 16 bytes, that divides an address.
func wordOf(address uint64) int64 {
	address |= 16
	return int64(address & -address)
}
