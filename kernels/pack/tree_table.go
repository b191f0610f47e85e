package pack

import (
	"errors"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// A TreePacker packs and unpacks by type trees on one device: the engine of Jenkins et al. 2014, a primitive a thread.
type TreePacker struct {
	device       *streams.Device
	pack, unpack [2]streams.Function // by 32 and by 64 bits; nil where Go runs
}

// treeArgs is struct Tree of tree.cu.
type treeArgs struct {
	nodes, lookAside               uint64
	user, packed                   uint64
	words                          int64 // of 8 bytes, that the nodes fill
	primitives, word               int64
	memoryAlignment, packAlignment int64
}

func treeProgram() kernels.Program {
	return kernels.Program{File: "tree.cu", Mirrors: []kernels.Mirror{
		{Name: "Tree", Value: treeArgs{}}, {Name: "Node", Value: treeNode{}}, {Name: "sizeof(Dim)", Value: 8 * dimWords}, {Name: "sizeof(Field)", Value: 8 * fieldWords},
		{Name: "CONTIGUOUS", Value: ContiguousNode}, {Name: "VECTOR", Value: VectorNode}, {Name: "SUBARRAY", Value: SubarrayNode},
		{Name: "INDEXED", Value: IndexedNode}, {Name: "INDEXED_BLOCK", Value: IndexedBlockNode}, {Name: "STRUCT", Value: StructNode},
	}}
}

// NewTreePacker compiles for the device.
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
	memory    streams.Resources // where CUDA runs: nodes, and the look-aside buffer if there is one
	onDevice  [2]streams.Span
}

// Table puts a tree on the device. It returns ErrTreeTooLarge if the nodes do not fit into shared memory. Close the
// table after its launches.
func (m *TreePacker) Table(t Tree) (*TreeTable, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	table := &TreeTable{packer: m, tree: t, lookAside: slices.Clone(t.LookAside)}
	table.tree.Nodes, table.tree.LookAside = nil, nil
	for i := range t.Nodes {
		table.nodes = append(table.nodes, t.Nodes[i].ready())
	}
	if m.device.GoKernels || t.Primitives == 0 { // there Go walks the tree itself
		return table, nil
	}
	if err := errors.Join(table.put(0, uploader(table.nodes)), table.put(1, uploader(table.lookAside))); err != nil {
		return nil, errors.Join(err, table.Close())
	}
	return table, nil
}

// uploader returns what uploads the values; nil if there are none.
func uploader[T any](values []T) func(*streams.Device) (*streams.Memory, error) {
	if len(values) == 0 {
		return nil
	}
	return func(d *streams.Device) (*streams.Memory, error) { return streams.Upload(d, values) }
}

func (t *TreeTable) put(part int, upload func(*streams.Device) (*streams.Memory, error)) error {
	if upload == nil {
		return nil
	}
	memory, err := upload(t.packer.device)
	if err != nil {
		return err
	}
	t.memory.Add(memory)
	t.onDevice[part] = memory.All()
	return nil
}

// Close frees the table. Closing twice is no error.
func (t *TreeTable) Close() error { return t.memory.Close() }
