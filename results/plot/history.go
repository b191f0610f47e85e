package plot

import (
	"fmt"
	"slices"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// history plots the largest change of each check of runs over their steps.
func (s *selection) history(k kind) (Chart, error) {
	c := Curves{XLabel: "steps", YLabel: "largest change in a step", LinearX: true}
	s.rows = slices.DeleteFunc(s.rows, func(row sourceRow) bool { return s.sources[row.source].Run == nil })
	kept := map[string]bool{}
	for _, one := range s.series([]string{"solver", "grid", "precision", "scheme", "order", "path", "devices"}, axis{name: "iterations", factor: 1}) {
		for _, row := range one.rows {
			name := one.name
			if kept[name] {
				name = wording.Join(", ", name, s.sources[row.source].Name)
			}
			if next := historyOf(s.sources[row.source].Run, name); len(next.X) > 0 {
				kept[name] = true
				c.Curves = append(c.Curves, next)
			}
		}
	}
	if len(c.Curves) == 0 {
		return nil, fmt.Errorf("%w: no record has a history, which halox run --history keeps", ErrNothing)
	}
	c.Title, c.Note = s.title(k), s.note()
	return c, nil
}

// historyOf returns the changes of a run that a logarithmic axis can show.
func historyOf(r *results.Run, name string) Curve {
	c := Curve{Name: name, Plain: len(r.History) > 60}
	for _, check := range r.History {
		if change := check.MaxChange; change != nil && *change > 0 {
			c.X, c.Y = append(c.X, float64(check.Iteration)), append(c.Y, *change)
		}
	}
	return c
}
