// Package datatype describes data that does not lie in one piece, by MPI's names and meanings (MPI-4.1, chapter 5):
// predefined types, types made of others, and what count elements of a type occupy.
//
// A [Type] is built by constructors named after MPI's: [Contiguous], [Vector], [Indexed], [Subarray], [Struct] and
// their like, nested to any depth. [Commit] brings count elements of a type to a canonical form, a [Layout]: a few
// strided pieces, or a list of blocks where there is no regularity. Two types that touch the same bytes in the same
// order, and were only described differently, as a rule commit to equal layouts.
//
// All displacements are in bytes and relative to an origin, the address that MPI calls buf. They may be negative. The
// pack order is that of the type map, always.
//
// The package computes with integers and moves bytes of the host; it knows no device. The engines that pack on GPUs
// start from a [Layout], or from the tree of constructors that [Type.Envelope] exposes.
package datatype

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// A Type is a sequence of predefined types, each with a displacement from an origin: MPI's type map. It is made by a
// constructor and never changes; any number of goroutines may use it.
//
// # Extent
//
// Elements of a type follow each other at a distance of its extent, from its lower bound LB to its upper bound UB.
// Unless [Resized] or [Subarray] sets them, LB is the smallest lower bound of the parts and UB the greatest upper
// bound, rounded up so that the extent is a multiple of the alignment of every predefined type in it: MPI's epsilon.
// Parts count with their own epsilon.
//
// Bounds that were set are markers in the type map, as in MPI: where one part of a type has set bounds, the type's own
// are those of such parts alone, whatever lies beside them, and are set as well. Extents may be negative.
//
// An empty type, one with neither bytes nor markers, has all bounds 0, and leaves no trace as a part of another.
//
// MPI libraries differ here, and tests hold this package against them. Open MPI 4.1 agrees with most of it. There the
// displacements of empty parts widen the bounds, and the extent was seen to differ of a Struct of which a later block
// lies lowest (16 bytes against 24) and of a vector with a stride of -1 byte. In MPICH 4.0 empty parts do the same; it
// moreover rounds in Struct alone, where others round in every constructor (which matters only for displacements and
// strides in bytes that are no multiples of the alignment), and in Struct takes bounds that were set for ordinary ones.
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

// Basic is a predefined type: what the leaves of every type are.
type Basic uint8

// The predefined types of MPI that halox has data of.
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

// Alignment returns the multiple of bytes at which a C compiler places the type in a struct. A complex number is
// aligned as its parts are.
func (b Basic) Alignment() int64 {
	return [basics]int64{1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 4, 8}[b]
}

// String returns the name, as in Go.
func (b Basic) String() string {
	return [basics]string{"byte", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
		"float64",
		"complex64", "complex128"}[b]
}

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

// String returns the name as in MPI, in lower case and without the prefix.
func (c Combiner) String() string {
	return [combiners]string{"named", "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block",
		"hindexed_block",
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

// A Signature stands for a sequence of predefined types: MPI's type signature. Two of them are equal, by ==, if their
// sequences are, however the types were built. What one side sends, another may receive if the signature sent is a
// prefix of the one received.
//
// It takes the same small memory for any type: the sequence is not kept but its length by predefined type, and the
// value of the polynomial with the sequence as coefficients at two points modulo 2^61-1. Two different sequences of n
// types agree in it with a probability of (n/2^61)^2. [Type.Runs] yields the sequence itself.
type Signature struct {
	counts [basics]int64
	points [2]point
}

// point is the polynomial of a sequence, and the power of its length, at one base.
type point struct{ value, power uint64 }

// The points where polynomials are evaluated: any two large numbers.
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

// bounds is a range of displacements, in bytes. Its zero value holds nothing.
type bounds struct {
	lo, hi int64
	any    bool // holds something
	set    bool // was set: is a pair of markers
}

// join widens the bounds to hold other. Markers win over what is not marked.
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

// errOverflow is what a number past 63 bits is refused with.
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

// String returns the call that made the type, with its arguments in MPI's order; long lists and deep trees are cut
// short.
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
		names = append(names, fmt.Sprintf("... %d in all", len(e.Types)))
	}
	return "[" + strings.Join(names, " ") + "]"
}

// longest is how many numbers of a list are printed.
const longest = 6

// short returns a list of numbers, cut short.
func short[T any](numbers []T) string {
	if len(numbers) <= longest {
		return fmt.Sprint(numbers)
	}
	text := fmt.Sprint(numbers[:longest])
	return fmt.Sprintf("%s ... %d in all]", strings.TrimSuffix(text, "]"), len(numbers))
}
