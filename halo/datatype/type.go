package datatype

import "slices"

// A Type is a sequence of predefined types, each with a displacement from an origin: MPI's type map. It is made by a
// constructor and never changes; any number of goroutines may use it.
//
// # Extent
//
// Elements of a type follow each other at a distance of its extent, from its lower bound LB to its upper bound UB. Unless
// [Resized] or [Subarray] sets them, LB is the smallest lower bound of the parts and UB the greatest upper bound, rounded
// up so that the extent is a multiple of the alignment of every predefined type in it: MPI's epsilon. Parts count with
// their own epsilon.
//
// Bounds that were set are markers in the type map, as in MPI: where one part of a type has set bounds, the type's own are
// those of such parts alone, whatever lies beside them, and are set as well. Extents may be negative.
//
// An empty type, one with neither bytes nor markers, has all bounds 0, and leaves no trace as a part of another.
//
// MPI libraries differ here, and tests hold this package against them. Open MPI 4.1 agrees with most of it. There the
// displacements of empty parts widen the bounds, and the extent was seen to differ of a Struct of which a later block lies
// lowest (16 bytes against 24) and of a vector with a stride of -1 byte. In MPICH 4.0 empty parts do the same; it moreover
// rounds in Struct alone, where others round in every constructor (which matters only for displacements and strides in bytes
// that are no multiples of the alignment), and in Struct takes bounds that were set for ordinary ones.
type Type struct {
	env Envelope
	measured
}

// measured is what is known of a type, or of a part of one, without a walk through its elements.
type measured struct {
	size      int64
	extent    bounds // with markers and epsilon
	data      bounds // of the bytes alone
	alignment int64
	signature Signature
}

// Size returns the number of bytes of data in one element: those that are packed.
func (t *Type) Size() int64 { return t.size }

// LB returns the lower bound.
func (t *Type) LB() int64 { return t.extent.lo }

// UB returns the upper bound.
func (t *Type) UB() int64 { return t.extent.hi }

// Extent returns UB - LB, the distance from one element to the next.
func (t *Type) Extent() int64 { return t.extent.hi - t.extent.lo }

// TrueLB returns the smallest displacement of a byte of the element, markers apart.
func (t *Type) TrueLB() int64 { return t.data.lo }

// TrueUB returns the displacement after the last byte of the element, markers and epsilon apart.
func (t *Type) TrueUB() int64 { return t.data.hi }

// TrueExtent returns TrueUB - TrueLB.
func (t *Type) TrueExtent() int64 { return t.data.hi - t.data.lo }

// Alignment returns the greatest alignment of a predefined type in the type; 1 if it has none.
func (t *Type) Alignment() int64 { return t.alignment }

// Signature returns the sequence of predefined types in one element, in pack order.
func (t *Type) Signature() Signature { return t.signature }

// An Envelope is the call that made a type: the constructor and its arguments, as MPI_Type_get_envelope and
// MPI_Type_get_contents return them. Fields that the constructor has no argument for are zero.
//
//	combiner         fields
//	named            Basic
//	contiguous       Count, Types[0]
//	vector           Count, BlockLength, Stride (elements), Types[0]
//	hvector          Count, BlockLength, Stride (bytes), Types[0]
//	indexed          BlockLengths, Displacements (elements), Types[0]
//	hindexed         BlockLengths, Displacements (bytes), Types[0]
//	indexed_block    BlockLength, Displacements (elements), Types[0]
//	hindexed_block   BlockLength, Displacements (bytes), Types[0]
//	subarray         Sizes, Subsizes, Starts, Order, Types[0]
//	struct           BlockLengths, Displacements (bytes), Types
//	resized          LB, Extent, Types[0]
type Envelope struct {
	Combiner      Combiner
	Basic         Basic
	Count         int
	BlockLength   int
	Stride        int64
	BlockLengths  []int
	Displacements []int64
	Sizes         []int
	Subsizes      []int
	Starts        []int
	Order         Order
	LB            int64
	Extent        int64
	Types         []*Type // the children
}

// Envelope returns how the type was made. The slices are copies.
func (t *Type) Envelope() Envelope {
	e := t.env
	e.BlockLengths = slices.Clone(e.BlockLengths)
	e.Displacements = slices.Clone(e.Displacements)
	e.Sizes = slices.Clone(e.Sizes)
	e.Subsizes = slices.Clone(e.Subsizes)
	e.Starts = slices.Clone(e.Starts)
	e.Types = slices.Clone(e.Types)
	return e
}

// child returns the only child.
func (t *Type) child() *Type { return t.env.Types[0] }
