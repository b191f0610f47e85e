package plot

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// plane plots Y over X: as curves, or as bars if the kind requests them or X has words.
func (s *selection) plane(k kind) (Chart, error) {
	x, err := s.xAxis(k)
	if err != nil {
		return nil, err
	}
	y, err := s.yAxis(k)
	if err != nil {
		return nil, err
	}
	if k.title == "" {
		k.title = y.title() + " over " + x.title()
	}
	if k.form == asBars || spread(x, s.rows).empty() {
		return s.bars(k, x, y)
	}
	return s.curves(k, x, y)
}

func (s *selection) curves(k kind, x, y axis) (Chart, error) {
	logX, logY := spread(x, s.rows).wide(4), !k.linearY && spread(y, s.rows).wide(4)
	c := Curves{XLabel: x.title(), YLabel: y.title(), LinearX: !logX, LinearY: !logY, BytesX: x.countsBytes()}
	merged, lost, bars := 0, 0, false
	all := s.series(k.by, x)
	if err := few(all); err != nil {
		return nil, err
	}
	for _, one := range s.bestOf(all, k, x, y) {
		points, m, l := one.points(x, y, logX, logY)
		merged, lost = merged+m, lost+l
		if len(points) == 0 {
			continue
		}
		next := one.curve(points)
		bars = bars || next.Lo != nil
		c.Curves = append(c.Curves, next)
	}
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("%w: no row has both %s and %s", ErrNothing, x.name, y.name)
	}
	if k.ceiling && y.metric {
		c.Curves = append(c.Curves, s.ceilings(x, y, all)...)
		if len(c.Curves) > 1 && c.Curves[0].Name == "" {
			c.Curves[0].Name = y.name
		}
	}
	s.remark(merged, lost, bars)
	c.Title, c.Note = s.title(k), s.note()
	return c, nil
}

// ceilings returns the curves of the metrics that bound Y, one per machine.
func (s *selection) ceilings(x, y axis, all []series) (curves []Curve) {
	machines := results.MachineNames(s.sources)
	candidates := []results.Metric{results.Metric(y.name).Ceiling()}
	if y.name == string(results.Rate) {
		candidates = append(candidates, results.PeerRate)
	}
	for _, m := range candidates {
		if m == "" {
			continue
		}
		bound := newAxis(string(m), s.rows)
		var names []string
		for i := range s.sources {
			if slices.Contains(names, machines[i]) {
				continue
			}
			names = append(names, machines[i])
			one := series{}
			for _, row := range s.rows {
				if machines[row.source] == machines[i] {
					one.rows = append(one.rows, row)
				}
			}
			if points, _, _ := one.points(x, bound, true, true); len(points) > 0 {
				_, what, _ := strings.Cut(m.Title(), " of a ") // time of a plain copy
				c := series{name: wording.Join(", ", what, machines[i])}.curve(points)
				c.Bound, c.Lo, c.Hi = true, nil, nil
				curves = append(curves, c)
			}
		}
	}
	return curves
}

func (s *selection) bars(k kind, x, y axis) (Chart, error) {
	b := bars{XLabel: x.title(), YLabel: y.title()}
	b.Places = s.places(x)
	merged, errorBars := 0, false
	all := s.series(k.by, x)
	if err := few(all, b.Places); err != nil {
		return nil, err
	}
	for _, one := range all {
		set := barSet{Name: one.name}
		for _, place := range b.Places {
			v, n := one.median(x, y, place)
			merged += n
			errorBars = errorBars || v.Repeated()
			set.Y, set.Lo, set.Hi = append(set.Y, v.Median), append(set.Lo, v.Q1), append(set.Hi, v.Q3)
		}
		if slices.ContainsFunc(set.Y, func(v float64) bool { return !math.IsNaN(v) }) {
			b.Sets = append(b.Sets, set)
		}
	}
	if len(b.Sets) == 0 {
		return nil, fmt.Errorf("%w: no row has both %s and %s", ErrNothing, x.name, y.name)
	}
	for i := range b.Sets {
		if len(b.Sets) > 1 {
			b.Sets[i].Name = wording.OrDash(b.Sets[i].Name)
		}
	}
	s.remark(merged, 0, errorBars)
	b.Title, b.Note = s.title(k), s.note()
	return b, nil
}

// history plots the largest change of each check of runs over their steps. Changes of 0 are omitted on a
// logarithmic axis, which is used unless all are 0.
func (s *selection) history(k kind) (Chart, error) {
	c := Curves{XLabel: "steps", YLabel: "largest change in a step", LinearX: true, LinearY: true}
	c.Curves = s.histories(func(r *results.Run) (x, y []float64) {
		for _, check := range r.History {
			if change := check.MaxChange; change != nil {
				x, y = append(x, float64(check.Iteration)), append(y, *change)
			}
		}
		return x, y
	})
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("%w: no record has a history (see halox run --history)", ErrNothing)
	}
	for _, one := range c.Curves {
		c.LinearY = c.LinearY && slices.Max(one.Y) == 0
	}
	for i, one := range c.Curves {
		if !c.LinearY {
			c.Curves[i] = positive(one)
		}
	}
	c.Curves = slices.DeleteFunc(c.Curves, func(one Curve) bool { return len(one.X) == 0 })
	c.Title, c.Note = s.title(k), s.note()
	return c, nil
}

