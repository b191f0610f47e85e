package domain

import (
	"math"
	"testing"
)

// Products and sums that are beyond 64 bits make no layout, and no box that has fewer points than it should.
func TestSizesBeyond64Bits(t *testing.T) {
	const most = math.MaxInt
	small := Box{Hi: Vec{6, 9, 7}}
	for name, l := range map[string]func() (Layout, error){
		"ghosts":           func() (Layout, error) { return NewLayout(small, Radius{Minus: Vec{2, 0, most}}, 8) },
		"ghosts that meet": func() (Layout, error) { return NewLayout(small, Radius{Minus: Vec{most}, Plus: Vec{most}}, 8) },
		"a box":            func() (Layout, error) { return NewLayout(Box{Vec{-most}, Vec{most, 1, 1}}, Radius{}, 8) },
		"rows":             func() (Layout, error) { return NewLayout(Box{Hi: Vec{1 << 31, 1 << 31, 1}}, Radius{}, 8) },
		"elements":         func() (Layout, error) { return NewLayout(small, Radius{}, most) },
		"indices": func() (Layout, error) {
			return NewLayout(Box{Vec{-most, 0, 0}, Vec{5 - most, 1, 1}}, Radius{Minus: Vec{5}}, 8)
		},
		"a pitch":          func() (Layout, error) { return NewStridedLayout(small, Radius{}, 8, 0, 1<<61, 2) },
		"planes":           func() (Layout, error) { return NewStridedLayout(small, Radius{}, 8, 0, 8, 1<<61) },
		"a first point":    func() (Layout, error) { return NewStridedLayout(small, Radius{}, 8, most, 8, 80) },
		"strided elements": func() (Layout, error) { return NewStridedLayout(small, Radius{}, most, 0, 8, 80) },
		"strided ghosts": func() (Layout, error) {
			return NewStridedLayout(small, Radius{Plus: Vec{0, 1 << 31, 1}}, 2, 0, 1<<40, 0)
		},
	} {
		if made, err := l(); err == nil {
			t.Errorf("%s: %+v of %d bytes", name, made, made.Bytes())
		}
	}
	for _, b := range []Box{{Hi: Vec{1 << 32, 1 << 32, 1}}, {Hi: Vec{1 << 31, 1 << 31, 1 << 31}}, {Vec{-most}, Vec{most, 1, 1}}} {
		if b.Empty() || b.Points() != math.MaxInt64 {
			t.Errorf("%v: empty %t, %d points", b, b.Empty(), b.Points())
		}
	}
	if b := (Box{Vec{most}, Vec{-5, 1, 1}}); !b.Empty() || b.Points() != 0 {
		t.Errorf("%v has %d points", b, b.Points())
	}
}

func TestLayoutFits(t *testing.T) {
	made, err := NewLayout(Box{Hi: Vec{6, 9, 7}}, Radius{}, 8)
	if err != nil || !made.Fits(made.Bytes()) || made.Fits(made.Bytes()-1) {
		t.Errorf("%d bytes, %v", made.Bytes(), err)
	}
	forged := made
	if forged.Length = 1 << 61; forged.Fits(math.MaxInt64) {
		t.Errorf("%d elements of 8 bytes fit into 64 bits", forged.Length)
	}
}

func TestCutsIntoTooMany(t *testing.T) {
	g, err := NewGrid([]int{1 << 20, 1 << 20}, [3]bool{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decompose(g, Vec{1 << 20, 1 << 20, 1}); err == nil {
		t.Error("it is cut into 2^40")
	}
	if _, err := AutoParts(g, 1<<40, Radius{}); err == nil {
		t.Error("it is cut into 2^40 parts")
	}
}
