package plot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/halox/halox/results"
)

// roofline plots operations a second over operations a byte of memory, a point for each stencil
// and precision at its greatest size, below what a copy's rate and the peaks of arithmetic allow.
func (s *selection) roofline(k kind, peaks map[string]float64) (Chart, error) {
	c := Curves{Title: s.title(k), XLabel: "operations a byte (FLOP/B)", YLabel: "GFLOP/s"}
	copyRate, left, right := 0.0, 0.0, 0.0
	for _, one := range s.series(k.by, axis{name: "points", factor: 1}) {
		row := slices.MaxFunc(one.rows, func(a, b sourceRow) int {
			x, _ := a.Float("points")
			y, _ := b.Float("points")
			return cmp.Compare(x, y)
		})
		flops, ok := row.Get(results.GFLOPS)
		rate, moved := row.Get(results.Rate)
		if !ok || !moved || rate.Median <= 0 || flops.Median <= 0 {
			continue
		}
		at := flops.Median / rate.Median
		c.Curves = append(c.Curves, curve(one.name, []point{{at, flops}}))
		copyRate = max(copyRate, row.Median(results.CopyRate))
		if left == 0 || at < left {
			left = at
		}
		right = max(right, at)
	}
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("%w: no row has gflops and rate; there are %s", ErrNothing, s.have())
	}
	if copyRate > 0 {
		end := 2 * right
		for _, peak := range peaks {
			end = max(end, peak/copyRate)
		}
		left /= 2
		c.Curves = append(c.Curves, Curve{Name: fmt.Sprintf("copy, %.0f GB/s", copyRate), X: []float64{left, end}, Y: []float64{left * copyRate, end * copyRate}, Bound: true})
		for _, name := range slices.Sorted(maps.Keys(peaks)) {
			from := peaks[name] / copyRate
			c.Curves = append(c.Curves, Curve{Name: fmt.Sprintf("peak, %s", name), X: []float64{from, 2 * end}, Y: []float64{peaks[name], peaks[name]}, Bound: true})
		}
	}
	c.Note = s.note()
	return c, nil
}
