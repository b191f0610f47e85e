package plot

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/internal/resultstest"
)

// chartsOf returns a chart of each form that shows two numbers, or the error that there is none.
func chartsOf(a, b float64) (charts []Chart, errs []error) {
	source := func(kind results.Kind, rows ...results.Row) results.Source { return resultstest.Source(kind, rows...) }
	row := func(x any, m results.Metric, y float64) results.Row {
		return results.NewRow().Label("x", x).Label("from", 1).Label("to", x).Label("devices", x).Number(m, y)
	}
	twice := measure.Exact(a)
	twice.N, twice.Q1, twice.Q3, twice.Min, twice.Max = 9, min(a, b), max(a, b), min(a, b), max(a, b)
	run := source(results.KindRun, results.NewRow().Label("iterations", 2))
	run.Run = &results.Run{History: []results.Check{
		{Iteration: 1, Norms: results.Norms{MaxChange: results.Number(a)}},
		{Iteration: 2, Norms: results.Norms{MaxChange: results.Number(b)}},
	}}
	points := results.NewRow().Label("points", 8)
	for _, asked := range []struct {
		kind string
		of   results.Source
		o    Options
	}{
		{"curves", source(results.KindSweep, row(a, results.Time, b), row(b, results.Time, a)), Options{X: "x", Y: "time"}},
		{"curves", source(results.KindSweep, row(1, results.Time, b).Value(results.Time, twice), row(2, results.Time, a)),
			Options{X: "x", Y: "time"}},
		{"bars", source(results.KindSweep, row("p", results.Time, b), row("q", results.Time, a).Value(results.Step, twice)),
			Options{X: "x", Y: "time"}},
		{"matrix", source(results.KindLinks, row(2, results.Rate, a), row(3, results.Rate, b)), Options{}},
		{"scaling", source(results.KindScaling, row(1, results.Step, a), row(2, results.Step, b)), Options{}},
		{"scaling", source(results.KindScaling, row(a, results.SpeedUp, b), row(b, results.Updates, a)), Options{}},
		{"roofline", source(results.KindSweep, points.Number(results.GFLOPS, a).Number(results.Rate, b).
			Number(results.CopyRate, b)), Options{Peaks: map[string]float64{"float64": math.Abs(a)}}},
		{"history", run, Options{}},
	} {
		chart, err := New(asked.kind, asked.o, asked.of)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		charts = append(charts, chart)
	}
	for linear := range 4 {
		c := Curve{Name: "c", X: []float64{a, b}, Y: []float64{b, a}}
		bar := Curve{Name: "b", X: []float64{a}, Y: []float64{b}, Lo: []float64{min(a, b)}, Hi: []float64{max(a, b)}}
		for _, bytes := range []bool{false, true} {
			charts = append(charts, Curves{LinearX: linear&1 > 0, LinearY: linear&2 > 0, BytesX: bytes, Curves: []Curve{c, bar}})
		}
	}
	values := []float64{a, b, math.NaN(), math.Inf(1)}
	return append(charts, Picture{NX: 2, NY: 2, Values: values, X0: a, DX: math.Abs(b), DY: 1}), errs
}

// coordinate is one that is not finite.
var coordinate = regexp.MustCompile(`="[^"]*(NaN|Inf)[^"]*"`)

// drawnWithin fails the test if a chart that can be drawn has more texts, or a coordinate that is not finite.
func drawnWithin(t *testing.T, chart Chart, of string, texts int) error {
	t.Helper()
	var data bytes.Buffer
	if err := Encode(&data, ".svg", chart); err != nil {
		return err
	}
	svg := data.String()
	if n, wrong := strings.Count(svg, "<text"), coordinate.FindString(svg); n > texts || wrong != "" {
		t.Errorf("%s, %T, has %d texts and %q", of, chart, n, wrong)
	}
	return nil
}

// Whatever numbers a chart shows, zeros, denormal numbers, equal ones, NaN and infinities too, it is an error, or is
// drawn with few texts and finite coordinates.
func FuzzRanges(f *testing.F) {
	const tiny, huge = math.SmallestNonzeroFloat64, math.MaxFloat64
	for _, pair := range [][2]float64{{0, 0}, {0, tiny}, {tiny, tiny}, {tiny, 1e-310}, {1e-310, huge}, {1, 1}, {1e-5, 2.9e307},
		{1, math.Nextafter(1, 2)}, {1, math.Inf(-1)}, {huge, huge}, {huge, -huge}, {-1, 0}, {math.NaN(), 1}, {302, math.Inf(1)}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b float64) {
		charts, errs := chartsOf(a, b)
		for i, chart := range charts {
			if err := drawnWithin(t, chart, fmt.Sprintf("chart %d, of %v and %v", i, a, b), 80); err != nil {
				errs = append(errs, err)
			}
		}
		for _, err := range errs {
			if len(err.Error()) > 400 || strings.Contains(err.Error(), "\n") {
				t.Errorf("of %v and %v: %v", a, b, err)
			}
		}
	})
}
