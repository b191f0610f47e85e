package datatypes

import (
	"cmp"
	"maps"
	"slices"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// PackedBytes is the parameter that every layout has.
const PackedBytes = "bytes"

// axes is what all figures have in common: curves over a parameter of the layouts.
type axes struct {
	name, title string
	suite       string // that all its layouts are of; "" for any
	x           string // the parameter, or PackedBytes
	xLabel      string
}

// has reports whether the workload has the parameter that the figure is over, above 0.
func (a *axes) has(w workloads.Workload) bool {
	x, ok := layoutOf(w).Float(a.x)
	return ok && x > 0
}

// medians gathers numbers over places on the axis of a figure.
type medians map[float64][]float64

// add adds a number at the place of the row's layout; one without a place is left out.
func (m medians) add(a *axes, row results.Row, y float64) {
	if x, ok := row.Float(a.x); ok && x > 0 && y > 0 {
		m[x] = append(m[x], y)
	}
}

// draw gives the curve the median of each place.
func (m medians) draw(c plot.Curve) plot.Curve {
	for _, x := range slices.SortedFunc(maps.Keys(m), cmp.Compare) {
		ys := slices.Sorted(slices.Values(m[x]))
		c.X, c.Y = append(c.X, x), append(c.Y, ys[len(ys)/2])
	}
	return c
}

// withPoints returns the curves that have points. One whose twin has none stands alone.
func withPoints(all []plot.Curve) (some []plot.Curve) {
	alone := false
	for _, c := range all {
		if c.Twin = c.Twin && !alone; len(c.X) > 0 {
			some = append(some, c)
		}
		alone = len(c.X) == 0
	}
	return some
}
