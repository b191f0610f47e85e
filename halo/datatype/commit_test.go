package datatype_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	. "github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
)

func committed(t rapid.TB, typ *Type, count int) *Layout {
	t.Helper()
	l, err := Commit(typ, count)
	if err != nil {
		t.Fatalf("%d of %v: %v", count, typ, err)
	}
	return l
}

func TestCanonicalForms(t *testing.T) {
	padded := must(Struct([]int{1, 2, 1}, []int64{0, 8, 16}, []*Type{Float64, Int32, Int8}))
	holed := must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{Int32, Float64}))
	shared := Byte // its cost is the number of types in it
	for range 24 {
		shared = must(Struct([]int{1, 1}, []int64{0, shared.Extent()}, []*Type{shared, shared}))
	}
	cases := []struct {
		name  string
		typ   *Type
		count int
		want  string
	}{
		{"a tree of shared types", shared, 1, "16777216 B at 0"},
		{"nothing", Float64, 0, "nothing"},
		{"nothing, a thousand times", must(Contiguous(0, Byte)), 1000, "nothing"},
		{"one block", Float64, 100, "800 B at 0"},
		{"a vector", must(Vector(3, 2, 5, Float64)), 1, "16 B at 0, 3 times +40"},
		{"a vector without gaps", must(Vector(3, 5, 5, Float64)), 4, "480 B at 0"},
		{"a vector of one block", must(Vector(1, 5, 9, Float64)), 1, "40 B at 0"},
		{"a vector backwards", must(Vector(3, 1, -2, Int32)), 1, "4 B at 0, 3 times -8"},
		{"blocks that touch backwards stay blocks", must(Vector(3, 1, -1, Int32)), 1, "4 B at 0, 3 times -4"},
		{"elements on the same place", must(HVector(3, 1, 0, Int32)), 1, "4 B at 0, 3 times +0"},
		{"copies of a vector, not resized", must(Vector(3, 1, 2, Int32)), 2, "4 B at 0, 3 times +8, 2 times +20"},
		{"dimensions that run on", must(HVector(4, 1, 48, must(Vector(3, 1, 2, Float64)))), 1, "8 B at 0, 12 times +16"},
		{"a box", must(Subarray([]int{4, 6, 8}, []int{2, 3, 4}, []int{1, 2, 3}, COrder, Float64)), 1, "32 B at 536, 3 times +64, 2 times +384"},
		{"a box of whole rows", must(Subarray([]int{4, 6, 8}, []int{2, 3, 8}, []int{1, 2, 0}, COrder, Float64)), 1, "192 B at 512, 2 times +384"},
		{"a box of whole planes", must(Subarray([]int{4, 6, 8}, []int{2, 6, 8}, []int{1, 0, 0}, COrder, Float64)), 1, "768 B at 384"},
		{"structs with padding at the end", padded, 100, "17 B at 0, 100 times +24"},
		{"structs with a hole", holed, 100, "4 B at 0, 100 times +16; 8 B at 8, 100 times +16"},
		{"one struct with a hole", holed, 1, "12 B in 2 blocks of 4 to 8"},
		{"six dimensions", must(Subarray([]int{4, 4, 4, 4, 4, 4}, []int{2, 2, 2, 2, 2, 2}, []int{0, 0, 0, 0, 0, 0}, COrder, Int8)), 1,
			"2 B at 0, 2 times +16, 2 times +64, 2 times +256, 2 times +1024; 2 B at 4, 2 times +16, 2 times +64, 2 times +256, 2 times +1024"},
		{"six dimensions, of which one is short", must(Subarray([]int{5, 5, 5, 5, 5, 5}, []int{3, 3, 3, 2, 3, 3}, []int{0, 0, 0, 0, 0, 0}, COrder, Int8)), 1,
			"3 B at 0, 3 times +5, 3 times +125, 3 times +625, 3 times +3125; 3 B at 25, 3 times +5, 3 times +125, 3 times +625, 3 times +3125"},
		{"adjacent blocks and a vector", must(Struct([]int{1, 1, 1}, []int64{0, 4, 16}, []*Type{Int32, Int64, must(Vector(10, 1, 2, Int32))})), 1,
			"12 B at 0; 4 B at 16, 10 times +8"},
		{"an irregular list", must(IndexedBlock(1, []int{0, 2, 3, 9, 20}, Int32)), 1, "20 B in 4 blocks of 4 to 8"},
		{"a list of two runs", must(IndexedBlock(1, []int{0, 2, 4, 6, 8, 100, 103, 106, 109, 112}, Int32)), 1,
			"4 B at 0, 5 times +8; 4 B at 400, 5 times +12"},
		{"a pattern in a list", must(IndexedBlock(1, []int{0, 2, 5, 10, 12, 15, 20, 22, 25, 30, 32, 35}, Int32)), 1,
			"4 B at 0, 2 times +8, 4 times +40; 4 B at 20, 4 times +40"},
	}
	for _, c := range cases {
		l := committed(t, c.typ, c.count)
		if got := l.String(); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
		if one := l.NumBlocks() <= 1; l.Contiguous() != one {
			t.Errorf("%s: contiguous %t, not %t", c.name, !one, one)
		}
	}
}

