package plot

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/wording"
)

// A series is the rows of one curve.
type series struct {
	name string
	rows []sourceRow
}

// seriesPart returns the part of a curve's name that a label gives: a word alone, a number
// with the name of the label.
func seriesPart(label string, row sourceRow) string {
	text := row.Text(label)
	if _, number := row.Float(label); !number {
		if label == "remote" {
			return label
		}
		return text
	}
	if label == "devices" {
		return strings.TrimSuffix(text+" devices", map[bool]string{true: "s"}[text == "1"])
	}
	return wording.Spaced(label) + " " + text
}

// A point is a number on X and the sample that is shown there.
type point struct {
	x float64
	y results.Sample
}

// points returns the points of a series in the order of X. Several rows at one place give
// their median, without error bars. merged counts such rows; lost counts the rows that a
// logarithmic axis cannot show.
func (s series) points(x, y axis, logX, logY bool) (all []point, merged, lost int) {
	at := map[float64][]results.Sample{}
	for _, row := range s.rows {
		px, okX := x.at(row)
		py, okY := y.at(row)
		switch {
		case !okX || !okY:
		case logX && px.Median <= 0 || logY && py.Median <= 0:
			lost++
		default:
			at[px.Median] = append(at[px.Median], py)
		}
	}
	for place, samples := range at {
		p := point{place, samples[0]}
		if len(samples) > 1 {
			var medians []float64
			for _, m := range samples {
				medians = append(medians, m.Median)
			}
			p.y = measure.Exact(measure.NewSample(medians).Median)
			merged += len(samples)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	return all, merged, lost
}

// curve makes a curve of points, with error bars from the quartiles of those that were
// repeated.
func curve(name string, points []point) Curve {
	c := Curve{Name: name}
	repeated := slices.ContainsFunc(points, func(p point) bool { return p.y.Repeated() })
	for _, p := range points {
		c.X, c.Y = append(c.X, p.x), append(c.Y, p.y.Median)
		if repeated {
			c.Lo, c.Hi = append(c.Lo, p.y.Q1), append(c.Hi, p.y.Q3)
		}
	}
	return c
}

// median returns the median of the n rows of a series at a place, NaN where there are none.
func (s series) median(x, y axis, place string) (v results.Sample, n int) {
	var medians []float64
	v.Median, v.Q1, v.Q3 = math.NaN(), math.NaN(), math.NaN()
	for _, row := range s.rows {
		if m, ok := y.at(row); ok && x.place(row) == place {
			v = m
			medians = append(medians, m.Median)
		}
	}
	if len(medians) > 1 {
		v = newExact(medians)
	}
	return v, len(medians)
}

// newExact returns the median of some numbers as a sample without a spread.
func newExact(all []float64) results.Sample { return measure.Exact(measure.NewSample(all).Median) }