// measures plots each measured number of runs over their time or, if a run has none, over their steps, from the start
// on.
func (s *selection) measures(k kind) (Chart, error) {
	names, timed := map[string]bool{}, true
	for _, one := range s.sources {
		for _, check := range historyOf(one) {
			timed = timed && check.Time != nil
			for name := range check.Measures {
				names[name] = true
			}
		}
	}
	label := "steps"
	if timed {
		label = "time"
	}
	var all []Curves
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c := Curves{XLabel: label, YLabel: name, LinearX: true, LinearY: true}
		c.Curves = s.histories(func(r *results.Run) (x, y []float64) {
			add := func(at float64, v *float64) {
				if v != nil {
					x, y = append(x, at), append(y, *v)
				}
			}
			add(0, r.StartMeasures[name])
			for _, check := range r.History {
				if timed {
					add(*check.Time, check.Measures[name])
				} else {
					add(float64(check.Iteration), check.Measures[name])
				}
			}
			return x, y
		})
		if len(c.Curves) > 0 {
			all = append(all, c)
		}
	}
	switch len(all) {
	case 0:
		return nil, fmt.Errorf("%w: no record has measures in its history (see halox run --history)", ErrNothing)
	case 1:
		all[0].Title, all[0].Note = s.title(k), s.note()
		return all[0], nil
	}
	return Panels{Title: s.title(k), Note: s.note(), Panels: all}, nil
}

// historyOf returns the history of a run, nil for other records.
func historyOf(s results.Source) []results.Check {
	if s.Run == nil {
		return nil
	}
	return s.Run.History
}

// histories returns a curve for each run that has points.
func (s *selection) histories(of func(r *results.Run) (x, y []float64)) (all []Curve) {
	s.rows = slices.DeleteFunc(s.rows, func(row sourceRow) bool { return s.sources[row.source].Run == nil })
	kept := map[string]bool{}
	by := []string{"solver", "grid", "precision", "scheme", "order", "path", "devices"}
	for _, one := range s.series(by, axis{name: "iterations", factor: 1}) {
		for _, row := range one.rows {
			name := one.name
			if kept[name] {
				name = wording.Join(", ", name, s.sources[row.source].Name)
			}
			r := s.sources[row.source].Run
			if x, y := of(r); len(x) > 0 {
				kept[name] = true
				all = append(all, Curve{Name: name, X: x, Y: y, Plain: len(r.History) > 60})
			}
		}
	}
	return all
}

// positive returns a curve with only its positive points.
func positive(c Curve) Curve {
	p := c
	p.X, p.Y = nil, nil
	for i, y := range c.Y {
		if y > 0 {
			p.X, p.Y = append(p.X, c.X[i]), append(p.Y, y)
		}
	}
	return p
}

// scaling plots speed-up and efficiency over the number of devices. For rows with neither they are computed
// from their updates per second, or their steps, relative to the fewest devices of their curve.
func (s *selection) scaling(k kind) (Chart, error) {
	x, err := s.xAxis(k)
	if err != nil {
		return nil, err
	}
	up := Curves{XLabel: x.title(), YLabel: "speed-up over one device", LinearX: true, LinearY: true}
	eff := Curves{XLabel: x.title(), YLabel: "efficiency (%)", LinearX: true, LinearY: true}
	bars, late, most := false, false, 1.0
	all := s.series(k.by, x)
	mode := s.rows[0].Text("mode")
	k.title = strings.TrimSpace(mode + " " + k.title)
	k.title = strings.ToUpper(k.title[:1]) + k.title[1:]
	alone := map[string]results.Sample{} // by problem, the rate of the fastest on one device
	if mode != "weak" {
		for _, one := range all {
			rates := one.rates(x)
			if len(rates) > 0 && rates[0].x == 1 && rates[0].y.Median > alone[one.problem].Median {
				alone[one.problem] = rates[0].y
			}
		}
	}
	for _, one := range s.bestOf(all, k, x, newAxis(string(results.Updates), s.rows)) {
		speedups, efficiencies := one.scaled(x, alone[one.problem])
		if len(speedups) == 0 {
			continue
		}
		a, b := one.curve(speedups), one.curve(efficiencies)
		bars = bars || a.Lo != nil
		most, late = max(most, slices.Max(a.X)), late || a.X[0] > 1
		up.Curves, eff.Curves = append(up.Curves, a), append(eff.Curves, b)
	}
	if len(up.Curves) == 0 {
		return nil, fmt.Errorf("%w: no row has devices and speedup, updates or step, only %s", ErrNothing, s.have())
	}
	if len(alone) > 0 {
		up.YLabel, eff.YLabel = "speed-up over the fastest on one device", "efficiency over the same scheme (%)"
	}
	ideal := func(first, last float64) Curve {
		return Curve{Name: "ideal", X: []float64{1, most}, Y: []float64{first, last}, Bound: true}
	}
	up.Curves, eff.Curves = append(up.Curves, ideal(1, most)), append(eff.Curves, ideal(100, 100))
	if late {
		s.notes = append(s.notes, "curves that begin at more than one device begin at the ideal")
	}
	s.remark(0, 0, bars)
	if mode == "weak" { // the speed-up says the same
		eff.Title, eff.Note = s.title(k), s.note()
		return eff, nil
	}
	return Panels{Title: s.title(k), Note: s.note(), Panels: []Curves{up, eff}}, nil
}