// Each group describes one layout in different ways.
func TestEqualLayoutsAreEqual(t *testing.T) {
	row := must(Resized(must(Vector(4, 1, 8, Float64)), 0, 8))
	elements := []int{0, 1, 5, 6, 10, 11}
	groups := map[string][]*Type{
		"blocks at a stride": {
			must(Vector(3, 2, 5, Float64)),
			must(HVector(3, 2, 40, Float64)),
			must(Vector(3, 4, 10, Float32)),
			must(HVector(3, 16, 40, Byte)),
			must(Indexed([]int{2, 2, 2}, []int{0, 5, 10}, Float64)),
			must(Indexed([]int{2, 0, 1, 1, 2}, []int{0, 77, 5, 6, 10}, Float64)),
			must(HIndexed([]int{2, 2, 2}, []int64{0, 40, 80}, Float64)),
			must(IndexedBlock(1, elements, Float64)),
			must(HIndexedBlock(1, []int64{0, 40, 80}, Complex128)),
			must(Subarray([]int{3, 5}, []int{3, 2}, []int{0, 0}, COrder, Float64)),
			must(Subarray([]int{5, 7}, []int{2, 3}, []int{0, 0}, FortranOrder, Float64)),
			must(Struct([]int{2, 2, 2}, []int64{0, 40, 80}, []*Type{Float64, Float64, Float64})),
			must(Struct([]int{1, 1}, []int64{0, 80}, []*Type{must(Vector(2, 2, 5, Float64)), Complex128})),
			must(Contiguous(3, must(Resized(Complex128, -8, 40)))),
		},
		"a transpose": {
			must(Contiguous(3, row)),
			must(HVector(3, 1, 8, must(HVector(4, 1, 64, Float64)))),
			must(IndexedBlock(1, []int{0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26}, Float64)),
			must(HIndexedBlock(1, []int64{0, 8, 16}, row)),
			must(Struct([]int{1, 2}, []int64{0, 8}, []*Type{row, row})),
		},
		"members of structs": {
			must(Contiguous(6, must(Resized(must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{Int32, Int64})), 0, 24)))),
			must(HIndexed([]int{4, 8, 4, 8, 4, 8, 4, 8, 4, 8, 4, 8}, []int64{0, 8, 24, 32, 48, 56, 72, 80, 96, 104, 120, 128}, Byte)),
			must(Indexed([]int{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, []int{0, 2, 6, 8, 12, 14, 18, 20, 24, 26, 30, 32}, Int32)),
		},
		"an irregular list": {
			must(IndexedBlock(1, []int{0, 2, 3, 9, 20}, Int32)),
			must(Indexed([]int{1, 2, 1, 1}, []int{0, 2, 9, 20}, Int32)),
			must(HIndexed([]int{4, 4, 4, 4, 4}, []int64{0, 8, 12, 36, 80}, Byte)),
			must(Struct([]int{1, 1, 1, 1}, []int64{0, 8, 36, 80}, []*Type{Int32, Int64, Float32, Uint32})),
		},
	}
	for name, group := range groups {
		first := committed(t, group[0], 1)
		for _, typ := range group[1:] {
			l := committed(t, typ, 1)
			if !l.Equal(first) || l.Key() != first.Key() {
				t.Errorf("%s: %v is %v, not %v", name, typ, l, first)
			}
		}
	}
}

// The list of all elements of a regular type leads to the layout of that type.
func TestListsOfRegularTypesAreRegular(t *testing.T) {
	for seed := range uint64(2000) {
		s := typetest.Seeded(seed)
		typ := Byte
		for range s(1, 3) {
			typ = must(HVector(s(1, 5), s(1, 3), int64(s(-60, 60)), typ))
		}
		var places []int64
		for displacement := range typ.TypeMap() {
			places = append(places, displacement)
		}
		a, b := committed(t, typ, 1), committed(t, must(HIndexedBlock(1, places, Byte)), 1)
		if len(a.Pieces()) == 1 && !a.Equal(b) {
			t.Fatalf("seed %d: %v is %v, as a list %v", seed, typ, a, b)
		}
	}
}

func TestDifferentLayoutsHaveDifferentKeys(t *testing.T) {
	types := []*Type{
		Byte, Int16, must(Vector(2, 1, 2, Byte)), must(Vector(2, 1, 3, Byte)), must(Vector(3, 1, 2, Byte)), must(Vector(2, 1, -2, Byte)),
		must(Indexed([]int{1, 2, 1}, []int{0, 2, 6}, Byte)), must(Indexed([]int{1, 1, 1}, []int{0, 2, 6}, Byte)), must(Indexed([]int{2, 1, 1}, []int{0, 3, 6}, Byte)), must(Contiguous(0, Byte)),
		must(Subarray([]int{3}, []int{1}, []int{1}, COrder, Byte)),
	}
	for i, a := range types {
		for _, b := range types[:i] {
			if x, y := committed(t, a, 1), committed(t, b, 1); x.Equal(y) || x.Key() == y.Key() {
				t.Errorf("%v and %v are equal", a, b)
			}
		}
	}
}

