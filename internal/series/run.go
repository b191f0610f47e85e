// Package series writes outputs while a run goes on: values at points as CSV, and fields as files of several formats.
//
// Each output has an event, see scheme.Event: steps wait while it reads the fields or copies them on their devices.
// Everything else happens in the background. Outputs change no fields.
package series

import (
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/solvers/scheme"
)

// A Run describes a run to its outputs.
type Run struct {
	Place      *halo.Placement
	Element    domain.Element                     // of all fields
	Fields     []Field                            // fields and statistics, all of one placement
	Spacing    []float64                          // distance between points, per axis
	Coordinate func(axis, index int) float64      // coordinate of the points with an index on an axis
	Length     float64                            // time of a step; 0 if it changes, or for problems without time
	Time       func() float64                     // time after the last step; nil for problems without time
	Failed     func(output string, e error) error // called on rank 0 if an output fails; the run ends with its error
	Warn       func(e error)                      // called on rank 0
}

// A Field is a field by name.
type Field struct {
	Name string             // name in configs and files
	Unit string             // unit of the values; default none
	Now  func() *halo.Field // after the last step
}

// named returns the fields with names, in their order; nil means all fields of the first.
func (r *Run) named(names []string) (all []Field, err error) {
	for _, name := range names {
		found := false
		for _, f := range r.Fields {
			if f.Name == name {
				all, found = append(all, f), true
			}
		}
		if !found {
			err = errors.Join(err, fmt.Errorf("series: there is no field %q", name))
		}
	}
	return all, err
}

// axes returns the number of axes that have coordinates: a grid of one dimension has two axes and one spacing.
func (r *Run) axes() int { return len(r.Spacing) }

// nearest returns the index of the point of the grid that is nearest to a coordinate, the lower one of two.
func (r *Run) nearest(axis int, at float64) int {
	i := math.Ceil((at-r.Coordinate(axis, 0))/r.Spacing[axis] - 0.5)
	return int(min(max(i, 0), float64(r.Place.Grid.Size[axis]-1)))
}

// point returns the point of the grid that is nearest to coordinates.
func (r *Run) point(at []float64) (p domain.Vec) {
	for axis, x := range at {
		p[axis] = r.nearest(axis, x)
	}
	return p
}

// now returns the time after the last step or, for problems without time, its number.
func (r *Run) now(step int64) float64 {
	if r.Time == nil {
		return float64(step)
	}
	return r.Time()
}

// An Every is the distance between two outputs: in steps or, if Steps is 0, in time.
type Every struct {
	Steps int64
	Time  float64
}

// next returns the first step after a step at which an output is due; step 0 is one.
func (e Every) next(length float64) func(step int64) int64 {
	if e.Steps > 0 {
		return scheme.Every(e.Steps)
	}
	at := func(n float64) int64 { return int64(math.Ceil(n * e.Time / length * (1 - 1e-12))) }
	return func(step int64) int64 {
		n := math.Floor(float64(step) * length / e.Time)
		for at(n) <= step {
			n++
		}
		return at(n)
	}
}

// checkGap warns unless an output whose last step is given, -1 if it has none, has all steps before a restart.
func (r *Run) checkGap(output string, every Every, last, restart int64) {
	if missing := every.next(r.Length)(last); missing < restart {
		r.Warn(fmt.Errorf("%s: the steps from %d to the restart at step %d are missing", output, missing, restart))
	}
}

// from returns the first step at or after the time or the number of steps of e.
func (e Every) from(length float64) int64 {
	if e.Steps > 0 {
		return e.Steps
	}
	return int64(math.Ceil(e.Time / max(length, math.SmallestNonzeroFloat64) * (1 - 1e-12)))
}

// After returns a scheme.Event.Next for a distance and a first step or time, for steps of a length.
func (e Every) After(from Every, length float64) func(step int64) int64 {
	next, first := e.next(length), from.from(length)
	return func(step int64) int64 { return next(max(step, first-1, 0)) }
}

// read copies the points of a box, which must be in this process, to dst.
func read(dst []float64, f *halo.Field, box domain.Box) error {
	if f.Spec.Element == domain.Float64 {
		return halo.Read(dst, f, box)
	}
	narrow := make([]float32, len(dst))
	err := halo.Read(narrow, f, box)
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return err
}
