// Package datatype describes non-contiguous data by MPI's names and meanings (MPI-4.1, chapter 5): predefined
// types, derived types, and the layout of count elements of a type.
//
// A [Type] is built by constructors named after MPI's: [Contiguous], [Vector], [Indexed], [Subarray],
// [Struct] and others, nested to any depth. [Commit] brings count elements of a type to a canonical form, a
// [Layout]: a few strided pieces, or a list of blocks if they are irregular. Types that name the same bytes
// in the same order usually commit to equal layouts, however they are described.
//
// All displacements are in bytes and relative to an origin, the address that MPI calls buf. They may be
// negative. The pack order is always that of the type map.
//
// The package computes with integers and moves bytes in host memory; it does not use devices. The engines
// that pack on GPUs start from a [Layout], or from the tree of constructors that [Type.Envelope] returns.
package datatype

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// A Type is a sequence of predefined types, each with a displacement from an origin: MPI's type map. A
// constructor makes it; it never changes, and any number of goroutines may use it.
//
// # Extent
//
// Consecutive elements of a type are one extent apart: the distance from its lower bound LB to its upper
// bound UB. Unless [Resized] or [Subarray] sets them, LB is the smallest lower bound of the parts and UB the
// greatest upper bound, rounded up so that the extent is a multiple of the alignment of every predefined type
// in it: MPI's epsilon. Bounds of parts include their own epsilon.
//
// Set bounds are markers in the type map, as in MPI: if parts of a type have set bounds, the type's bounds
// are determined by those parts only, and count as set too. Extents may be negative.
//
// An empty type, with neither bytes nor markers, has all bounds 0, and has no effect as a part of another
// type.
//
// MPI libraries deviate here, and tests compare them with this package. Open MPI 4.1 agrees with most of it;
// there, the displacements of empty parts widen the bounds, and the extent differs for a Struct whose later
// block is lowest (16 bytes instead of 24) and for a vector with a stride of -1 byte. MPICH 4.0 treats empty
// parts in the same way; in addition it rounds only in Struct, where others round in every constructor (which
// matters only for displacements and strides in bytes that are not multiples of the alignment), and in Struct
// treats set bounds like any other.
type Type struct {
	env Envelope
	measured
}

// measured has the properties of a type, or of a part of one, that need no walk through its elements.
type measured struct {
	size      int64
	extent    bounds // with markers and epsilon
	data      bounds // of the bytes only
	alignment int64
	signature Signature
}

// Size returns the number of data bytes in one element, which is its packed size.
func (t *Type) Size() int64 { return t.size }

// LB returns the lower bound, in bytes from the origin.
func (t *Type) LB() int64 { return t.extent.lo }

// UB returns the upper bound, in bytes from the origin.
func (t *Type) UB() int64 { return t.extent.hi }

// Extent returns UB - LB, the distance in bytes from one element to the next.
func (t *Type) Extent() int64 { return t.extent.hi - t.extent.lo }

// TrueLB returns the smallest displacement of a byte of the element, ignoring markers.
func (t *Type) TrueLB() int64 { return t.data.lo }

// TrueUB returns the displacement after the last byte of the element, ignoring markers and epsilon.
func (t *Type) TrueUB() int64 { return t.data.hi }

// TrueExtent returns TrueUB - TrueLB.
func (t *Type) TrueExtent() int64 { return t.data.hi - t.data.lo }

// Alignment returns the greatest alignment of a predefined type in the type; 1 if it has none.
func (t *Type) Alignment() int64 { return t.alignment }

// Signature returns the sequence of predefined types in one element, in pack order.
func (t *Type) Signature() Signature { return t.signature }

// An Envelope is the call that made a type: the constructor and its arguments, as MPI_Type_get_envelope and
// MPI_Type_get_contents return them. Fields that are not arguments of the constructor are zero.
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
	Combiner      Combiner // the constructor
	Basic         Basic    // a predefined type
	Count         int      // number of elements or blocks
	BlockLength   int      // elements per block
	Stride        int64    // elements, or bytes in hvector
	BlockLengths  []int    // elements of each block
	Displacements []int64  // elements, or bytes in hindexed, hindexed_block and struct
	Sizes         []int    // elements of the array, by dimension
	Subsizes      []int    // elements of the box
	Starts        []int    // first element of the box
	Order         Order    // storage order of the dimensions
	LB            int64    // bytes
	Extent        int64    // bytes
	Types         []*Type  // the children
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

// The predefined types. They have neither gaps nor padding.
var (
	Byte       = named(ByteKind)
	Int8       = named(Int8Kind)
	Int16      = named(Int16Kind)
	Int32      = named(Int32Kind)
	Int64      = named(Int64Kind)
	Uint8      = named(Uint8Kind)
	Uint16     = named(Uint16Kind)
	Uint32     = named(Uint32Kind)
	Uint64     = named(Uint64Kind)
	Float32    = named(Float32Kind)
	Float64    = named(Float64Kind)
	Complex64  = named(Complex64Kind)
	Complex128 = named(Complex128Kind)
)

