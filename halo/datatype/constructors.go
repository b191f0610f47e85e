package datatype

import (
	"errors"
	"fmt"
	"slices"
)

// Contiguous returns count elements of a type one after another.
func Contiguous(count int, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: ContiguousCombiner, Count: count, Types: []*Type{t}})
}

// Vector returns count blocks of blockLength elements each, whose starts lie stride elements, that is stride extents,
// apart. The stride may be negative or less than the block length.
func Vector(count, blockLength, stride int, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: VectorCombiner, Count: count, BlockLength: blockLength, Stride: int64(stride), Types: []*Type{t}})
}

// HVector is [Vector] with the stride in bytes.
func HVector(count, blockLength int, stride int64, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: HVectorCombiner, Count: count, BlockLength: blockLength, Stride: stride, Types: []*Type{t}})
}

// Indexed returns one block a displacement, of blockLengths[i] elements, displacements[i] extents from the origin. Both
// lists have the same length.
func Indexed(blockLengths, displacements []int, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: IndexedCombiner, BlockLengths: slices.Clone(blockLengths), Displacements: widen(displacements), Types: []*Type{t}})
}

// HIndexed is [Indexed] with displacements in bytes.
func HIndexed(blockLengths []int, displacements []int64, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: HIndexedCombiner, BlockLengths: slices.Clone(blockLengths), Displacements: slices.Clone(displacements), Types: []*Type{t}})
}

// IndexedBlock is [Indexed] with blocks of equal length.
func IndexedBlock(blockLength int, displacements []int, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: IndexedBlockCombiner, BlockLength: blockLength, Displacements: widen(displacements), Types: []*Type{t}})
}

// HIndexedBlock is [HIndexed] with blocks of equal length.
func HIndexedBlock(blockLength int, displacements []int64, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: HIndexedBlockCombiner, BlockLength: blockLength, Displacements: slices.Clone(displacements), Types: []*Type{t}})
}

// Subarray returns the box of subsizes elements from starts of an array of sizes elements, in any number of dimensions
// from 1. Its bounds are set to those of the whole array. In MPI every size and subsize is at least 1, and so it is here.
func Subarray(sizes, subsizes, starts []int, order Order, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: SubarrayCombiner, Sizes: slices.Clone(sizes), Subsizes: slices.Clone(subsizes), Starts: slices.Clone(starts),
		Order: order, Types: []*Type{t}})
}

// Struct returns one block a type: blockLengths[i] elements of types[i], displacements[i] bytes from the origin. The three
// lists have the same length. For the extent see [Type].
func Struct(blockLengths []int, displacements []int64, types []*Type) (*Type, error) {
	return construct(Envelope{Combiner: StructCombiner, BlockLengths: slices.Clone(blockLengths), Displacements: slices.Clone(displacements),
		Types: slices.Clone(types)})
}

// Resized returns the type with its bounds set to lb and lb+extent. The extent may be negative.
func Resized(t *Type, lb, extent int64) (*Type, error) {
	return construct(Envelope{Combiner: ResizedCombiner, LB: lb, Extent: extent, Types: []*Type{t}})
}

// construct checks the arguments and computes what is known of the type without walking through its elements.
func construct(e Envelope) (*Type, error) {
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("datatype: %v: %w", e.Combiner, err)
	}
	t := &Type{env: e}
	var c checked
	t.measure(&c)
	if c.overflow {
		return nil, fmt.Errorf("datatype: %v: %w", e.Combiner, errOverflow)
	}
	return t, nil
}

// widen returns the numbers in 64 bits.
func widen(numbers []int) []int64 {
	wide := make([]int64, len(numbers))
	for i, n := range numbers {
		wide[i] = int64(n)
	}
	return wide
}

var errNoType = errors.New("no type given (nil)")

// check returns an error if the arguments are not ones that MPI allows.
func (e *Envelope) check() error {
	if slices.Contains(e.Types, nil) {
		return errNoType
	}
	if e.Count < 0 || e.BlockLength < 0 {
		return fmt.Errorf("count %d and block length %d: neither may be negative", e.Count, e.BlockLength)
	}
	if i := slices.IndexFunc(e.BlockLengths, func(n int) bool { return n < 0 }); i >= 0 {
		return fmt.Errorf("block length %d of block %d is negative", e.BlockLengths[i], i)
	}
	switch e.Combiner {
	case IndexedCombiner, HIndexedCombiner, StructCombiner:
		return e.checkLists()
	case SubarrayCombiner:
		return e.checkSubarray()
	}
	return nil
}

func (e *Envelope) checkLists() error {
	if len(e.BlockLengths) != len(e.Displacements) {
		return fmt.Errorf("%d block lengths for %d displacements", len(e.BlockLengths), len(e.Displacements))
	}
	if e.Combiner == StructCombiner && len(e.Types) != len(e.Displacements) {
		return fmt.Errorf("%d types for %d displacements", len(e.Types), len(e.Displacements))
	}
	return nil
}

func (e *Envelope) checkSubarray() error {
	if len(e.Sizes) == 0 || len(e.Subsizes) != len(e.Sizes) || len(e.Starts) != len(e.Sizes) {
		return fmt.Errorf("%d sizes, %d subsizes and %d starts", len(e.Sizes), len(e.Subsizes), len(e.Starts))
	}
	if e.Order > FortranOrder {
		return fmt.Errorf("order %d is neither COrder nor FortranOrder", uint8(e.Order))
	}
	for i, size := range e.Sizes {
		sub, start := e.Subsizes[i], e.Starts[i]
		if sub < 1 || sub > size || start < 0 || start > size-sub {
			return fmt.Errorf("dimension %d: %d from %d do not lie within %d", i, sub, start, size)
		}
	}
	return nil
}
