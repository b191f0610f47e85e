package packing_test

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/halo/datatype"
)

// A source draws integers from lo to hi, both included.
type source func(lo, hi int) int

// seeded returns the source of a seed.
func seeded(seed uint64) source {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(lo, hi int) int { return lo + r.IntN(hi-lo+1) }
}

// count returns a number up to most, seldom 0.
func (s source) count(most int) int {
	if s(0, 15) == 0 {
		return 0
	}
	return s(1, most)
}

// mostBytes bounds random types: what is larger is dropped for its child.
const mostBytes = 3000

// randomType returns a type of at most so many constructors above each other.
func (s source) randomType(t testing.TB, depth int) *datatype.Type {
	if depth == 0 || s(0, 9) == 0 {
		return basics[s(0, len(basics)-1)]
	}
	child := s.randomType(t, depth-1)
	made, err := s.constructor(t, depth, child)
	if err != nil {
		t.Fatalf("over %v: %v", child, err)
	}
	if far := int64(30 * mostBytes); made.Size() > mostBytes || made.TrueExtent() > far || made.Extent() > far || made.Extent() < -far {
		return child
	}
	return made
}

var basics = []*datatype.Type{datatype.Byte, datatype.Int16, datatype.Int32, datatype.Float32, datatype.Float64, datatype.Float64,
	datatype.Complex64, datatype.Complex128}

func (s source) constructor(t testing.TB, depth int, child *datatype.Type) (*datatype.Type, error) {
	lengths, places := s.list(s.count(6))
	switch s(0, 9) {
	case 0:
		return datatype.Contiguous(s.count(5), child)
	case 1:
		return datatype.Vector(s.count(4), s.count(4), s(-5, 5), child)
	case 2:
		return datatype.HVector(s.count(4), s.count(4), s.bytes(), child)
	case 3:
		return datatype.Indexed(lengths, places, child)
	case 4:
		return datatype.HIndexed(lengths, s.inBytes(places), child)
	case 5:
		return datatype.IndexedBlock(s.count(4), places, child)
	case 6:
		return datatype.HIndexedBlock(s.count(4), s.inBytes(places), child)
	case 7:
		return s.subarray(child)
	case 8:
		return s.structure(t, depth, child)
	}
	return datatype.Resized(child, s.bytes(), s.bytes())
}

// bytes returns a distance, often a multiple of a word.
func (s source) bytes() int64 { return int64(s(-20, 20) * []int{1, 4, 8, 16}[s(0, 3)]) }

func (s source) inBytes(places []int) []int64 {
	unit := int64(1) << s(0, 4)
	wide := make([]int64, len(places))
	for i, p := range places {
		wide[i] = int64(p) * unit
	}
	return wide
}

// list returns n block lengths, often equal, and displacements, often regular.
func (s source) list(n int) (lengths, places []int) {
	length, step, at := s.count(4), s(-4, 14), s(-5, 5)
	for range n {
		if s(0, 4) == 0 {
			length, step = s.count(4), s(-4, 14)
		}
		lengths, places = append(lengths, length), append(places, at)
		at += step
	}
	return lengths, places
}

func (s source) subarray(child *datatype.Type) (*datatype.Type, error) {
	dims := s(1, 4)
	sizes, subsizes, starts := make([]int, dims), make([]int, dims), make([]int, dims)
	for d := range dims {
		sizes[d] = s(1, 5)
		subsizes[d] = s(1, sizes[d])
		starts[d] = s(0, sizes[d]-subsizes[d])
	}
	return datatype.Subarray(sizes, subsizes, starts, datatype.Order(s(0, 1)), child)
}

func (s source) structure(t testing.TB, depth int, child *datatype.Type) (*datatype.Type, error) {
	lengths, places := s.list(s.count(5))
	types := make([]*datatype.Type, len(lengths))
	for i := range types {
		types[i] = child
		if s(0, 1) == 0 {
			types[i] = s.randomType(t, depth-1)
		}
	}
	return datatype.Struct(lengths, s.inBytes(places), types)
}

// numbered returns n bytes of which no eight in a row come twice.
func numbered(n int64) []byte {
	b := make([]byte, n)
	x := uint64(1)
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x >> 56)
	}
	return b
}
