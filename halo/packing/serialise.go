package packing

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels/pack"
)

// serialise returns count elements of a type as the tree that the kernels walk through: Jenkins et al. 2014, section
// 3.1. Constructors become nodes in preorder; those of which a thread needs to know nothing do not: predefined types,
// Resized, which only changes the extent its parent sees, and parts without data. Parts of a struct that are the same
// share their nodes. An error says that count is negative, or that the elements overflow 64 bits.
func serialise(t *datatype.Type, count int, o treeOptions) (pack.Tree, error) {
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
	tree := root.serialise(o)
	tree.Base, tree.Size, tree.Lo, tree.Hi = root.at, all.Size(), all.TrueLB(), all.TrueUB()
	return tree, nil
}

// serialise writes the tree of a shape. If its leaves have words of different sizes but could all have the smallest,
// they get that: the offset of a word in the packed buffer then needs no walk.
func (p placed) serialise(o treeOptions) pack.Tree {
	w := newTreeWriter(o, 0)
	w.root(p)
	if least, ok := w.commonWord(); ok && !o.Primitive {
		w = newTreeWriter(o, least)
		w.root(p)
	}
	w.tree.Word = w.word()
	return w.tree
}
