package pack

import "sort"

// Primitive returns where primitive n of the tree lies, 0 <= n < Primitives: its displacement from the origin, its
// offset among the packed bytes, and its size. It is algorithm 1 of Jenkins et al. 2014: a walk from the root to a leaf
// by integer arithmetic on n.
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

// place returns where a child of a node lies.
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

// element returns where a child of a subarray lies.
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

// field returns the first primitive of the block of a struct that primitive n lies in, and what AppendFields wrote of
// it.
func (t *TreeTable) field(node *treeNode, n int64) (first int64, field []int64) {
	block := t.search(node, n)
	return t.lookAside[node.table+block], t.lookAside[node.table+node.entries+1+block*fieldWords:][:fieldWords]
}

// search returns the block that n lies in, by its node's prefix sums: sum(block) <= n < sum(block+1).
func (t *TreeTable) search(node *treeNode, n int64) int64 {
	after := t.lookAside[node.table+1:][:node.entries]
	return int64(sort.Search(len(after), func(b int) bool { return after[b] > n }))
}

// packHost is the host version of kernels pack_narrow and pack_wide.
func (t *TreeTable) packHost(user, packed []byte, origin int64) {
	for n := range t.tree.Primitives {
		displacement, offset, size := t.Primitive(n)
		copy(packed[offset:offset+size], user[origin+displacement:])
	}
}

// unpackHost is the host version of kernels unpack_narrow and unpack_wide.
func (t *TreeTable) unpackHost(user, packed []byte, origin int64) {
	for n := range t.tree.Primitives {
		displacement, offset, size := t.Primitive(n)
		copy(user[origin+displacement:][:size], packed[offset:])
	}
}
