package datatype

import (
	"errors"
	"fmt"
	"slices"
)

// Contiguous returns count consecutive elements of a type.
func Contiguous(count int, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: ContiguousCombiner, Count: count, Types: []*Type{t}})
}

// Vector returns count blocks of blockLength elements each. The distance between the starts of blocks is
// stride elements, that is stride extents. The stride may be negative or less than the block length.
func Vector(count, blockLength, stride int, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: VectorCombiner, Count: count, BlockLength: blockLength, Stride: int64(stride),
		Types: []*Type{t}})
}

// HVector is [Vector] with the stride in bytes.
func HVector(count, blockLength int, stride int64, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: HVectorCombiner, Count: count, BlockLength: blockLength, Stride: stride,
		Types: []*Type{t}})
}

// Indexed returns one block per displacement: blockLengths[i] elements, displacements[i] extents from the
// origin. Both lists must have the same length.
func Indexed(blockLengths, displacements []int, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: IndexedCombiner, BlockLengths: slices.Clone(blockLengths),
		Displacements: widen(displacements), Types: []*Type{t}})
}

// HIndexed is [Indexed] with displacements in bytes.
func HIndexed(blockLengths []int, displacements []int64, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: HIndexedCombiner, BlockLengths: slices.Clone(blockLengths),
		Displacements: slices.Clone(displacements), Types: []*Type{t}})
}

// IndexedBlock is [Indexed] with blocks of equal length.
func IndexedBlock(blockLength int, displacements []int, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: IndexedBlockCombiner, BlockLength: blockLength,
		Displacements: widen(displacements), Types: []*Type{t}})
}

// HIndexedBlock is [HIndexed] with blocks of equal length.
func HIndexedBlock(blockLength int, displacements []int64, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: HIndexedBlockCombiner, BlockLength: blockLength,
		Displacements: slices.Clone(displacements), Types: []*Type{t}})
}

// Subarray returns the box of subsizes elements, beginning at starts, of an array of sizes elements, in any
// number of dimensions from 1. Its bounds are those of the whole array. Every size and subsize must be at
// least 1, as in MPI.
func Subarray(sizes, subsizes, starts []int, order Order, t *Type) (*Type, error) {
	return construct(Envelope{Combiner: SubarrayCombiner, Sizes: slices.Clone(sizes), Subsizes: slices.Clone(subsizes),
		Starts: slices.Clone(starts), Order: order, Types: []*Type{t}})
}

// Struct returns one block per type: blockLengths[i] elements of types[i], displacements[i] bytes from the
// origin. The three lists must have the same length. For the extent see [Type].
func Struct(blockLengths []int, displacements []int64, types []*Type) (*Type, error) {
	return construct(Envelope{Combiner: StructCombiner, BlockLengths: slices.Clone(blockLengths),
		Displacements: slices.Clone(displacements), Types: slices.Clone(types)})
}

// Resized returns the type with its bounds set to lb and lb+extent. The extent may be negative.
func Resized(t *Type, lb, extent int64) (*Type, error) {
	return construct(Envelope{Combiner: ResizedCombiner, LB: lb, Extent: extent, Types: []*Type{t}})
}

// construct checks the arguments and computes the properties that need no walk through the elements.
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

var errNoType = errors.New("the type is nil")

// check returns an error if MPI does not allow the arguments.
func (e *Envelope) check() error {
	if slices.Contains(e.Types, nil) {
		return errNoType
	}
	if e.Count < 0 || e.BlockLength < 0 {
		return fmt.Errorf("count and block length must not be negative, got %d and %d", e.Count, e.BlockLength)
	}
	if i := slices.IndexFunc(e.BlockLengths, func(n int) bool { return n < 0 }); i >= 0 {
		return fmt.Errorf("block length of block %d must not be negative, got %d", i, e.BlockLengths[i])
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
		return fmt.Errorf("must have equally many block lengths and displacements, got %d and %d",
			len(e.BlockLengths), len(e.Displacements))
	}
	if e.Combiner == StructCombiner && len(e.Types) != len(e.Displacements) {
		return fmt.Errorf("must have one type per displacement, got %d for %d", len(e.Types), len(e.Displacements))
	}
	return nil
}

