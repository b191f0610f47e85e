package rows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/halox/halox/kernels/sums"
)

func TestShortSlicesAreNamed(t *testing.T) {
	long, short := make([]float64, 10), make([]float64, 7)
	dst := make([]float64, 8)
	b := Band{Points: 3, Count: 2, Pitch: 5}
	type refusal struct {
		want string
		call func()
	}
	tests := []refusal{
		{"rows.Star5: rows of 3 points at a pitch of 2", func() { Star5(dst, long, long, long, Band{3, 2, 2}, 1, 1) }},
		{"rows.AddRow: old has 7 points, needs 8", func() { AddRow(new(Norms), dst, short, sums.Reproducible) }},
	}
	for _, s := range stencils[float64]() {
		names := []string{"dst", "centre", "south", "north", "below", "above"}
		if strings.HasPrefix(s.name, "Star5") {
			names = names[:4]
		}
		for i, name := range names {
			all, needs := [][]float64{dst, long, long, long, long, long}, 8
			if all[i] = short; name == "centre" {
				needs = 10
			}
			tests = append(tests, refusal{fmt.Sprintf("rows.%s: %s has 7 points, needs %d", s.name, name, needs), func() {
				s.call(all[0], inputs[float64]{all[1], all[2], all[3], all[4], all[5]}, b, [4]float64{1, 1, 1, 1})
			}})
		}
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
