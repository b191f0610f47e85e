package rows

import (
	"testing"

	"github.com/halox/halox/kernels/sums"
)

func TestShortSlicesAreNamed(t *testing.T) {
	long, short := make([]float64, 10), make([]float64, 7)
	dst := make([]float64, 8)
	b := Band{Points: 3, Count: 2, Pitch: 5}
	tests := []struct {
		want string
		call func()
	}{
		{"rows.Star5: centre has 7 points, needs 10", func() { Star5(dst, short, long, long, b, 1, 1) }},
		{"rows.Star5: south has 7 points, needs 8", func() { Star5(dst, long, short, long, b, 1, 1) }},
		{"rows.Star5: north has 7 points, needs 8", func() { Star5(dst, long, long, short, b, 1, 1) }},
		{"rows.Star7: centre has 7 points, needs 10", func() { Star7(dst, short, long, long, long, long, b, 1, 1) }},
		{"rows.Star7: south has 7 points, needs 8", func() { Star7(dst, long, short, long, long, long, b, 1, 1) }},
		{"rows.Star7: north has 7 points, needs 8", func() { Star7(dst, long, long, short, long, long, b, 1, 1) }},
		{"rows.Star7: below has 7 points, needs 8", func() { Star7(dst, long, long, long, short, long, b, 1, 1) }},
		{"rows.Star7: above has 7 points, needs 8", func() { Star7(dst, long, long, long, long, short, b, 1, 1) }},
		{"rows.Star5Axes: centre has 7 points, needs 10", func() { Star5Axes(dst, short, long, long, b, 1, 1, 1) }},
		{"rows.Star5Axes: south has 7 points, needs 8", func() { Star5Axes(dst, long, short, long, b, 1, 1, 1) }},
		{"rows.Star5Axes: north has 7 points, needs 8", func() { Star5Axes(dst, long, long, short, b, 1, 1, 1) }},
		{"rows.Star7Axes: centre has 7 points, needs 10", func() { Star7Axes(dst, short, long, long, long, long, b, 1, 1, 1, 1) }},
		{"rows.Star7Axes: south has 7 points, needs 8", func() { Star7Axes(dst, long, short, long, long, long, b, 1, 1, 1, 1) }},
		{"rows.Star7Axes: north has 7 points, needs 8", func() { Star7Axes(dst, long, long, short, long, long, b, 1, 1, 1, 1) }},
		{"rows.Star7Axes: below has 7 points, needs 8", func() { Star7Axes(dst, long, long, long, short, long, b, 1, 1, 1, 1) }},
		{"rows.Star7Axes: above has 7 points, needs 8", func() { Star7Axes(dst, long, long, long, long, short, b, 1, 1, 1, 1) }},
		{"rows.Star5: dst has 7 points, needs 8", func() { Star5(short, long, long, long, b, 1, 1) }},
		{"rows.Star7: dst has 7 points, needs 8", func() { Star7(short, long, long, long, long, long, b, 1, 1) }},
		{"rows.Star5: rows of 3 points at a pitch of 2", func() { Star5(dst, long, long, long, Band{3, 2, 2}, 1, 1) }},
		{"rows.AddRow: old has 7 points, needs 8", func() { AddRow(new(Norms), dst, short, sums.Reproducible) }},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			defer func() {
				if got := recover(); got != test.want {
					t.Errorf("panicked with %v", got)
				}
			}()
			test.call()
		})
	}
}

func TestNothingIsAllocated(t *testing.T) {
	dst, in := make([]float32, 100), make([]float32, 102)
	b := Band{Points: 20, Count: 5, Pitch: 20}
	var n, fast Norms
	allocs := testing.AllocsPerRun(10, func() {
		Star5(dst, in, in, in, b, 1, 1)
		Star7(dst, in, in, in, in, in, b, 1, 1)
		Star5Axes(dst, in, in, in, b, 1, 1, 1)
		Star7Axes(dst, in, in, in, in, in, b, 1, 1, 1, 1)
		AddRow(&n, dst, in, sums.Reproducible)
		AddRow(&fast, dst, in, sums.Fast)
	})
	if allocs != 0 {
		t.Errorf("%v allocations a run", allocs)
	}
}
