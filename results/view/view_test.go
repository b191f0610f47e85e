package view

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/results/internal/resultstest"
	"github.com/halox/halox/results/plot"
)

// indices is a field of numbers made of the points' coordinates, whose points are at 1, 1.5, 2, ... With walls its lower
// boundaries are -7, one spacing from the points, and its upper ones half a spacing.
func indices(t *testing.T, walls bool, size ...int) *Field {
	f := &Field{
		Subject: "heat", Moment: Moment(7, 0.25), Label: "u", Grid: test.Must(domain.NewGrid(size, nil))(t),
		Spacing:    slices.Repeat([]float64{0.5}, len(size)),
		Coordinate: func(axis, index int) float64 { return 1 + float64(index)/2 }, Read: readIndices,
	}
	if walls {
		f.Wall = func(axis, end int) (func(domain.Vec) float64, float64) {
			return func(at domain.Vec) float64 { return -7 - float64(at[0]) }, 1 - float64(end)/2
		}
	}
	return f
}

func TestPicture(t *testing.T) {
	f := indices(t, true, 4, 3, 5)
	for slice, want := range map[string]struct {
		title, axes string
		first       float64 // value
		sides       [4]plot.Side
	}{
		"": {"heat, t = 0.25 (step 7), z = 2", "x y", number(0, 0, 2), [4]plot.Side{
			{Width: 0.25, Values: []float64{-7, -7, -7}}, {}, {Width: 0.25, Values: []float64{-7, -8, -9, -10}}, {},
		}},
		"x=3": {"heat, t = 0.25 (step 7), x = 2.5", "y z", number(3, 0, 0), [4]plot.Side{
			{Width: 0.25, Values: slices.Repeat([]float64{-10}, 5)}, {}, {Width: 0.25, Values: []float64{-10, -10, -10}}, {},
		}},
		"y=1.6": {"heat, t = 0.25 (step 7), y = 1.5", "x z", number(0, 1, 0), [4]plot.Side{
			{Width: 0.25, Values: slices.Repeat([]float64{-7}, 5)}, {}, {Width: 0.25, Values: []float64{-7, -8, -9, -10}}, {},
		}},
	} {
		p, err := Picture(f, Options{Slice: slice})
		if got := p.XLabel + " " + p.YLabel; err != nil || p.Title != want.title || got != want.axes || p.Values[0] != want.first {
			t.Errorf("%q: %q, axes %s, %v first: %v", slice, p.Title, got, p.Values[0], err)
		}
		if fmt.Sprint(p.Sides) != fmt.Sprint(want.sides) || p.X0 != 1 || p.DY != 0.5 || p.Label != "u" {
			t.Errorf("%q: sides %v, at %v by %v", slice, p.Sides, p.X0, p.DY)
		}
	}
	unknown := *f
	unknown.Coordinate, unknown.Wall = nil, nil
	p, err := Picture(&unknown, Options{Slice: "z=0.3", Title: "a title", Label: "T (K)"})
	if err != nil || p.Title != "a title" || p.XLabel != "x (index)" || p.X0 != 0 || p.DX != 1 || p.Values[0] != number(0, 0, 1) || p.Label != "T (K)" {
		t.Errorf("without coordinates: %+v, %v", p, err)
	}
}

