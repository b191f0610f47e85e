package view

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/results/plot"
)

// A Field is values at the points of a grid, with what is known about them.
type Field struct {
	Subject string // what it is a field of, such as "heat"; first part of titles
	Moment  string // when, see Moment; second part of titles
	Name    string // name of the field, such as "u"
	Label   string // name of the values, such as "u" or "temperature"
	Unit    string // unit of the values, such as "K"; default none

	Grid       domain.Grid                       // the grid
	Spacing    []float64                         // distance between points, per axis; a grid of one dimension has one
	Coordinate func(axis, index int) float64     // coordinate of the points with an index on an axis; nil: unknown
	Read       func([]float64, domain.Box) error // reads the points of a box, x fastest

	// Wall returns the values of the boundary at an end, 0 or 1, of an axis as a function of a nearest point, and its
	// distance from these points in spacings. The function is nil if the values are unknown. Wall may be nil.
	Wall func(axis, end int) (value func(at domain.Vec) float64, distance float64)
}

// Options change how fields are drawn.
type Options struct {
	Slice  string      // plane of three dimensions, such as z=16 or z=0.5; "" or auto: the middle of z
	Line   string      // line that is drawn as a curve, see Chart; default none
	Title  string      // title; default the subject, the moment and the position
	Label  string      // instead of the label of the field
	Colors string      // one of plot.ColorMaps; default the first
	Range  *plot.Range // range of the values, of colors or the vertical axis; default what the fields have
}

// Moment describes the time of a field in the units of its equation, and the step: "t = 0.5 (step 100)". Either may be
// unknown: NaN, and less than 0.
func Moment(step int64, time float64) string {
	switch {
	case math.IsNaN(time) && step < 0:
		return ""
	case math.IsNaN(time):
		return fmt.Sprintf("step %d", step)
	case step < 0:
		return fmt.Sprintf("t = %.5g", time)
	}
	return fmt.Sprintf("t = %.5g (step %d)", time, step)
}

// dims returns the number of dimensions.
func (f *Field) dims() int {
	if len(f.Spacing) == 1 {
		return 1
	}
	return f.Grid.Dims
}

// at returns the coordinate of points on an axis, or their index if coordinates are unknown.
func (f *Field) at(axis, index int) float64 {
	if f.Coordinate == nil {
		return float64(index)
	}
	return f.Coordinate(axis, index)
}

// spacing returns the distance between points on an axis.
func (f *Field) spacing(axis int) float64 {
	if f.Coordinate == nil || axis >= len(f.Spacing) {
		return 1
	}
	return f.Spacing[axis]
}

// axisTitle returns the name of an axis.
func (f *Field) axisTitle(axis int) string {
	if f.Coordinate == nil {
		return axisName(axis) + " (index)"
	}
	return axisName(axis)
}

// axisName returns "x", "y" or "z".
func axisName(axis int) string { return "xyz"[axis : axis+1] }

// position parses a position on an axis such as z=16, an index, or z=0.5, which has a point or an exponent: a
// coordinate, or the fraction of the axis if coordinates are unknown.
func (f *Field) position(text string) (axis, index int, err error) {
	name, value, _ := strings.Cut(text, "=")
	axis = strings.Index("xyz", name)
	if len(name) != 1 || axis < 0 || axis >= f.dims() {
		return 0, 0, fmt.Errorf("must be a position such as %s=16 or %[1]s=0.5, got %q", axisName(f.dims()-1), text)
	}
	last := f.Grid.Size[axis] - 1
	if index, err = strconv.Atoi(value); err == nil {
		if index < 0 || index > last {
			return 0, 0, fmt.Errorf("must be in the grid, from %s=0 to %[1]s=%d, got %s", name, last, text)
		}
		return axis, index, nil
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("must be a position such as %s=16 or %[1]s=0.5, got %q", name, text)
	}
	if index, err = f.nearest(axis, v); err != nil {
		return 0, 0, fmt.Errorf("%w, got %s", err, text)
	}
	return axis, index, nil
}

// nearest returns the points that are nearest to a coordinate.
func (f *Field) nearest(axis int, v float64) (int, error) {
	p, err := f.place(axis, v)
	return min(max(0, int(math.Round(p))), f.Grid.Size[axis]-1), err
}

// place returns a coordinate as an index, perhaps between two points. It may be one spacing outside of the points.
func (f *Field) place(axis int, v float64) (float64, error) {
	last := float64(f.Grid.Size[axis] - 1)
	if f.Coordinate == nil {
		if !(v >= 0 && v <= 1) {
			return 0, errors.New("must be a fraction of the axis from 0.0 to 1.0, as coordinates are unknown")
		}
		return v * last, nil
	}
	p := (v - f.at(axis, 0)) / f.spacing(axis)
	if !(p >= -1-1e-9 && p <= last+1+1e-9) {
		return 0, fmt.Errorf("must be in the grid, whose points are from %s=%#.4g to %s=%#.4g", axisName(axis),
			f.at(axis, 0), axisName(axis), f.at(axis, int(last)))
	}
	return p, nil
}

// Plane returns the axis across a plane, and the index of the plane on it: those of Options.Slice in three dimensions.
func (o Options) Plane(f *Field) (axis, index int, err error) {
	automatic := o.Slice == "" || o.Slice == "auto"
	switch {
	case f.dims() < 3 && !automatic:
		return 0, 0, fmt.Errorf("slice: must not be set for a field of %d dimensions, which is shown whole", f.dims())
	case automatic:
		for axis, n := range f.Grid.Size {
			if n == 1 && f.dims() == 3 {
				return axis, 0, nil // the field is a plane
			}
		}
		return 2, f.Grid.Size[2] / 2, nil
	}
	if axis, index, err = f.position(o.Slice); err != nil {
		err = fmt.Errorf("slice: %w", err)
	}
	return axis, index, err
}

// where describes a position on an axis.
func (f *Field) where(axis, index int) string {
	if f.Coordinate == nil {
		return fmt.Sprintf("%s=%d", axisName(axis), index)
	}
	return fmt.Sprintf("%s = %.4g", axisName(axis), f.at(axis, index))
}

// title returns the title of a chart at a position.
func (o Options) title(f *Field, where string) string {
	parts := []string{o.Title}
	if o.Title == "" {
		parts = []string{f.Subject, f.Moment, where}
	}
	var all []string
	for _, part := range parts {
		if part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, ", ")
}

func (o Options) label(f *Field) string {
	if o.Label != "" {
		return o.Label
	}
	if f.Unit != "" {
		return f.Label + " (" + f.Unit + ")"
	}
	return f.Label
}
