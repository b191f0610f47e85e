package datatype_test

import (
	"bytes"
	"testing"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
)

// The slices of a layout pack, one after the other, what the whole does.
func TestSlicesPackTheWhole(t *testing.T) {
	for seed := range uint64(1500) {
		typ, count := randomType(t, seed)
		l, err := datatype.Commit(typ, count)
		if err != nil {
			t.Fatal(err)
		}
		origin := -l.TrueLB()
		src := typetest.Numbered(l.TrueUB() - l.TrueLB())
		want := make([]byte, l.Size())
		if err := datatype.Pack(want, src, origin, typ, count); err != nil {
			t.Fatal(err)
		}
		step := 1 + int64(seed*7919)%max(1, l.Size())
		var got []byte
		for lo := int64(0); lo < l.Size(); lo += step {
			hi := min(l.Size(), lo+step)
			s, err := l.Slice(lo, hi)
			if err != nil {
				t.Fatal(err)
			}
			if s.TrueLB() < l.TrueLB() || s.TrueUB() > l.TrueUB() || s.Size() != hi-lo {
				t.Fatalf("seed %d: bytes %d to %d of %v are %v", seed, lo, hi, l, s)
			}
			part := make([]byte, s.Size())
			if err := s.Pack(part, src, origin); err != nil {
				t.Fatal(err)
			}
			got = append(got, part...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: slices of %d bytes of %v pack otherwise", seed, step, l)
		}
	}
}

func TestSliceRefuses(t *testing.T) {
	l, err := datatype.Commit(datatype.Int32, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]int64{{-1, 4}, {5, 4}, {0, 17}} {
		if _, err := l.Slice(c[0], c[1]); err == nil {
			t.Errorf("bytes %d to %d of 16 were accepted", c[0], c[1])
		}
	}
	if s, err := l.Slice(4, 4); err != nil || s.Size() != 0 || s.NumBlocks() != 0 {
		t.Errorf("an empty slice: %v, %v", s, err)
	}
}
