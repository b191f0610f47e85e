package datatype_test

import (
	"testing"
	"time"

	. "github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/internal/test"
)

func TestPackErrors(t *testing.T) {
	typ := must(Vector(3, 1, -2, Int32)) // -16 to 4
	cases := []struct {
		name           string
		packed, buffer int
		origin         int64
		ok             bool
	}{
		{"just enough", 12, 20, 16, true},
		{"too short a packed buffer", 11, 20, 16, false},
		{"an origin one too low", 12, 20, 15, false},
		{"an origin one too high", 12, 20, 17, false},
		{"an origin far out", 12, 20, 1<<63 - 1, false},
		{"an origin far below", 12, 20, -1 << 63, false},
	}
	l := committed(t, typ, 1)
	for _, c := range cases {
		packed, buffer := make([]byte, c.packed), make([]byte, c.buffer)
		errs := []error{
			Pack(packed, buffer, c.origin, typ, 1), Unpack(buffer, c.origin, packed, typ, 1),
			l.Pack(packed, buffer, c.origin), l.Unpack(buffer, c.origin, packed),
		}
		for i, err := range errs {
			if (err == nil) != c.ok {
				t.Errorf("%s: call %d: %v", c.name, i, err)
			}
		}
	}
	if Pack(nil, nil, 0, Byte, -1) == nil || Pack(nil, nil, 0, Byte, 1<<62) == nil {
		t.Error("invalid counts are packed")
	}
	if err := Pack(nil, nil, 99, must(Contiguous(0, Byte)), 1<<62); err != nil {
		t.Errorf("an empty message is not packed: %v", err)
	}
}

// There may be any number of elements without data: they are not iterated over.
func TestPackManyEmptyElements(t *testing.T) {
	empty := must(Contiguous(0, Byte))
	marked := must(Resized(empty, 0, 0))
	for _, none := range []*Type{empty, marked} {
		typ := must(Struct([]int{1 << 40, 1, 1 << 60}, []int64{0, 3, 0}, []*Type{none, Byte, none}))
		withLimit(30*time.Second, "iteration over elements without data", func() {
			checkCommit(t, typ, 2)
			for basic, n := range typ.Runs() {
				if basic != ByteKind || n != 1 {
					t.Errorf("%d of %v", n, basic)
				}
			}
		})
	}
}

// A nil type is rejected.
func TestNilTypes(t *testing.T) {
	_, committed := Commit(nil, 1)
	for _, err := range map[string]error{"Commit": committed, "Pack": Pack(nil, nil, 0, nil, 1), "Unpack": Unpack(nil, 0, nil, nil, 1)} {
		test.Says(t, err, "the type is nil")
	}
}

// Blocks of every length up to 40 bytes: some are copied as words.
func TestPackBlocksOfEveryLength(t *testing.T) {
	for length := 1; length <= 40; length++ {
		checkCommit(t, must(HVector(5, length, 50, Byte)), 3)
	}
}

func TestPackAllocatesNothing(t *testing.T) {
	l := committed(t, must(Subarray([]int{8, 8, 8}, []int{4, 4, 4}, []int{1, 1, 1}, COrder, Float64)), 2)
	src, dst := make([]byte, 2*8*8*8*8), make([]byte, l.Size())
	if n := testing.AllocsPerRun(100, func() {
		test.Report(t, l.Pack(dst, src, 0))
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSliceErrors(t *testing.T) {
	l := committed(t, Int32, 4)
	for _, c := range [][2]int64{{-1, 4}, {5, 4}, {0, 17}} {
		if _, err := l.Slice(c[0], c[1]); err == nil {
			t.Errorf("bytes %d to %d of 16 were accepted", c[0], c[1])
		}
	}
	if s, err := l.Slice(4, 4); err != nil || s.Size() != 0 || s.NumBlocks() != 0 {
		t.Errorf("an empty slice: %v, %v", s, err)
	}
}
