package datatype_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	. "github.com/halox/halox/halo/datatype"
)

func TestPackRefusesWhatDoesNotFit(t *testing.T) {
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
		t.Error("counts that cannot be are packed")
	}
	if err := Pack(nil, nil, 99, must(Contiguous(0, Byte)), 1<<62); err != nil {
		t.Errorf("nothing is not packed: %v", err)
	}
}

// Of elements without data there may be any number: nobody counts them.
func TestPackBesideAnyNumberOfEmptyElements(t *testing.T) {
	empty := must(Contiguous(0, Byte))
	marked := must(Resized(empty, 0, 0))
	for _, none := range []*Type{empty, marked} {
		typ := must(Struct([]int{1 << 40, 1, 1 << 60}, []int64{0, 3, 0}, []*Type{none, Byte, none}))
		within(30*time.Second, "elements without data are counted", func() {
			checkCommit(t, typ, 2)
			for basic, n := range typ.Runs() {
				if basic != ByteKind || n != 1 {
					t.Errorf("%d of %v", n, basic)
				}
			}
		})
	}
}

// No type is nothing to pack.
func TestNilTypesAreRefused(t *testing.T) {
	_, committed := Commit(nil, 1)
	for name, err := range map[string]error{"Commit": committed, "Pack": Pack(nil, nil, 0, nil, 1), "Unpack": Unpack(nil, 0, nil, nil, 1)} {
		if err == nil || !strings.Contains(err.Error(), "no type given (nil)") {
			t.Errorf("%s: %v", name, err)
		}
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
		if err := l.Pack(dst, src, 0); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What one type packs another with the same signature may take: a transpose.
func TestPackThenUnpackToAnotherType(t *testing.T) {
	column := must(Resized(must(Vector(2, 1, 3, Byte)), 0, 1))
	packed, got := make([]byte, 6), make([]byte, 6)
	if err := Pack(packed, []byte("abcdef"), 0, Byte, 6); err != nil {
		t.Fatal(err)
	}
	if err := committed(t, column, 3).Unpack(got, 0, packed); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, []byte("acebdf")) {
		t.Errorf("%s", got)
	}
}

func BenchmarkPack(b *testing.B) {
	cases := map[string]*Type{
		"block=8":   must(Vector(1<<17, 1, 64, Float64)),
		"block=512": must(Vector(1<<11, 64, 128, Float64)),
		"irregular": must(IndexedBlock(1, shuffledPlaces(1<<17), Float64)),
	}
	for name, typ := range cases {
		l := committed(b, typ, 1)
		src, dst := make([]byte, l.TrueUB()), make([]byte, l.Size())
		b.Run(name, func(b *testing.B) {
			b.SetBytes(l.Size())
			for b.Loop() {
				if err := l.Pack(dst, src, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
