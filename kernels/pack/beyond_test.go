package pack_test

import (
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/pack"
)

// Copies whose last byte is beyond 64 bits do not lie in their memory, nor do those of fewer than no points, and
// rows that no memory holds are not made.
func TestCopiesBeyond64Bits(t *testing.T) {
	set := testdevices.Host(t, 1)
	d := set.Devices[0]
	m, err := d.Alloc(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	copier, err := pack.NewBoxCopier(set.Compiler, d)
	if err != nil {
		t.Fatal(err)
	}
	at := pack.Place{Data: m.All(), Pitch: 8, Plane: 64}
	for name, c := range map[string]pack.Copy{
		"rows":             {Dst: pack.Place{Data: m.All(), Pitch: 1 << 62, Plane: 8}, Src: at, Size: domain.Vec{1, 5, 1}, ElementSize: 1},
		"elements":         {Dst: at, Src: at, Size: domain.Vec{2, 1, 1}, ElementSize: 1 << 62},
		"a first":          {Dst: at, Src: pack.Place{Data: m.All(), First: math.MaxInt64}, Size: domain.Vec{1, 1, 1}, ElementSize: 4},
		"less than none":   {Dst: at, Src: at, Size: domain.Vec{-1, -1, 1}, ElementSize: 1},
		"a dense box":      {Dst: pack.Dense(m.All(), domain.Vec{1 << 32, 1 << 32, 2}), Src: at, Size: domain.Vec{1 << 32, 1 << 32, 2}, ElementSize: 1},
		"points and bytes": {Dst: at, Src: at, Size: domain.Vec{1 << 32, 1, 1}, ElementSize: 1 << 32},
	} {
		if _, err := copier.Copies("copy", c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, n := range []int{-1, 0, math.MaxInt} {
		if row, err := copier.NewRow(make([]byte, 8), n); err == nil {
			t.Errorf("a row of %d elements: %v", n, row)
		}
	}
	a := kernels.Array{Data: m.All(), Layout: domain.Layout{Owned: domain.Box{Hi: domain.Vec{1, 1, 1}}, ElementSize: 8, Length: 1 << 61}}
	if err := a.Holds(a.Layout.Owned); err == nil {
		t.Error("1 KiB holds 2^61 numbers")
	}
}
