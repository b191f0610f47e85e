package plot

import (
	"fmt"
	"slices"

	"github.com/halox/halox/results"
)

// scaling plots speed-up and efficiency over the number of devices. Rows that have
// neither give them by their updates a second, or by their steps, against the fewest
// devices of their curve.
func (s *selection) scaling(k kind) (Chart, error) {
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
		return nil, fmt.Errorf("%w: no row has devices and speedup, updates or step; there are %s", ErrNothing, s.have())
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
	raw := func(m results.Metric, factor float64) []point {
		points, _, _ := s.points(x, axis{name: string(m), metric: true, factor: factor}, true, true)
		return points
	}
	speedups, efficiencies = raw(results.SpeedUp, 1), raw(results.Efficiency, 100)
	if len(speedups) == 0 {
		speedups = relative(raw(results.Updates, 1))
	}
	if len(speedups) == 0 {
		rates := raw(results.Step, 1)
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
