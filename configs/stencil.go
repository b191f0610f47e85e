package configs

import (
	"fmt"
	"slices"
	"strconv"
)

// Stencil selects the number and the shape of the points that a step reads.
type Stencil struct {
	Points int    `json:"points" yaml:"points"`
	Shape  string `json:"shape" yaml:"shape"` // "star", "box"
}

// A StencilKind is a stencil that a config may select.
type StencilKind struct {
	Dims int
	Stencil
	OneSpacing bool // it needs one spacing on all axes
	// StableStep returns the largest time step with which the explicit heat solver is stable.
	StableStep func(spacing []float64, diffusivity float64) float64
}

// stencil reads the section stencil for a grid of a known number of dimensions.
func (r *reader) stencil(run *Run) Stencil {
	const points, shape = "stencil.points", "stencil.shape"
	want := Stencil{}
	if !r.isAuto(points) {
		want.Points = r.whole(points, 1, r.mostPoints())
	}
	if !r.isAuto(shape) {
		want.Shape = r.word(shape, r.shapes()...)
	}
	if r.dims == 0 || r.anyBad(points, shape) {
		return Stencil{}
	}
	kind, ok := r.findStencil(want)
	switch {
	case !ok:
		name := points
		if want.Points == 0 {
			name = shape
		}
		s, _ := r.lookup(name)
		r.refuse(name, s, fmt.Sprintf("is no stencil of %d dimensions: %s", r.dims, r.listStencils()))
		return Stencil{}
	case kind.OneSpacing && !r.anyBad("grid.spacing") && !allEqual(run.Grid.Spacing):
		name := points
		if want.Points == 0 {
			name = shape
		}
		s, _ := r.lookup(name)
		r.refuse(name, s, fmt.Sprintf("is a %s, which needs one spacing on all axes, and they have %v: set grid.spacing or use a star", kind.Shape, run.Grid.Spacing))
		return Stencil{}
	}
	return kind.Stencil
}

// findStencil returns the first kind of the grid's dimensions that has what is wanted; zeros want
// anything.
func (r *reader) findStencil(want Stencil) (StencilKind, bool) {
	at := slices.IndexFunc(r.stencils, func(k StencilKind) bool {
		return k.Dims == r.dims && (want.Points == 0 || k.Points == want.Points) && (want.Shape == "" || k.Shape == want.Shape)
	})
	if at < 0 {
		return StencilKind{}, false
	}
	return r.stencils[at], true
}

// mostPoints is the largest number of points that a stencil has.
func (r *reader) mostPoints() (most int) {
	for _, k := range r.stencils {
		most = max(most, k.Points)
	}
	return most
}

// shapes returns the shapes of all stencils, each once.
func (r *reader) shapes() (all []string) {
	for _, k := range r.stencils {
		if !slices.Contains(all, k.Shape) {
			all = append(all, k.Shape)
		}
	}
	return all
}

// allowedPoints says in words which numbers of points there are.
func (r *reader) allowedPoints() string {
	text := Auto
	for dims, name := range []string{2: "two dimensions", 3: "three"} {
		var points []string
		for _, k := range r.stencils {
			if n := strconv.Itoa(k.Points); k.Dims == dims && !slices.Contains(points, n) {
				points = append(points, n)
			}
		}
		if len(points) > 0 {
			text += ", in " + name + " " + either(points)
		}
	}
	return text
}

// listStencils lists the stencils of the grid's dimensions in words.
func (r *reader) listStencils() string {
	text := ""
	for _, k := range r.stencils {
		if k.Dims == r.dims {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d (%s)", k.Points, k.Shape)
		}
	}
	return text
}

// allEqual reports whether the numbers are one and the same.
func allEqual(v []float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return x != v[0] })
}
