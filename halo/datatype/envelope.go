package datatype

import "slices"

// Combiner says by which constructor a type was made.
type Combiner uint8

// The constructors, by MPI's names for them.
const (
	Named                 Combiner = iota // a predefined type
	ContiguousCombiner                    // [Contiguous]
	VectorCombiner                        // [Vector]
	HVectorCombiner                       // [HVector]
	IndexedCombiner                       // [Indexed]
	HIndexedCombiner                      // [HIndexed]
	IndexedBlockCombiner                  // [IndexedBlock]
	HIndexedBlockCombiner                 // [HIndexedBlock]
	SubarrayCombiner                      // [Subarray]
	StructCombiner                        // [Struct]
	ResizedCombiner                       // [Resized]
	combiners
)

// String returns the name, as in MPI but for the prefix and in small letters.
func (c Combiner) String() string {
	return [combiners]string{"named", "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block", "hindexed_block",
		"subarray", "struct", "resized"}[c]
}

// Order is the storage order of the array that a [Subarray] is cut from.
type Order uint8

// The two orders: in COrder the last dimension runs fastest, in FortranOrder the first.
const (
	COrder Order = iota
	FortranOrder
)

// String returns C or Fortran.
func (o Order) String() string { return [2]string{"C", "Fortran"}[o] }

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
