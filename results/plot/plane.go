package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// plane plots Y over X: as curves, or as bars where the kind asks for them or X has words.
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
	for _, one := range all {
		points, m, l := one.points(x, y, logX, logY)
		merged, lost = merged+m, lost+l
		if len(points) == 0 {
			continue
		}
		next := curve(one.name, points)
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

// ceilings returns the curves of the metrics that bound Y, one for each machine.
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
				c := curve(wording.Join(", ", what, machines[i]), points)
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
	for _, one := range s.series(k.by, x) {
		set := barSet{Name: one.name}
		for _, place := range b.Places {
			v, n := one.median(x, y, place)
			if n > 1 {
				merged += n
			}
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
