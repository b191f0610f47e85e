// Package typetest makes random types, and bytes to try them on, for the tests of everything that describes,
// packs or sends them.
package typetest

import (
	"math/rand/v2"

	"pgregory.net/rapid"

	"github.com/halox/halox/halo/datatype"
)

// A Source returns integers from lo to hi, both included. Random types are made from one: of rapid, of
// math/rand or of a fuzzer's bytes.
type Source func(lo, hi int) int

// Seeded returns the source of a seed.
func Seeded(seed uint64) Source {
	r := rand.New(rand.NewPCG(seed, 11))
	return func(lo, hi int) int { return lo + r.IntN(hi-lo+1) }
}

// Count returns a number up to most, rarely 0.
func (s Source) Count(most int) int {
	if s(0, 15) == 0 {
		return 0
	}
	return s(1, most)
}

// Type returns a type of at most depth nested constructors: with all predefined types and all constructors,
// with parts that are empty, overlap, go backwards or are at any byte.
func (s Source) Type(t rapid.TB, depth int) *datatype.Type {
	t.Helper()
	return maker{s, true, 3000}.make(t, depth)
}

// Plain does the same, but lists of bytes and structs keep the alignment of their elements, and sizes are
// smaller: MPI libraries disagree about other types, or crash.
func (s Source) Plain(t rapid.TB, depth int) *datatype.Type {
	t.Helper()
	return maker{s, false, 2000}.make(t, depth)
}

// maker makes types, arbitrary or plain ones.
type maker struct {
	Source
	odd  bool
	most int64 // maximum bytes of a type: a larger one is replaced by its child
}

// far is the maximum number of bytes that a type spans, or it is replaced too.
const far = 200_000

func (m maker) make(t rapid.TB, depth int) *datatype.Type {
	t.Helper()
	if depth == 0 || m.Source(0, 9) == 0 {
		return predefined[m.Source(0, len(predefined)-1)]
	}
	child := m.make(t, depth-1)
	made, err := m.constructor(t, depth, child)
	if err != nil {
		t.Fatalf("a constructor over %v: %v", child, err)
	}
	if made.Size() > m.most || made.TrueExtent() > far || made.Extent() > far || made.Extent() < -far {
		return child
	}
	return made
}

// upTo returns the limit of a count, which is one more for arbitrary types.
func (m maker) upTo(most int) int {
	if m.odd {
		return most + 1
	}
	return most
}

var predefined = []*datatype.Type{
	datatype.Byte, datatype.Int8, datatype.Int16, datatype.Int32, datatype.Int64,
	datatype.Uint8, datatype.Uint16, datatype.Uint32, datatype.Uint64,
	datatype.Float32, datatype.Float64, datatype.Complex64, datatype.Complex128,
}

func (m maker) constructor(t rapid.TB, depth int, child *datatype.Type) (*datatype.Type, error) {
	t.Helper()
	switch m.Source(0, 9) {
	case 0:
		return datatype.Contiguous(m.Count(m.upTo(4)), child)
	case 1:
		return datatype.Vector(m.Count(4), m.Count(m.upTo(3)), m.Source(-5, 5), child)
	case 2:
		return datatype.HVector(m.Count(4), m.Count(m.upTo(3)), m.distance(), child)
	case 3:
		lengths, places := m.list(m.length())
		return datatype.Indexed(lengths, places, child)
	case 4:
		lengths, places := m.list(m.length())
		return datatype.HIndexed(lengths, m.inBytes(places, child.Alignment()), child)
	case 5:
		_, places := m.list(m.length())
		return datatype.IndexedBlock(m.Count(m.upTo(3)), places, child)
	case 6:
		_, places := m.list(m.length())
		return datatype.HIndexedBlock(m.Count(m.upTo(3)), m.inBytes(places, child.Alignment()), child)
	case 7:
		return m.subarray(child)
	case 8:
		return m.structure(t, depth, child)
	}
	return datatype.Resized(child, m.distance(), m.distance())
}

// distance returns a number of bytes, for arbitrary types often a multiple of a word.
func (m maker) distance() int64 {
	if !m.odd || m.Source(0, 1) == 0 {
		return int64(m.Source(-60, 60))
	}
	return int64(m.Source(-20, 20) * []int{1, 4, 8, 16}[m.Source(0, 3)])
}

// length returns the length of a list, rarely large.
func (m maker) length() int {
	if m.Source(0, 7) == 0 {
		return m.Source(60, 150)
	}
	return m.Count(6)
}

// list returns n block lengths, most of them equal, and displacements, some of them regular.
func (m maker) list(n int) (lengths, places []int) {
	length, step, at := m.Count(m.upTo(3)), m.Source(-4, 14), m.Source(-5, 5)
	for range n {
		if m.Source(0, 7) == 0 {
			length = m.Count(m.upTo(3))
		}
		if m.Source(0, 3) == 0 {
			step = m.Source(-4, 14)
		}
		lengths, places = append(lengths, length), append(places, at)
		at += step
	}
	return lengths, places
}

// inBytes returns the places in bytes: unit bytes each, or for arbitrary types any power of two.
func (m maker) inBytes(places []int, unit int64) []int64 {
	if m.odd && m.Source(0, 2) == 0 {
		unit = 1 << m.Source(0, 4)
	}
	wide := make([]int64, len(places))
	for i, p := range places {
		wide[i] = int64(p) * unit
	}
	return wide
}

func (m maker) subarray(child *datatype.Type) (*datatype.Type, error) {
	dims := m.Source(1, 5)
	sizes, subsizes, starts := make([]int, dims), make([]int, dims), make([]int, dims)
	for d := range dims {
		sizes[d] = m.Source(1, m.upTo(4))
		subsizes[d] = m.Source(1, sizes[d])
		starts[d] = m.Source(0, sizes[d]-subsizes[d])
	}
	return datatype.Subarray(sizes, subsizes, starts, datatype.Order(m.Source(0, 1)), child)
}

func (m maker) structure(t rapid.TB, depth int, child *datatype.Type) (*datatype.Type, error) {
	t.Helper()
	lengths, places := m.list(m.Count(m.upTo(4)))
	types := make([]*datatype.Type, len(lengths))
	for i := range types {
		types[i] = child
		if m.Source(0, 1) == 0 {
			types[i] = m.make(t, depth-1)
		}
	}
	return datatype.Struct(lengths, m.inBytes(places, 16), types)
}

// Numbered returns n bytes in which no eight consecutive bytes occur twice.
func Numbered(n int64) []byte {
	b := make([]byte, n)
	x := uint64(1)
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x >> 56)
	}
	return b
}
