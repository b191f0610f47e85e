package datatype_test

import (
	"slices"
	"testing"

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
		{"nor does what is empty", must(Struct([]int{0, 3}, []int64{0, 0}, []*Type{Byte, Int16})), must(Contiguous(3, Int16)), true},
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

// A signature must be the one that the sequence of predefined types has when they are added one by one.
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
