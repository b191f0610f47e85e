package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/internal/solve"
	"github.com/halox/halox/internal/test"
)

// Between walls of each kind a config gets the spacing with which the axis ends at 1, and its problem the points with which it
// begins at 0.
func TestPointsBetweenWalls(t *testing.T) {
	for _, c := range []struct {
		low, high           string
		spacing, first, end float64 // of 4 points; the end in spacings behind the last
	}{
		{"dirichlet", "dirichlet", 1. / 5, 1. / 5, 1},
		{"neumann", "neumann", 1. / 4, 0.5 / 4, 0.5},
		{"dirichlet", "neumann", 1. / 4.5, 1. / 4.5, 0.5},
		{"neumann", "dirichlet", 1. / 4.5, 0.5 / 4.5, 1},
		{"periodic", "periodic", 1. / 4, 0, 1},
	} {
		wall := map[string]string{"dirichlet": "{dirichlet: 0}", "neumann": "neumann", "periodic": "periodic"}
		text := fmt.Sprintf("solver: heat\ngrid: {size: [3, 4]}\nboundary: {y-: %s, y+: %s}\n", wall[c.low], wall[c.high])
		run := test.Must(solve.Load(t.Context(), 1, write(t, "c.yaml", text), nil))(t)
		p := test.Must(run.Problem())(t)
		h, first, last := run.Spacing()[1], p.Coordinate(1, 0), p.Coordinate(1, 3)
		if h != c.spacing || first != c.first || math.Abs(last+c.end*h-1) > 1e-15 {
			t.Errorf("%s to %s: spacing %v, points from %v to %v", c.low, c.high, h, first, last)
		}
	}
}
