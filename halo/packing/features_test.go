package packing

import (
	"testing"

	"github.com/halox/halox/halo/datatype"
)

// layout returns the layout of a type that can be made.
func layout(t *testing.T, typ *datatype.Type, err error, count int) *datatype.Layout {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	l, err := datatype.Commit(typ, count)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSectors(t *testing.T) {
	made := func(typ *datatype.Type, err error) func(count int) *datatype.Layout {
		return func(count int) *datatype.Layout { return layout(t, typ, err, count) }
	}
	column, err := datatype.Vector(100, 1, 1000, datatype.Float64)
	if err != nil {
		t.Fatal(err)
	}
	next, err := datatype.Resized(column, 0, 8)
	for name, c := range map[string]struct {
		of   *datatype.Layout
		want float64
	}{
		"nothing":                       {made(datatype.Contiguous(0, datatype.Byte))(1), 0},
		"one piece":                     {made(datatype.Contiguous(1024, datatype.Float64))(1), 256.5}, // half of a sector at its ends
		"a column":                      {made(column, nil)(1), 100},
		"80 columns side by side":       {made(next, err)(80), 100 * 20.75},
		"every second number":           {made(datatype.Vector(1000, 1, 2, datatype.Float64))(1), 1 + (999*16+8-8)/32.},
		"backwards":                     {made(datatype.Vector(1000, 1, -2, datatype.Float64))(1), 1 + (999*16+8-8)/32.},
		"blocks of 32 bytes, far apart": {made(datatype.Vector(1000, 4, 100, datatype.Float64))(1), 1000 * 1.5},
		"a list":                        {made(datatype.IndexedBlock(1, []int{-5, 0, 2, 3, 13, 40}, datatype.Float64))(1), 4},
		"a list over sectors":           {made(datatype.Indexed([]int{2, 9, 1}, []int{-1, 6, 100}, datatype.Float64))(1), 6},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sectors(c.of); got != c.want {
				t.Errorf("%v touches %g sectors, not %g", c.of, got, c.want)
			}
		})
	}
}

// The calls that are counted are the calls that are made.
func TestCalls(t *testing.T) {
	cube := []int{9, 9, 9, 9}
	for name, of := range map[string]func() (*datatype.Type, error){
		"nothing":     func() (*datatype.Type, error) { return datatype.Contiguous(0, datatype.Byte) },
		"a column":    func() (*datatype.Type, error) { return datatype.Vector(100, 1, 1000, datatype.Float64) },
		"backwards":   func() (*datatype.Type, error) { return datatype.Vector(100, 1, -3, datatype.Float64) },
		"overlapping": func() (*datatype.Type, error) { return datatype.Vector(100, 3, 2, datatype.Float64) },
		"a box": func() (*datatype.Type, error) {
			return datatype.Subarray(cube, []int{2, 3, 4, 5}, []int{1, 1, 1, 1}, datatype.COrder, datatype.Float32)
		},
		"a list": func() (*datatype.Type, error) {
			return datatype.IndexedBlock(1, []int{0, 2, 3, 9, 20}, datatype.Int32)
		},
	} {
		t.Run(name, func(t *testing.T) {
			typ, err := of()
			l := layout(t, typ, err, 3)
			want := int64(len(l.List()))
			for _, p := range l.Pieces() {
				if err := eachBox(p, func(datatype.Piece) error { want++; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if got := calls(l); got != want {
				t.Errorf("%v takes %d calls, not %d", l, want, got)
			}
		})
	}
}