// named returns the type of one basic.
func named(b Basic) *Type {
	size := b.Size()
	return &Type{Envelope{Combiner: Named, Basic: b}, measured{
		size:      size,
		extent:    bounds{hi: size, any: true},
		data:      bounds{hi: size, any: true},
		alignment: b.Alignment(),
		signature: signatureOf(b),
	}}
}

// Basic is a predefined type, a leaf of every type.
type Basic uint8

// The predefined types of MPI that halox supports.
const (
	ByteKind Basic = iota
	Int8Kind
	Int16Kind
	Int32Kind
	Int64Kind
	Uint8Kind
	Uint16Kind
	Uint32Kind
	Uint64Kind
	Float32Kind
	Float64Kind
	Complex64Kind
	Complex128Kind
	basics
)

// Size returns the number of bytes.
func (b Basic) Size() int64 {
	return [basics]int64{1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16}[b]
}

// Alignment returns the alignment in bytes of the type in a C struct. A complex number is aligned like its
// parts.
func (b Basic) Alignment() int64 {
	return [basics]int64{1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 4, 8}[b]
}

// String returns the name, as in Go.
func (b Basic) String() string {
	return [basics]string{"byte", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
		"float64",
		"complex64", "complex128"}[b]
}

// Combiner is the constructor of a type.
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

// String returns the name as in MPI, in lower case and without the prefix.
func (c Combiner) String() string {
	return [combiners]string{"named", "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block",
		"hindexed_block",
		"subarray", "struct", "resized"}[c]
}

// Order is the storage order of the array of a [Subarray].
type Order uint8

// The two orders: in COrder the last dimension is fastest, in FortranOrder the first.
const (
	COrder Order = iota
	FortranOrder
)

// String returns C or Fortran.
func (o Order) String() string { return [2]string{"C", "Fortran"}[o] }

// A Signature identifies a sequence of predefined types: MPI's type signature. Two signatures are equal, by
// ==, if their sequences are, however the types were built. A message may be received if the sent signature
// is a prefix of the received one.
//
// Signatures of all types have the same small size: a signature stores the length of the sequence per
// predefined type, and the value of the polynomial with the sequence as coefficients at two points modulo
// 2^61-1. Two different sequences of n types agree with a probability of (n/2^61)^2. [Type.Runs] yields the
// sequence.
type Signature struct {
	counts [basics]int64
	points [2]point
}

// point is the polynomial of a sequence, and the power of its length, at one base.
type point struct{ value, power uint64 }

// The points at which polynomials are evaluated: any two large numbers.
var bases = [2]uint64{0x0d3c_21bc_eccd_ad25, 0x1b8f_60fe_7b2a_8c63}

// modulus is the Mersenne prime 2^61-1.
const modulus = 1<<61 - 1

// signatureOf returns the signature of one predefined type.
func signatureOf(b Basic) Signature {
	var s Signature
	s.counts[b] = 1
	for i := range s.points {
		s.points[i] = point{value: uint64(b) + 1, power: bases[i]}
	}
	return s
}

// Elements returns the number of predefined types in the sequence.
func (s Signature) Elements() int64 {
	n := int64(0)
	for _, count := range s.counts {
		n += count
	}
	return n
}

// Count returns how many of one predefined type are in the sequence.
func (s Signature) Count(b Basic) int64 { return s.counts[b] }

// Then returns the signature of the sequence followed by another.
func (s Signature) Then(next Signature) Signature {
	if next.Elements() == 0 {
		return s
	}
	if s.Elements() == 0 {
		return next
	}
	for b := range s.counts {
		s.counts[b] += next.counts[b]
	}
	for i, p := range next.points {
		s.points[i] = s.points[i].then(p)
	}
	return s
}

// then returns the polynomial of one sequence followed by another.
func (p point) then(next point) point {
	return point{value: addMod(mulMod(p.value, next.power), next.value), power: mulMod(p.power, next.power)}
}

// Times returns the signature of n copies of the sequence, in O(log n). n must not be negative.
func (s Signature) Times(n int64) Signature {
	switch {
	case n == 0:
		return Signature{}
	case n == 1 || s.Elements() == 0:
		return s
	}
	half := s.Times(n / 2)
	whole := half.Then(half)
	if n%2 == 1 {
		whole = whole.Then(s)
	}
	return whole
}

