package datatype

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
