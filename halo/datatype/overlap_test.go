package datatype_test

import (
	"testing"
	"time"

	. "github.com/halox/halox/halo/datatype"
)

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

// Of strided types with more blocks than can be looked at, none is.
func TestOverlapsOfBigTypes(t *testing.T) {
	box := must(Subarray([]int{400000, 400000, 400000}, []int{300000, 300000, 300000}, []int{0, 0, 0}, COrder, Float64))
	structs := must(Struct([]int{1, 1, 1}, []int64{0, 16, 40}, []*Type{Float64, Float64, Int32}))
	within(time.Minute, "overlaps of big types", func() {
		if committed(t, box, 1).Overlaps() || committed(t, structs, 1<<40).Overlaps() {
			t.Error("they do not overlap")
		}
	})
}
