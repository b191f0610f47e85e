package results

import (
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/internal/measure"
)

// newExact is the median of some numbers, by itself.
func newExact(all []float64) Sample { return measure.Exact(measure.NewSample(all).Median) }

// history plots the largest change of each check of runs over their steps.
func (s *selection) history(k plotKind) (Chart, error) {
	c := Curves{XLabel: "steps", YLabel: "largest change in a step", LinearX: true}
	s.rows = slices.DeleteFunc(s.rows, func(row tableRow) bool { return s.sources[row.source].Run == nil })
	kept := map[string]bool{}
	for _, one := range s.series([]string{"solver", "grid", "precision", "scheme", "order", "path", "devices"}, axis{name: "iterations", factor: 1}) {
		for _, row := range one.rows {
			name := one.name
			if kept[name] {
				name = join(", ", name, s.sources[row.source].Name)
			}
			if next := historyOf(s.sources[row.source].Run, name); len(next.X) > 0 {
				kept[name] = true
				c.Curves = append(c.Curves, next)
			}
		}
	}
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("%w: no record has a history, which halox run --history keeps", ErrNothingToPlot)
	}
	c.Title, c.Note = s.title(k), s.note()
	return c, nil
}

// historyOf returns the changes of a run that a logarithmic axis can show.
func historyOf(r *Run, name string) Curve {
	c := Curve{Name: name, Plain: len(r.History) > 60}
	for _, check := range r.History {
		if change := check.MaxChange; change != nil && *change > 0 {
			c.X, c.Y = append(c.X, float64(check.Iteration)), append(c.Y, *change)
		}
	}
	return c
}

// matrix plots the best of Y from each device to each other.
func (s *selection) matrix(k plotKind) (Chart, error) {
	y, err := s.yAxis(k)
	if err != nil {
		return nil, err
	}
	from, to := axis{name: "from", factor: 1}, axis{name: "to", factor: 1}
	s.rows = slices.DeleteFunc(s.rows, func(row tableRow) bool { return from.place(row) == to.place(row) }) // of rings, or of one device
	m := Matrix{Unit: y.unit, RowsOf: "from", ColsOf: "to", Rows: s.places(from), Cols: s.places(to)}
	if len(m.Rows) == 0 || len(m.Cols) == 0 {
		return nil, fmt.Errorf("%w: no row has the labels from and to; there are %s", ErrNothingToPlot, s.have())
	}
	lower := Metric(y.name).Info().Better == Lower
	if lower {
		k.title = "Shortest time from device to device"
	}
	for _, one := range s.series(k.by, axis{name: "bytes", factor: 1}) {
		g := Grid{Name: one.name}
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

// scaling plots speed-up and efficiency over the number of devices. Rows that have
// neither give them by their updates a second, or by their steps, against the fewest
// devices of their curve.
func (s *selection) scaling(k plotKind) (Chart, error) {
	x, err := s.xAxis(k)
	if err != nil {
		return nil, err
	}
	up := Curves{XLabel: x.title(), YLabel: "speed-up", LinearX: true, LinearY: true}
	eff := Curves{XLabel: x.title(), YLabel: "efficiency (%)", LinearX: true, LinearY: true}
	bars, late, most := false, false, 1.0
	for _, one := range s.series(k.by, x) {
		speedups, efficiencies := one.scaled(x)
		if len(speedups) == 0 {
			continue
		}
		a, b := curve(one.name, speedups), curve(one.name, efficiencies)
		bars = bars || a.Lo != nil
		most, late = max(most, slices.Max(a.X)), late || a.X[0] > 1
		up.Curves, eff.Curves = append(up.Curves, a), append(eff.Curves, b)
	}
	if len(up.Curves) == 0 {
		return nil, fmt.Errorf("%w: no row has devices and speedup, updates or step; there are %s", ErrNothingToPlot, s.have())
	}
	ideal := func(first, last float64) Curve {
		return Curve{Name: "ideal", X: []float64{1, most}, Y: []float64{first, last}, Bound: true}
	}
	up.Curves, eff.Curves = append(up.Curves, ideal(1, most)), append(eff.Curves, ideal(100, 100))
	if late {
		s.notes = append(s.notes, "curves that begin at more than one device begin at the ideal")
	}
	s.remark(0, 0, bars)
	return Panels{Title: s.title(k), Note: s.note(), Panels: []Curves{up, eff}}, nil
}

// scaled returns the speed-ups and the efficiencies, in percent, of a series.
func (s series) scaled(x axis) (speedups, efficiencies []point) {
	raw := func(m Metric, factor float64) []point {
		points, _, _ := s.points(x, axis{name: string(m), metric: true, factor: factor}, true, true)
		return points
	}
	speedups, efficiencies = raw(SpeedUp, 1), raw(Efficiency, 100)
	if len(speedups) == 0 {
		speedups = relative(raw(Updates, 1))
	}
	if len(speedups) == 0 {
		rates := raw(Step, 1)
		for i := range rates {
			rates[i].y = rates[i].y.Under(1)
		}
		speedups = relative(rates)
	}
	if len(efficiencies) == 0 {
		for _, p := range speedups {
			efficiencies = append(efficiencies, point{p.x, p.y.Scale(100 / p.x)})
		}
	}
	return speedups, efficiencies
}

// relative returns rates over that of the fewest devices, which counts as their number.
func relative(rates []point) (speedups []point) {
	for _, p := range rates {
		speedups = append(speedups, point{p.x, p.y.Scale(rates[0].x / rates[0].y.Median)})
	}
	return speedups
}
