package datatype_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/internal/test"
)

// must returns a type, or panics on an error.
func must(t *Type, err error) *Type {
	if err != nil {
		panic(err)
	}
	return t
}

// known is the entry of a type in the table: size, LB, UB, TrueLB, TrueUB, and displacements of its
// predefined types.
type known struct {
	size, lb, ub, trueLB, trueUB int64
	places                       []int64
}

func TestConstructors(t *testing.T) {
	pair := must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{Float64, Int8}))
	wide := must(Resized(Int32, -4, 16))
	cases := []struct {
		name string
		made *Type
		want known
	}{
		{"predefined", Complex128, known{16, 0, 16, 0, 16, []int64{0}}},
		{"contiguous", must(Contiguous(3, Int16)), known{6, 0, 6, 0, 6, []int64{0, 2, 4}}},
		{"contiguous of none", must(Contiguous(0, Int16)), known{}},
		{"contiguous of padded structs", must(Contiguous(2, pair)), known{18, 0, 32, 0, 25, []int64{0, 8, 16, 24}}},
		{"vector", must(Vector(2, 2, 3, Float32)), known{16, 0, 20, 0, 20, []int64{0, 4, 12, 16}}},
		{"vector with a negative stride", must(Vector(3, 1, -2, Int32)), known{12, -16, 4, -16, 4, []int64{0, -8, -16}}},
		{"vector of empty blocks", must(Vector(3, 0, 2, Int32)), known{}},
		{"vector of resized", must(Vector(2, 2, 3, wide)), known{16, -4, 76, 0, 68, []int64{0, 16, 48, 64}}},
		{"hvector", must(HVector(2, 1, 12, Int32)), known{8, 0, 16, 0, 16, []int64{0, 12}}},
		{"hvector that is padded", must(HVector(2, 1, 5, Int32)), known{8, 0, 12, 0, 9, []int64{0, 5}}},
		{"indexed", must(Indexed([]int{2, 0, 1}, []int{3, 100, -1}, Int32)), known{12, -4, 20, -4, 20, []int64{12, 16, -4}}},
		{"hindexed", must(HIndexed([]int{1, 2}, []int64{8, 2}, Int16)), known{6, 2, 10, 2, 10, []int64{8, 2, 4}}},
		{"indexed_block", must(IndexedBlock(2, []int{4, 0}, Int8)), known{4, 0, 6, 0, 6, []int64{4, 5, 0, 1}}},
		{"hindexed_block", must(HIndexedBlock(1, []int64{16, 8}, Float64)), known{16, 8, 24, 8, 24, []int64{16, 8}}},
		{"subarray in C order", must(Subarray([]int{3, 4}, []int{2, 2}, []int{1, 2}, COrder, Int16)),
			known{8, 0, 24, 12, 24, []int64{12, 14, 20, 22}}},
		{"subarray in Fortran order", must(Subarray([]int{4, 3}, []int{2, 2}, []int{1, 0}, FortranOrder, Int16)),
			known{8, 0, 24, 2, 14, []int64{2, 4, 10, 12}}},
		{"subarray of one dimension", must(Subarray([]int{5}, []int{2}, []int{3}, COrder, Int8)), known{2, 0, 5, 3, 5, []int64{3, 4}}},
		{"struct with epsilon", pair, known{9, 0, 16, 0, 9, []int64{0, 8}}},
		{"struct below its origin", must(Struct([]int{1, 1}, []int64{0, -1}, []*Type{Int32, Int8})), known{5, -1, 7, -1, 4, []int64{0, -1}}},
		{"struct whose later block is lowest", must(Struct([]int{1, 1}, []int64{0, -12}, []*Type{Float64, Int32})),
			known{12, -12, 12, -12, 8, []int64{0, -12}}},
		{"hvector with a stride of -1 byte", must(HVector(3, 1, -1, Int32)), known{12, -2, 6, -2, 4, []int64{0, -1, -2}}},
		{"struct where set bounds win", must(Struct([]int{1, 1}, []int64{0, 100}, []*Type{wide, Int32})), known{8, -4, 12, 0, 104, []int64{0, 100}}},
		{"struct where bounds set later win", must(Struct([]int{1, 1}, []int64{-100, 0}, []*Type{Int32, wide})), known{8, -4, 12, -100, 4, []int64{-100, 0}}},
		{"set bounds are not padded", must(Contiguous(2, must(Resized(Int32, 0, 5)))), known{8, 0, 10, 0, 9, []int64{0, 5}}},
		{"struct of an empty part far away", must(Struct([]int{1, 0}, []int64{0, 1 << 40}, []*Type{Int8, Float64})), known{1, 0, 1, 0, 1, []int64{0}}},
		{"struct of nothing", must(Struct(nil, nil, nil)), known{}},
		{"resized", wide, known{4, -4, 12, 0, 4, []int64{0}}},
		{"resized to a negative extent", must(Resized(Int32, 8, -16)), known{4, 8, -8, 0, 4, []int64{0}}},
		{"resized of nothing has an extent", must(Contiguous(3, must(Resized(must(Contiguous(0, Byte)), 0, 10)))), known{0, 0, 30, 0, 0, nil}},
		{"copies backwards", must(Contiguous(3, must(Resized(Int32, 0, -8)))), known{12, -16, -8, -16, 4, []int64{0, -8, -16}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.want.check(t, c.made) })
	}
}