// scaled returns the speed-ups over a rate on one device, and the efficiencies in percent, which are those of the rows,
// or relative to the fewest devices of the series. So are the speed-ups without that rate.
func (s series) scaled(x axis, alone results.Sample) (speedups, efficiencies []point) {
	rates := s.rates(x)
	speedups, efficiencies = s.metric(x, results.SpeedUp, 1), s.metric(x, results.Efficiency, 100)
	if len(speedups) == 0 && len(rates) > 0 {
		speedups = relative(rates, rates[0].y, rates[0].x)
	}
	if len(efficiencies) == 0 {
		for _, p := range speedups {
			efficiencies = append(efficiencies, point{p.x, p.y.Scale(100 / p.x)})
		}
	}
	if alone.N > 0 && len(rates) > 0 {
		speedups = relative(rates, alone, 1)
	}
	return speedups, efficiencies
}

// metric returns the points of a metric.
func (s series) metric(x axis, m results.Metric, factor float64) []point {
	points, _, _ := s.points(x, axis{name: string(m), metric: true, factor: factor}, true, true)
	return points
}

// rates returns the updates per second, or else the steps.
func (s series) rates(x axis) []point {
	rates := s.metric(x, results.Updates, 1)
	if len(rates) == 0 {
		rates = s.metric(x, results.Step, 1)
		for i := range rates {
			rates[i].y = rates[i].y.Under(1)
		}
	}
	return rates
}

// relative returns rates over one that counts as so many devices.
func relative(rates []point, over results.Sample, devices float64) (speedups []point) {
	for _, p := range rates {
		speedups = append(speedups, point{p.x, p.y.Over(over).Scale(devices)})
	}
	return speedups
}

// roofline plots operations per second over operations per byte of memory, one point per stencil and
// precision at its largest size, below the bounds by a copy's rate and by the peaks of arithmetic.
func (s *selection) roofline(k kind, peaks map[string]float64) (Chart, error) {
	c := Curves{Title: s.title(k), XLabel: "operations per byte (FLOP/B)", YLabel: "GFLOP/s"}
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
		c.Curves = append(c.Curves, one.curve([]point{{at, flops}}))
		copyRate = max(copyRate, row.Median(results.CopyRate))
		if left == 0 || at < left {
			left = at
		}
		right = max(right, at)
	}
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("%w: no row has gflops and rate; rows have %s", ErrNothing, s.have())
	}
	if copyRate > 0 {
		end := 2 * right
		for _, peak := range peaks {
			end = max(end, peak/copyRate)
		}
		left /= 2
		c.Curves = append(c.Curves, Curve{Name: fmt.Sprintf("copy, %.0f GB/s", copyRate), Bound: true,
			X: []float64{left, end}, Y: []float64{left * copyRate, end * copyRate}})
		for _, name := range slices.Sorted(maps.Keys(peaks)) {
			from := peaks[name] / copyRate
			c.Curves = append(c.Curves, Curve{Name: "peak, " + name, Bound: true,
				X: []float64{from, 2 * end}, Y: []float64{peaks[name], peaks[name]}})
		}
	}
	c.Note = s.note()
	return c, nil
}

// matrix plots the best of Y from each device to each other.
func (s *selection) matrix(k kind) (Chart, error) {
	y, err := s.yAxis(k)
	if err != nil {
		return nil, err
	}
	from, to := axis{name: "from", factor: 1}, axis{name: "to", factor: 1}
	alone := func(row sourceRow) bool { return from.place(row) == to.place(row) } // rings, or a single device
	s.rows = slices.DeleteFunc(s.rows, alone)
	m := matrix{Unit: y.unit, RowsOf: "from", ColsOf: "to", Rows: s.places(from), Cols: s.places(to)}
	if len(m.Rows) == 0 || len(m.Cols) == 0 {
		return nil, fmt.Errorf("%w: no row has the labels from and to; rows have %s", ErrNothing, s.have())
	}
	all := s.series(k.by, axis{name: "bytes", factor: 1})
	if err := few(all, m.Rows, m.Cols); err != nil {
		return nil, err
	}
	lower := results.Metric(y.name).LowerIsBetter()
	if lower {
		k.title = "Shortest time from device to device"
	}
	for _, one := range all {
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

// best returns the best of Y in the rows of a cell, NaN for none.
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
