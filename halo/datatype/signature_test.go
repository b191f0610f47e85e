package datatype_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/halox/halox/halo/datatype"
)

func TestSignaturesOfEqualSequencesAreEqual(t *testing.T) {
	pair := must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{Float64, Int32}))
	cases := []struct {
		name string
		a, b *Type
		same bool
	}{
		{"gaps do not matter", must(Vector(4, 2, 7, Float32)), must(Contiguous(8, Float32)), true},
		{"nor does the order in memory", must(Indexed([]int{1, 1}, []int{5, 0}, Int64)), must(Contiguous(2, Int64)), true},
		{"nor do empty parts", must(Struct([]int{0, 3}, []int64{0, 0}, []*Type{Byte, Int16})), must(Contiguous(3, Int16)), true},
		{"structs of structs", must(Contiguous(3, pair)), must(Struct([]int{2, 1}, []int64{0, 80}, []*Type{pair, pair})), true},
		{"big types", must(Vector(1<<20, 1<<20, 1<<21, pair)), must(Contiguous(1<<40, pair)), true},
		{"another count", must(Contiguous(3, Int32)), must(Contiguous(4, Int32)), false},
		{"another type of that size", must(Contiguous(3, Int32)), must(Contiguous(3, Float32)), false},
		{"another order of types", pair, must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{Int32, Float64})), false},
		{"another split of the same counts", must(Struct([]int{2, 2}, []int64{0, 16}, []*Type{Float64, Int32})), must(Contiguous(2, pair)), false},
	}
	for _, c := range cases {
		if same := c.a.Signature() == c.b.Signature(); same != c.same {
			t.Errorf("%s: %v and %v: equal is %t", c.name, c.a, c.b, same)
		}
	}
}

// The signature of a type equals that of its predefined types added one by one.
func TestSignaturesFollowTheTypeMap(t *testing.T) {
	for seed := range uint64(500) {
		typ, count := randomType(t, seed)
		var want Signature
		var elements int64
		for range count {
			for _, b := range typ.TypeMap() {
				want = want.Then(SignatureOf(b))
				elements++
			}
		}
		got := typ.Signature().Times(int64(count))
		if got != want || got.Elements() != elements {
			t.Fatalf("%d of %v: %v, not %v", count, typ, got, want)
		}
	}
}

func TestRuns(t *testing.T) {
	member := must(Struct([]int{2, 1}, []int64{0, 16}, []*Type{Float64, Int8}))
	typ := must(Struct([]int{1, 2}, []int64{0, 100}, []*Type{Float64, member}))
	var got []int64
	for b, n := range typ.Runs() {
		got = append(got, int64(b), n)
	}
	f, i := int64(Float64Kind), int64(Int8Kind)
	if want := []int64{f, 3, i, 1, f, 2, i, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if n := typ.Signature().Count(Float64Kind); n != 5 {
		t.Errorf("%d float64", n)
	}
	if got := typ.Signature().String(); got != "2 int8, 5 float64" {
		t.Errorf("%s", got)
	}
}

func TestOverlaps(t *testing.T) {
	interleaved := must(HVector(1000, 1, 16, must(Resized(Int64, 0, 16))))
	spaced, wider := must(HVector(10, 1, 16, Int64)), must(HVector(10, 1, 24, Int64))
	cases := []struct {
		name  string
		typ   *Type
		count int
		want  bool
	}{
		{"a vector", must(Vector(10, 2, 3, Int32)), 1, false},
		{"a vector with a stride shorter than its blocks", must(Vector(10, 3, 2, Int32)), 1, true},
		{"a stride of zero", must(HVector(2, 1, 0, Int32)), 1, true},
		{"copies that interleave", must(Resized(must(Vector(10, 1, 2, Int32)), 0, 4)), 2, false},
		{"copies that interleave, once too often", must(Resized(must(Vector(10, 1, 2, Int32)), 0, 4)), 3, true},
		{"there and back", must(HVector(2, 1, 8, must(HVector(3, 1, -8, Int32)))), 1, true},
		{"strides without a common multiple in reach", must(HVector(100, 1, 808, must(HVector(100, 1, 8, Int64)))), 1, false},
		{"strides with one", must(HVector(100, 1, 792, must(HVector(101, 1, 8, Int64)))), 1, true},
		{"two vectors, one in the gaps of the other", must(Struct([]int{1, 1}, []int64{0, 8}, []*Type{interleaved, interleaved})), 1, false},
		{"two vectors, one byte too near", must(Struct([]int{1, 1}, []int64{0, 7}, []*Type{interleaved, interleaved})), 1, true},
		{"two vectors, one after the other", must(Struct([]int{1, 1}, []int64{0, 152}, []*Type{spaced, wider})), 1, false},
		{"two vectors that share a byte", must(Struct([]int{1, 1}, []int64{0, 151}, []*Type{spaced, wider})), 1, true},
		{"a list", must(Indexed([]int{2, 1, 3}, []int{0, 9, 2}, Int32)), 1, false},
		{"a list in which one block covers another", must(Indexed([]int{9, 1, 3}, []int{0, 4, 20}, Int32)), 1, true},
		{"nothing", Byte, 0, false},
	}
	for _, c := range cases {
		if got := committed(t, c.typ, c.count).Overlaps(); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// Strided types with too many blocks to list are checked without listing any.
func TestOverlapsOfBigTypes(t *testing.T) {
	box := must(Subarray([]int{400000, 400000, 400000}, []int{300000, 300000, 300000}, []int{0, 0, 0}, COrder, Float64))
	structs := must(Struct([]int{1, 1, 1}, []int64{0, 16, 40}, []*Type{Float64, Float64, Int32}))
	withLimit(time.Minute, "overlaps of big types", func() {
		if committed(t, box, 1).Overlaps() || committed(t, structs, 1<<40).Overlaps() {
			t.Error("they do not overlap")
		}
	})
}
