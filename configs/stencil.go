package configs

import (
	"fmt"
	"slices"
)

// Stencil selects the number and the shape of the points that a step reads.
type Stencil struct {
	Points int    `json:"points" yaml:"points"`
	Shape  string `json:"shape" yaml:"shape"` // "star" or "box"
}

// The values of Stencil.Shape.
const (
	ShapeStar = "star" // along the axes only
	ShapeBox  = "box"
)

// stencilKind is a stencil that there is, with the largest eigenvalue of the Laplacian that
// it makes, of which the stability of a step depends, times h^2: of each axis for a star, of
// all together for a box.
type stencilKind struct {
	dims int
	Stencil
	highest float64
}

// stencilKinds are all. Of those with as many points the first is meant where no shape is
// given, and of all of a dimension the first where nothing is.
var stencilKinds = []stencilKind{
	{2, Stencil{5, ShapeStar}, 4}, {2, Stencil{9, ShapeBox}, 16. / 3}, {2, Stencil{9, ShapeStar}, 16. / 3},
	{2, Stencil{25, ShapeBox}, 16./3 + 49./125},
	{3, Stencil{7, ShapeStar}, 4}, {3, Stencil{13, ShapeStar}, 16. / 3}, {3, Stencil{19, ShapeBox}, 16. / 3},
	{3, Stencil{27, ShapeBox}, 92. / 15},
}

// stencil reads the section stencil for a grid of a known number of dimensions.
func (r *reader) stencil(run *Run) Stencil {
	const points, shape = "stencil.points", "stencil.shape"
	want := Stencil{}
	if !r.isAuto(points) {
		want.Points = r.whole(points, 1, 27)
	}
	if !r.isAuto(shape) {
		want.Shape = r.word(shape, ShapeStar, ShapeBox)
	}
	if r.dims == 0 || r.anyBad(points, shape) {
		return Stencil{}
	}
	kind, ok := findStencil(r.dims, want)
	switch {
	case !ok:
		name := points
		if want.Points == 0 {
			name = shape
		}
		s, _ := r.lookup(name)
		r.refuse(name, s, fmt.Sprintf("is no stencil of %d dimensions: %s", r.dims, stencilsOf(r.dims)))
		return Stencil{}
	case kind.Shape == ShapeBox && !r.anyBad("grid.spacing") && !allEqual(run.Grid.Spacing):
		name := points
		if want.Points == 0 {
			name = shape
		}
		s, _ := r.lookup(name)
		r.refuse(name, s, fmt.Sprintf("is a box, which needs one spacing on all axes, and they have %v: set grid.spacing or use a star", run.Grid.Spacing))
		return Stencil{}
	}
	return kind.Stencil
}

// findStencil returns the first kind that has what is wanted; zeros want anything.
func findStencil(dims int, want Stencil) (stencilKind, bool) {
	at := slices.IndexFunc(stencilKinds, func(k stencilKind) bool {
		return k.dims == dims && (want.Points == 0 || k.Points == want.Points) && (want.Shape == "" || k.Shape == want.Shape)
	})
	if at < 0 {
		return stencilKind{}, false
	}
	return stencilKinds[at], true
}

// stencilsOf lists the stencils of a number of dimensions in words.
func stencilsOf(dims int) string {
	text := ""
	for _, k := range stencilKinds {
		if k.dims == dims {
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