// A field of one dimension is a curve over x, with a gap where values are not finite; lines have their ends at walls.
func TestCurves(t *testing.T) {
	row := func(values ...float64) *Field {
		f := indices(t, false, len(values))
		f.Read = func(dst []float64, box domain.Box) error { copy(dst, values[box.Lo[0]:box.Hi[0]]); return nil }
		return f
	}
	nan := math.NaN()
	for name, tc := range map[string]struct {
		f    *Field
		line string
		want string // title; axis; x to y of each curve
	}{
		"one dimension": {row(300, 301, 300.5), "", "heat, t = 0.25 (step 7); x; [1 1.5 2] [300 301 300.5]"},
		"gap":           {row(1, 2, nan, 4, 5), "", "heat, t = 0.25 (step 7); x; [1 1.5] [1 2]; [2.5 3] [4 5]"},
		"along z": {indices(t, true, 4, 3, 2), "z", "heat, t = 0.25 (step 7), x = 2, y = 1.5; z; " +
			"[0.5 1 1.5 1.75] [-9 102 10102 -9]"},
		"positions": {indices(t, false, 2, 3, 4), "z=3,y=1.0", "heat, t = 0.25 (step 7), y = 1, z = 2.5; x; [1 1.5] [30000 30001]"},
		"between": {indices(t, false, 2, 3, 1), "1,1,1:1,2,1", "heat, t = 0.25 (step 7), from (1,1,1) to (1,2,1); distance; " +
			"[0 0.25 0.5 0.75 1] [0 50 100 150 200]"},
	} {
		chart, err := Chart(tc.f, Options{Line: tc.line})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := chart.(plot.Curves)
		got := c.Title + "; " + c.XLabel
		for _, one := range c.Curves {
			got += fmt.Sprintf("; %v %v", one.X, one.Y)
		}
		if got != tc.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, tc.want)
		}
	}
	if _, err := Chart(row(nan, nan), Options{}); err == nil {
		t.Error("a field without finite values is drawn")
	}
	two := indices(t, false, 4, 3)
	two.Moment = "step 9"
	chart, err := Curves([]*Field{indices(t, false, 4, 3), two}, Options{Line: "y", Range: &plot.Range{Lo: 0, Hi: 1}})
	c := chart.(plot.Curves)
	if err != nil || c.Title != "heat, x = 2" || c.Curves[0].Name != "t = 0.25 (step 7)" || c.Curves[1].Name != "step 9" || c.RangeY.Hi != 1 {
		t.Errorf("two curves: %+v, %v", c, err)
	}
}

func TestOptionsRefused(t *testing.T) {
	f := indices(t, false, 4, 3, 5)
	unknown := *f
	unknown.Coordinate = nil
	for _, tc := range []struct {
		f    *Field
		o    Options
		want string
	}{
		{f, Options{Slice: "z=5"}, "slice: must be in the grid, from z=0 to z=4, got z=5"},
		{f, Options{Slice: "z=-1"}, "slice: must be in the grid, from z=0 to z=4, got z=-1"},
		{f, Options{Slice: "z=9.5"}, "slice: must be in the grid, whose points are from z=1.000 to z=3.000, got z=9.5"},
		{f, Options{Slice: "w=1"}, `slice: must be a position such as z=16 or z=0.5, got "w=1"`},
		{f, Options{Slice: "y"}, `slice: must be a position such as y=16 or y=0.5, got "y"`},
		{f, Options{Slice: "z=NaN"}, "slice: must be in the grid"},
		{&unknown, Options{Slice: "z=1.5"}, "slice: must be a fraction of the axis from 0.0 to 1.0, as coordinates are unknown, got z=1.5"},
		{indices(t, false, 4, 3), Options{Slice: "z=0"}, "slice: must not be set for a field of 2 dimensions"},
		{f, Options{Line: "y=1"}, `line: must be an axis, or a position on all other axes, such as y=0.5,z=16, got "y=1"`},
		{f, Options{Line: "y=1,q"}, `line: must be a position such as z=16 or z=0.5, got "q"`},
		{f, Options{Line: "1,1:2,2"}, `line: points must have 3 coordinates, got "1,1"`},
		{f, Options{Line: "1,1,1:2,2,x"}, `line: coordinates must be numbers, got "x"`},
		{f, Options{Line: "1,1,1:2,2,8"}, "line: must be in the grid, whose points are from z=1.000 to z=3.000, got 2,2,8"},
		{f, Options{Line: "1,1,1:1,1,1"}, "line: must be two points"},
	} {
		_, err := Chart(tc.f, tc.o)
		resultstest.WantError(t, err, tc.want)
	}
	if _, err := Curves(slices.Repeat([]*Field{f}, 13), Options{Line: "x"}); err == nil {
		t.Error("13 curves are drawn")
	}
	broken := *f
	broken.Read = func([]float64, domain.Box) error { return errors.New("broken") }
	for _, line := range []string{"", "x", "1,1,1:2,2,2"} {
		if _, err := Chart(&broken, Options{Line: line}); err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("line %q: %v", line, err)
		}
	}
}

