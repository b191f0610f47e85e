package plot

import (
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/results"
)

// matrix plots the best of Y from each device to each other.
func (s *selection) matrix(k kind) (Chart, error) {
	y, err := s.yAxis(k)
	if err != nil {
		return nil, err
	}
	from, to := axis{name: "from", factor: 1}, axis{name: "to", factor: 1}
	s.rows = slices.DeleteFunc(s.rows, func(row sourceRow) bool { return from.place(row) == to.place(row) }) // of rings, or of one device
	m := matrix{Unit: y.unit, RowsOf: "from", ColsOf: "to", Rows: s.places(from), Cols: s.places(to)}
	if len(m.Rows) == 0 || len(m.Cols) == 0 {
		return nil, fmt.Errorf("%w: no row has the labels from and to; there are %s", ErrNothing, s.have())
	}
	lower := results.Metric(y.name).LowerIsBetter()
	if lower {
		k.title = "Shortest time from device to device"
	}
	for _, one := range s.series(k.by, axis{name: "bytes", factor: 1}) {
		g := grid{Name: one.name}
		for _, row := range m.Rows {
			var line []float64
			for _, col := range m.Cols {
				line = append(line, one.best(from, to, y, row, col, lower))
			}
			g.Values = append(g.Values, line)
		}
		m.Grids = append(m.Grids, g)
	}
	m.Title, m.Note = s.title(k), s.note()
	return m, nil
}

// best returns the best of Y in the rows of a cell, NaN of none.
func (s series) best(from, to, y axis, row, col string, lower bool) float64 {
	best := math.NaN()
	for _, r := range s.rows {
		v, ok := y.at(r)
		if !ok || from.place(r) != row || to.place(r) != col {
			continue
		}
		if math.IsNaN(best) || lower && v.Median < best || !lower && v.Median > best {
			best = v.Median
		}
	}
	return best
}
