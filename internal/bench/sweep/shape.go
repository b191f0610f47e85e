package sweep

import (
	"fmt"

	"github.com/halox/halox/stencil"
)

// shape is a stencil that can be swept.
type shape struct {
	name    string
	kind    stencil.Kind
	spacing []float64 // one number an axis: axes that are alike have one weight
}

func (s shape) dims() int { return len(s.spacing) }

// stencil returns heat's of the shape; Laplace's has as many operations.
func (s shape) stencil() (stencil.Stencil, error) { return stencil.HeatOf(s.kind, s.spacing, 0.1, 0.1) }

// flops returns the operations a point: a product for the centre and for each group of
// points that have one weight, and a sum for each point but one.
func flops(s stencil.Stencil) int { return 1 + len(s.Groups) + s.Points() - 1 }

// shapes are the stencils of package stencil, stars of one step along each axis also with
// a weight for each axis.
func shapes() (all []shape) {
	for _, spacing := range [][]float64{{1, 1}, {1, 1, 1}} {
		points := map[int]bool{}
		for _, kind := range stencil.Kinds(len(spacing)) {
			name := fmt.Sprintf("%d-point", kind.Points)
			if points[kind.Points] {
				name += "-" + string(kind.Shape)
			}
			points[kind.Points] = true
			all = append(all, shape{name, kind, spacing})
		}
	}
	return append(all,
		shape{"5-point-axes", stencil.Kinds(2)[0], []float64{1, 2}},
		shape{"7-point-axes", stencil.Kinds(3)[0], []float64{1, 2, 3}})
}

// Stencils returns the names of the stencils that can be swept.
func Stencils() (names []string) {
	for _, s := range shapes() {
		names = append(names, s.name)
	}
	return names
}
