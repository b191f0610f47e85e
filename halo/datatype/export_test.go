package datatype

import "slices"

// Internals for tests. Most tests are external, since typetest imports the package.
var (
	Construct    = construct
	ListOverlaps = listOverlaps
	SignatureOf  = signatureOf
)

// Elements calls f for all predefined types of count elements, in pack order.
func (t *Type) Elements(count int, f func(displacement int64, b Basic)) { t.elements(count, f) }

// Same reports whether two types have the same signature and the same bounds.
func Same(t, u *Type) bool {
	return t.signature == u.signature && t.extent == u.extent && t.data == u.data
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

// Unaligned reports whether a part of a type, or the type, places elements at bytes that are not multiples of
// their alignment.
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