func (k known) check(t *testing.T, made *Type) {
	t.Helper()
	var places []int64
	for displacement := range made.TypeMap() {
		places = append(places, displacement)
	}
	got := known{made.Size(), made.LB(), made.UB(), made.TrueLB(), made.TrueUB(), places}
	if got.size != k.size || got.lb != k.lb || got.ub != k.ub || got.trueLB != k.trueLB || got.trueUB != k.trueUB || !slices.Equal(places, k.places) {
		t.Errorf("%v is %+v, not %+v", made, got, k)
	}
	if made.Extent() != k.ub-k.lb || made.TrueExtent() != k.trueUB-k.trueLB {
		t.Errorf("%v: extents %d and %d", made, made.Extent(), made.TrueExtent())
	}
}

func TestConstructorErrors(t *testing.T) {
	huge := must(Contiguous(1<<60, Byte))
	made := func(t *Type, err error) error { return err }
	cases := []struct {
		name string
		err  error
		want string
	}{
		{"a negative count", made(Contiguous(-1, Byte)), "contiguous: count and block length must not be negative, got -1 and 0"},
		{"a negative block length", made(Vector(1, -2, 1, Byte)), "vector: count and block length must not be negative, got 1 and -2"},
		{"a negative length in a list", made(Indexed([]int{1, -3}, []int{0, 1}, Byte)), "indexed: block length of block 1 must not be negative, got -3"},
		{"lists of unequal length", made(HIndexed([]int{1}, []int64{0, 1}, Byte)), "hindexed: must have equally many block lengths and displacements, got 1 and 2"},
		{"too few types", made(Struct([]int{1, 1}, []int64{0, 1}, []*Type{Byte})), "struct: must have one type per displacement, got 1 for 2"},
		{"no type", made(Struct([]int{1}, []int64{0}, []*Type{nil})), "struct: the type is nil"},
		{"a subarray without dimensions", made(Subarray(nil, nil, nil, COrder, Byte)), "subarray: must have equally many sizes, subsizes and starts, at least 1, got 0"},
		{"a subarray of unequal lists", made(Subarray([]int{2}, []int{1}, nil, COrder, Byte)), "at least 1, got 1, 1 and 0"},
		{"an empty subarray", made(Subarray([]int{2}, []int{0}, []int{0}, COrder, Byte)), "dimension 0: subsize 0 from start 0 must be at least 1 and inside size 2"},
		{"a subarray that reaches out", made(Subarray([]int{4, 4}, []int{1, 3}, []int{0, 2}, COrder, Byte)), "dimension 1: subsize 3 from start 2 must be at least 1 and inside size 4"},
		{"an unknown order", made(Subarray([]int{2}, []int{1}, []int{0}, 2, Byte)), "FortranOrder, got 2"},
		{"a size past 64 bits", made(Contiguous(8, huge)), "contiguous: a displacement, size or bound does not fit in 64 bits"},
		{"a stride past 64 bits", made(Vector(2, 1, math.MaxInt/4, Int64)), "vector: a displacement"},
		{"a displacement past 64 bits", made(IndexedBlock(1, []int{math.MinInt / 2}, Int64)), "indexed_block: a displacement"},
		{"bounds more than 63 bits apart", made(HIndexedBlock(1, []int64{math.MinInt64, math.MaxInt64 - 1}, Byte)), "hindexed_block: a displacement"},
		{"an upper bound past 64 bits", made(Resized(Byte, math.MaxInt64, 1)), "resized: a displacement"},
		{"an array past 64 bits", made(Subarray([]int{1 << 40, 1 << 40}, []int{1, 1}, []int{0, 0}, COrder, Byte)), "subarray: a displacement"},
	}
	for _, c := range cases {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.name, c.err, c.want)
		}
	}
}

// A type does not change when lists passed to its constructor, or returned by Envelope, change.
func TestTypesAreImmutable(t *testing.T) {
	lengths, displacements, types := []int{1, 1}, []int64{0, 4}, []*Type{Int32, Int32}
	made := must(Struct(lengths, displacements, types))
	text := made.String()
	lengths[0], displacements[1], types[0] = 7, 99, Byte
	e := made.Envelope()
	e.BlockLengths[0], e.Displacements[0], e.Types[1] = 8, 8, Byte
	if made.String() != text {
		t.Errorf("%s became %v", text, made)
	}
}

func TestEnvelopesRebuildTypes(t *testing.T) {
	for seed := range uint64(300) {
		typ, _ := randomType(t, seed)
		again := rebuild(t, typ)
		if again.String() != typ.String() || !Same(again, typ) {
			t.Fatalf("%v became %v", typ, again)
		}
	}
}

// rebuild makes a type from its envelope.
func rebuild(t *testing.T, typ *Type) *Type {
	e := typ.Envelope()
	for i := range e.Types {
		e.Types[i] = rebuild(t, e.Types[i])
	}
	if e.Combiner == Named {
		return typ
	}
	again := test.Must(Construct(e))(t)
	return again
}

func TestStrings(t *testing.T) {
	long := make([]int, 9)
	cases := map[string]*Type{
		"vector(3, 2, 5, float64)":                             must(Vector(3, 2, 5, Float64)),
		"indexed_block(1, [0 0 0 0 0 0 ... 9 in total], int8)": must(IndexedBlock(1, long, Int8)),
		"subarray([4 4], [2 2], [1 1], Fortran, complex64)":    must(Subarray([]int{4, 4}, []int{2, 2}, []int{1, 1}, FortranOrder, Complex64)),
		"resized(-1, 9, struct([1 1], [0 8], [float64 byte]))": must(Resized(must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{Float64, Byte})), -1, 9)),
	}
	for want, typ := range cases {
		if got := typ.String(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