func TestCommitErrors(t *testing.T) {
	places := make([]int, 1<<21)
	for i := range places {
		places[i] = i * i
	}
	squares := must(IndexedBlock(1, places, Byte))
	cases := []struct {
		name  string
		typ   *Type
		count int
		want  string
	}{
		{"a negative count", Byte, -1, "count must not be negative, got -1"},
		{"a size past 64 bits", must(Contiguous(1<<40, Byte)), 1 << 30, "does not fit in 64 bits"},
		{"an extent past 64 bits", must(Resized(Byte, 0, math.MaxInt64)), 3, "does not fit in 64 bits"},
		{"too many irregular blocks", squares, 1 << 10, "irregular blocks, got"},
	}
	for _, c := range cases {
		if l, err := Commit(c.typ, c.count); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, not %q", c.name, l, err, c.want)
		}
	}
}

// shuffledPlaces returns n places, none next to another.
func shuffledPlaces(n int) []int {
	places := rand.New(rand.NewPCG(1, 2)).Perm(n)
	for i := range places {
		places[i] *= 2
	}
	return places
}

// The blocks of a regular type, which are too many, are never listed, and lists are processed in linear time.
func TestBigTypesCommit(t *testing.T) {
	const million = 1_000_000
	regular := make([]int, million)
	for i := range regular {
		regular[i] = 3 * i
	}
	upset := append([]int(nil), regular...)
	upset[million-1]++
	triangle := make([]int, 3000)
	for i := range triangle {
		triangle[i] = i * 3001
	}
	cases := []struct {
		name  string
		typ   *Type
		count int
	}{
		{"a vector of 1e12 blocks", must(Vector(million*million, 1, 3, Float64)), 1},
		{"a box of 1e12 rows", must(Subarray([]int{2 * million, 2 * million, 20}, []int{million, million, 10}, []int{5, 5, 5}, COrder, Byte)), 1},
		{"1e12 structs", must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{Int32, Float64})), million * million},
		{"1e6 blocks in a regular list", must(IndexedBlock(1, regular, Float64)), 1},
		{"1e6 blocks, the last of them out of line", must(IndexedBlock(1, upset, Float64)), 1},
		{"1e6 blocks in no order", must(IndexedBlock(1, shuffledPlaces(million), Float64)), 1},
		{"1e6 vectors in no order", must(IndexedBlock(1, shuffledPlaces(million), must(Vector(4, 1, 2, Float64)))), 1},
		{"1e6 structs in no order", must(IndexedBlock(1, shuffledPlaces(million), must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{Int32, Float64})))), 1},
		{"a thousand triangles", must(IndexedBlock(2, triangle, Float64)), 1000},
	}
	for _, c := range cases {
		withLimit(5*time.Minute, c.name, func() {
			l := committed(t, c.typ, c.count)
			t.Logf("%s: overlaps %t: %v", c.name, l.Overlaps(), l)
		})
	}
}

// Lists that cannot be pieces: one in which the last block of a copy is adjacent to the first of the next,
// and one over a grid of many dimensions.
func TestLists(t *testing.T) {
	squares, grid := make([]int, 200), []int{0}
	for i := range squares {
		squares[i] = i * (i + 3)
	}
	for step := 2; len(grid) < 1<<12; step *= 3 {
		for _, place := range grid {
			grid = append(grid, place+step)
		}
	}
	for name, c := range map[string]struct {
		typ           *Type
		count, blocks int
	}{
		"copies that touch": {must(IndexedBlock(1, squares, Int16)), 5, 5*200 - 4},
		"many dimensions":   {must(IndexedBlock(1, grid, Byte)), 1, 1 << 12},
	} {
		checkCommit(t, c.typ, max(2, c.count))
		if l := committed(t, c.typ, c.count); l.Strided() || l.NumBlocks() != int64(c.blocks) {
			t.Errorf("%s: %v", name, l)
		}
	}
}

func TestAlignment(t *testing.T) {
	cases := []struct {
		typ  *Type
		want int64
	}{
		{must(Contiguous(0, Byte)), 16},
		{must(Vector(3, 4, 8, Complex128)), 16},
		{must(Vector(3, 1, 2, Float64)), 8},
		{must(HVector(3, 8, 36, Float32)), 4},
		{must(HVector(3, 1, -6, Int16)), 2},
		{must(HVector(3, 8, 65, Byte)), 1},
		{must(HIndexed([]int{1, 1, 2}, []int64{16, 48, 104}, Float64)), 8},
	}
	for _, c := range cases {
		if got := committed(t, c.typ, 1).Alignment(); got != c.want {
			t.Errorf("%v: %d, not %d", c.typ, got, c.want)
		}
	}
}