func (e *Envelope) checkSubarray() error {
	if len(e.Sizes) == 0 || len(e.Subsizes) != len(e.Sizes) || len(e.Starts) != len(e.Sizes) {
		return fmt.Errorf("must have equally many sizes, subsizes and starts, at least 1, got %d, %d and %d",
			len(e.Sizes), len(e.Subsizes), len(e.Starts))
	}
	if e.Order > FortranOrder {
		return fmt.Errorf("order must be COrder or FortranOrder, got %d", uint8(e.Order))
	}
	for i, size := range e.Sizes {
		sub, start := e.Subsizes[i], e.Starts[i]
		if sub < 1 || sub > size || start < 0 || start > size-sub {
			return fmt.Errorf("dimension %d: subsize %d from start %d must be at least 1 and inside size %d",
				i, sub, start, size)
		}
	}
	return nil
}

// measure computes size, bounds, alignment and signature from the envelope, in one pass over lists and
// otherwise in closed form.
func (t *Type) measure(c *checked) {
	t.alignment = 1
	switch e := &t.env; e.Combiner {
	case ContiguousCombiner:
		t.include(c, blockOf(c, e.Count, t.child()))
	case VectorCombiner, HVectorCombiner:
		t.include(c, blockOf(c, e.BlockLength, t.child()).repeat(c, int64(e.Count), e.stride(c)))
	case SubarrayCombiner:
		t.measureSubarray(c)
	case ResizedCombiner:
		t.include(c, blockOf(c, 1, t.child()))
		t.extent = bounds{lo: e.LB, hi: c.add(e.LB, e.Extent), any: true, set: true}
	default:
		t.measureList(c)
	}
	t.extent.pad(c, t.alignment)
	c.sub(t.extent.hi, t.extent.lo)
	c.sub(t.data.hi, t.data.lo)
}

func (t *Type) measureList(c *checked) {
	e := &t.env
	for i := range e.Displacements {
		displacement, length, child := e.block(c, i)
		t.include(c, blockOf(c, length, child).shift(c, displacement))
	}
}

func (t *Type) measureSubarray(c *checked) {
	m := blockOf(c, 1, t.child())
	whole := t.child().Extent()
	for _, d := range t.env.FastestFirst() {
		start := c.mul(int64(t.env.Starts[d]), whole)
		m = m.repeat(c, int64(t.env.Subsizes[d]), whole).shift(c, start)
		whole = c.mul(whole, int64(t.env.Sizes[d]))
	}
	t.include(c, m)
	t.extent = bounds{hi: whole, any: true, set: true}
}

// FastestFirst returns the dimensions of a subarray, fastest first.
func (e *Envelope) FastestFirst() []int {
	dims := make([]int, len(e.Sizes))
	for d := range dims {
		dims[d] = d
		if e.Order == COrder {
			dims[d] = len(dims) - 1 - d
		}
	}
	return dims
}

// StrideBytes returns the bytes between the starts of two blocks of a vector or hvector.
func (e *Envelope) StrideBytes() int64 { return e.stride(new(checked)) }

func (e *Envelope) stride(c *checked) int64 {
	if e.Combiner == HVectorCombiner {
		return e.Stride
	}
	return c.mul(e.Stride, e.Types[0].Extent())
}

// Block returns block i of a list of blocks or of a struct: its displacement in bytes, and its number of
// elements of a child.
func (e *Envelope) Block(i int) (displacement int64, length int, child *Type) {
	return e.block(new(checked), i)
}

func (e *Envelope) block(c *checked, i int) (displacement int64, length int, child *Type) {
	displacement, length, child = e.Displacements[i], e.BlockLength, e.Types[0]
	if e.BlockLengths != nil {
		length = e.BlockLengths[i]
	}
	switch e.Combiner {
	case StructCombiner:
		child = e.Types[i]
	case IndexedCombiner, IndexedBlockCombiner:
		displacement = c.mul(displacement, child.Extent())
	}
	return displacement, length, child
}

// blockOf measures length consecutive elements of a type.
func blockOf(c *checked, length int, t *Type) measured {
	return t.measured.repeat(c, int64(length), t.Extent())
}

func (m measured) repeat(c *checked, count, stride int64) measured {
	if count == 0 {
		return measured{alignment: 1}
	}
	m.size = c.mul(m.size, count)
	m.extent = m.extent.repeat(c, count, stride)
	m.data = m.data.repeat(c, count, stride)
	m.signature = m.signature.Times(count)
	return m
}

func (m measured) shift(c *checked, by int64) measured {
	m.extent, m.data = m.extent.shift(c, by), m.data.shift(c, by)
	return m
}

// include adds a part to the type, after all that was added before it.
func (t *Type) include(c *checked, m measured) {
	t.size = c.add(t.size, m.size)
	t.extent.join(m.extent)
	t.data.join(m.data)
	t.alignment = max(t.alignment, m.alignment)
	t.signature = t.signature.Then(m.signature)
}