// All frames of a film have the range of all fields, or the ends that are set.
func TestFilmHasOneRange(t *testing.T) {
	open := func(i int) (*Field, error) {
		f := indices(t, false, 2, 2, 2)
		f.Read = func(dst []float64, box domain.Box) error {
			for k := range dst {
				dst[k] = float64(i*10 + k)
			}
			return nil
		}
		return f, nil
	}
	nan := math.NaN()
	for _, tc := range []struct {
		o    Options
		want plot.Range
	}{
		{Options{}, plot.Range{Lo: 0, Hi: 23}}, {Options{Range: &plot.Range{Lo: 5, Hi: nan}}, plot.Range{Lo: 5, Hi: 23}},
		{Options{Line: "x"}, plot.Range{Lo: 0, Hi: 21}}, {Options{Range: &plot.Range{Lo: 1, Hi: 2}}, plot.Range{Lo: 1, Hi: 2}},
	} {
		film, err := Film(3, open, tc.o)
		test.Check(t, err)
		for i := range film.Frames {
			var got *plot.Range
			switch c := test.Must(film.Frame(i))(t).(type) {
			case plot.Picture:
				got = c.Range
			case plot.Curves:
				got = c.RangeY
			}
			if *got != tc.want {
				t.Errorf("frame %d has range %v, want %v", i, *got, tc.want)
			}
		}
	}
}

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "probes.csv")
	draw := func(text, x string, y ...string) (plot.Curves, error) {
		test.Check(t, os.WriteFile(path, []byte(text), 0o644))
		c, err := Table(path, x, y, Options{})
		if err != nil {
			return plot.Curves{}, err
		}
		return c.(plot.Curves), nil
	}
	const text = "step,time,u,\"v(0,1)\"\n0,0,1,5\n10,0.5,2,\n20,1,3,7\n30,1.5,nan,8\n"
	c, err := draw(text, "")
	if got := fmt.Sprint(c.Title, c.XLabel, len(c.Curves), c.Curves[0], c.Curves[2].X); err != nil || c.Curves[2].Name != "" || !strings.HasPrefix(got, "probestime3 {u [0 0.5 1] [1 2 3]") || !strings.HasSuffix(got, "[1 1.5]") {
		t.Errorf("%s, %v", got, err)
	}
	c, err = draw(text, "step", "v(0,1)")
	if err != nil || c.YLabel != "v(0,1)" || len(c.Curves) != 2 || c.Curves[1].X[1] != 30 || c.Curves[0].Name != "" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = draw("step,time,u\n0,nan,1\n1,nan,2\n", ""); err != nil || c.XLabel != "step" {
		t.Errorf("%+v, %v", c, err)
	}
	var long bytes.Buffer
	fmt.Fprintln(&long, "t,u")
	for i := range 3 * curvePoints {
		fmt.Fprintf(&long, "%d,%d\n", i, i%3)
	}
	if c, err = draw(long.String(), ""); err != nil || len(c.Curves[0].X) != curvePoints || c.Curves[0].Y[7] != 1 || c.Curves[0].X[1] != 4 {
		t.Errorf("%v", err)
	}
	for _, tc := range []struct{ text, x, want string }{
		{"", "", "the table is empty"}, {"a,b\n", "", "the table has no rows"}, {"a,b\n1\n", "", "wrong number of fields"},
		{"a,b\n1,2\n", "c", `has no column "c"; there are a, b`}, {"a,b\n1,x\n", "", "no number is finite"},
		{"a," + strings.Repeat("b,", 13) + "c\n", "a", "the table has no rows"},
		{"a" + strings.Repeat(",b", 13) + "\n1" + strings.Repeat(",2", 13) + "\n", "a", "must draw at most 12 columns, got 13"},
	} {
		_, err := draw(tc.text, tc.x)
		resultstest.WantError(t, err, tc.want)
	}
}