// String returns how many of each predefined type are in the sequence, as 3 float64, 2 int32.
func (s Signature) String() string {
	var parts []string
	for b, count := range s.counts {
		if count > 0 {
			parts = append(parts, fmt.Sprint(count, " ", Basic(b)))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// mulMod returns a*b modulo 2^61-1.
func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return addMod(lo&modulus, hi<<3|lo>>61)
}

// addMod returns a+b modulo 2^61-1, for a and b at most that.
func addMod(a, b uint64) uint64 {
	sum := a + b
	sum = sum&modulus + sum>>61
	if sum >= modulus {
		sum -= modulus
	}
	return sum
}

// bounds is a range of displacements, in bytes. Its zero value is empty.
type bounds struct {
	lo, hi int64
	any    bool // not empty
	set    bool // set explicitly: a pair of markers
}

// join widens the bounds to include other. Markers take precedence.
func (b *bounds) join(other bounds) {
	switch {
	case !other.any || b.set && !other.set:
	case !b.any || other.set && !b.set:
		*b = other
	default:
		b.lo, b.hi = min(b.lo, other.lo), max(b.hi, other.hi)
	}
}

// shift returns the bounds moved by a displacement.
func (b bounds) shift(c *checked, by int64) bounds {
	if b.any {
		b.lo, b.hi = c.add(b.lo, by), c.add(b.hi, by)
	}
	return b
}

// repeat returns the bounds of count copies, stride bytes apart.
func (b bounds) repeat(c *checked, count, stride int64) bounds {
	if count == 0 || !b.any {
		return bounds{}
	}
	last := b.shift(c, c.mul(count-1, stride))
	b.join(last)
	return b
}

// pad rounds the upper bound up so that the extent is a multiple of the alignment, unless it was set.
func (b *bounds) pad(c *checked, alignment int64) {
	if b.set || !b.any {
		return
	}
	if over := c.sub(b.hi, b.lo) % alignment; over != 0 {
		b.hi = c.add(b.hi, alignment-over)
	}
}

// errOverflow is the error for numbers that exceed 63 bits.
var errOverflow = errors.New("a displacement, size or bound does not fit in 64 bits")

// checked computes with 64-bit integers and remembers whether one overflowed.
type checked struct{ overflow bool }

func (c *checked) add(a, b int64) int64 {
	sum := a + b
	if (a < 0) == (b < 0) && (sum < 0) != (a < 0) {
		c.overflow = true
	}
	return sum
}

func (c *checked) sub(a, b int64) int64 {
	difference := a - b
	if (a < 0) != (b < 0) && (difference < 0) != (a < 0) {
		c.overflow = true
	}
	return difference
}

func (c *checked) mul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	product := a * b
	if product/b != a || (a == -1 && b == math.MinInt64) || (b == -1 && a == math.MinInt64) {
		c.overflow = true
	}
	return product
}

// String returns the call that made the type, with its arguments in MPI's order; long lists and deep trees
// are truncated.
func (t *Type) String() string { return t.string(8) }

func (t *Type) string(depth int) string {
	e := &t.env
	if e.Combiner == Named {
		return e.Basic.String()
	}
	if depth == 0 {
		return "..."
	}
	var args []string
	for _, a := range e.arguments() {
		args = append(args, fmt.Sprint(a))
	}
	return fmt.Sprintf("%v(%s, %s)", e.Combiner, strings.Join(args, ", "), e.children(depth-1))
}

// arguments returns the arguments of the constructor, except the types.
func (e *Envelope) arguments() []any {
	switch e.Combiner {
	case ContiguousCombiner:
		return []any{e.Count}
	case VectorCombiner, HVectorCombiner:
		return []any{e.Count, e.BlockLength, e.Stride}
	case IndexedBlockCombiner, HIndexedBlockCombiner:
		return []any{e.BlockLength, short(e.Displacements)}
	case SubarrayCombiner:
		return []any{short(e.Sizes), short(e.Subsizes), short(e.Starts), e.Order}
	case ResizedCombiner:
		return []any{e.LB, e.Extent}
	}
	return []any{short(e.BlockLengths), short(e.Displacements)}
}

func (e *Envelope) children(depth int) string {
	if e.Combiner != StructCombiner {
		return e.Types[0].string(depth)
	}
	var names []string
	for _, t := range e.Types[:min(longest, len(e.Types))] {
		names = append(names, t.string(depth))
	}
	if len(e.Types) > longest {
		names = append(names, fmt.Sprintf("... %d in total", len(e.Types)))
	}
	return "[" + strings.Join(names, " ") + "]"
}

// longest is the maximum number of list elements that are printed.
const longest = 6

// short returns a list of numbers, truncated.
func short[T any](numbers []T) string {
	if len(numbers) <= longest {
		return fmt.Sprint(numbers)
	}
	text := fmt.Sprint(numbers[:longest])
	return fmt.Sprintf("%s ... %d in total]", strings.TrimSuffix(text, "]"), len(numbers))
}
