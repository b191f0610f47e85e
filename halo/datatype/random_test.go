package datatype

import "pgregory.net/rapid"

// A source returns integers from lo to hi, both included. Random types are made from one: of rapid, of math/rand or of a
// fuzzer's bytes.
type source func(lo, hi int) int

// mostBytes bounds random types: what is larger is dropped for its child.
const mostBytes = 2000

// randomType returns a type of at most so many constructors above each other.
func (s source) randomType(t rapid.TB, depth int) *Type {
	if depth == 0 || s(0, 9) == 0 {
		return predefined[s(0, len(predefined)-1)]
	}
	child := s.randomType(t, depth-1)
	made, err := s.constructor(t, depth, child)
	if err != nil {
		t.Fatalf("a constructor over %v: %v", child, err)
	}
	if made.Size() > mostBytes || made.TrueExtent() > 100*mostBytes || made.Extent() > 100*mostBytes || made.Extent() < -100*mostBytes {
		return child
	}
	return made
}

var predefined = []*Type{Byte, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float32, Float64, Complex64, Complex128}

func (s source) constructor(t rapid.TB, depth int, child *Type) (*Type, error) {
	bytes := func() int64 { return int64(s(-60, 60)) }
	switch s(0, 9) {
	case 0:
		return Contiguous(s.count(4), child)
	case 1:
		return Vector(s.count(4), s.count(3), s(-5, 5), child)
	case 2:
		return HVector(s.count(4), s.count(3), bytes(), child)
	case 3:
		lengths, places := s.list(s.length())
		return Indexed(lengths, places, child)
	case 4:
		lengths, places := s.list(s.length())
		return HIndexed(lengths, inBytes(places, child.Alignment()), child)
	case 5:
		_, places := s.list(s.length())
		return IndexedBlock(s.count(3), places, child)
	case 6:
		_, places := s.list(s.length())
		return HIndexedBlock(s.count(3), inBytes(places, child.Alignment()), child)
	case 7:
		return s.subarray(child)
	case 8:
		return s.structure(t, depth, child)
	}
	return Resized(child, bytes(), bytes())
}

// count returns a number up to most, seldom 0.
func (s source) count(most int) int {
	if s(0, 15) == 0 {
		return 0
	}
	return s(1, most)
}

// length returns how long a list is to be, seldom long.
func (s source) length() int {
	if s(0, 7) == 0 {
		return s(60, 150)
	}
	return s.count(6)
}

// list returns n block lengths, most of them equal, and displacements, some of them regular.
func (s source) list(n int) (lengths, places []int) {
	length, step, at := s.count(3), s(-4, 14), s(-5, 5)
	for range n {
		if s(0, 7) == 0 {
			length = s.count(3)
		}
		if s(0, 3) == 0 {
			step = s(-4, 14)
		}
		lengths, places = append(lengths, length), append(places, at)
		at += step
	}
	return lengths, places
}

func inBytes(places []int, unit int64) []int64 {
	wide := widen(places)
	for i := range wide {
		wide[i] *= unit
	}
	return wide
}

func (s source) subarray(child *Type) (*Type, error) {
	dims := s(1, 5)
	sizes, subsizes, starts := make([]int, dims), make([]int, dims), make([]int, dims)
	for d := range dims {
		sizes[d] = s(1, 4)
		subsizes[d] = s(1, sizes[d])
		starts[d] = s(0, sizes[d]-subsizes[d])
	}
	return Subarray(sizes, subsizes, starts, Order(s(0, 1)), child)
}

func (s source) structure(t rapid.TB, depth int, child *Type) (*Type, error) {
	lengths, places := s.list(s.count(4))
	types := make([]*Type, len(lengths))
	for i := range types {
		types[i] = child
		if s(0, 1) == 0 {
			types[i] = s.randomType(t, depth-1)
		}
	}
	return Struct(lengths, inBytes(places, 16), types)
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
