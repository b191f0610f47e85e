package datatype

import (
	"slices"

	"pgregory.net/rapid"
)

// RandomType returns a random type, the same for a seed, and a count of it.
func RandomType(t rapid.TB, seed uint64) (*Type, int) {
	s := seeded(seed)
	return s.randomType(t, 1+s(0, 4)), s.count(5)
}

// HasEmpty reports whether a part of a type, or the type, is empty.
func HasEmpty(t *Type) bool {
	return t.size == 0 || slices.ContainsFunc(t.env.Types, HasEmpty) || slices.Contains(t.env.BlockLengths, 0)
}

// SetsBoundsInStruct reports whether a part of a type, or the type, is a struct with a part whose bounds are set.
func SetsBoundsInStruct(t *Type) bool {
	set := func(t *Type) bool { return t.extent.set }
	return t.env.Combiner == StructCombiner && slices.ContainsFunc(t.env.Types, set) || slices.ContainsFunc(t.env.Types, SetsBoundsInStruct)
}

// Unaligned reports whether a part of a type, or the type, places elements at bytes that are no multiples of their alignment.
func Unaligned(t *Type) bool {
	e, unit := &t.env, t.alignment
	off := func(n int64) bool { return n%unit != 0 }
	switch e.Combiner {
	case HVectorCombiner, HIndexedCombiner, HIndexedBlockCombiner:
		if off(e.Stride) || slices.ContainsFunc(e.Displacements, off) {
			return true
		}
	case ResizedCombiner:
		if off(e.LB) || off(e.Extent) {
			return true
		}
	}
	return slices.ContainsFunc(e.Types, Unaligned)
}

// Numbered returns n bytes of which no eight in a row come twice.
func Numbered(n int64) []byte { return numbered(n) }
