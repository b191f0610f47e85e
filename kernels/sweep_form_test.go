package kernels

import (
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
)

// Every shape fits the bounds that the kernels are compiled for, also that of sweeps with
// norms, whose blocks are whole warps.
func TestShapesFitTheirBounds(t *testing.T) {
	for _, s := range everyStencil() {
		for _, r := range []Real{Float64, Float32} {
			f := formOf(s, r)
			for _, shape := range f.shapes {
				with := f.measured(shape)
				for _, c := range []struct {
					shape Shape
					most  int
				}{{shape, f.bounds.threads}, {with, f.norms.threads}} {
					threads := c.shape.Block[0] * c.shape.Block[1]
					if threads == 0 || threads%32 > 0 || threads > c.most {
						t.Errorf("%d points, %d dimensions, %s: shape %v has blocks of %d threads; %d are possible",
							s.Points(), s.Dims, r, c.shape, threads, c.most)
					}
					if !f.marches && !slices.Contains(rowsAThread, c.shape.Layers) {
						t.Errorf("%d points, %d dimensions, %s: there is no kernel for shape %v", s.Points(), s.Dims, r, c.shape)
					}
				}
			}
		}
	}
}

// Sums go layer by layer where each part lies in a layer, and for stencils that have points
// beside the centre's column in other layers.
func TestLayered(t *testing.T) {
	for _, s := range everyStencil() {
		if got, want := layered(s), s.Points() == 19 || s.Points() == 27; got != want {
			t.Errorf("%d points, %d dimensions: %v", s.Points(), s.Dims, got)
		}
	}
	group := func(parts ...stencil.Part) stencil.Stencil {
		s := stencil.Stencil{Dims: 3, Centre: 1, Groups: []stencil.Group{{Weight: 1, Parts: parts}}}
		for _, a := range []domain.Vec{{1, 0, 0}, {0, 1, 0}} {
			s.Groups = append(s.Groups, stencil.Group{Weight: 1, Parts: []stencil.Part{{a}}})
		}
		return s
	}
	for _, c := range []struct {
		stencil stencil.Stencil
		want    bool
	}{
		{group(stencil.Part{{1, 0, -1}}, stencil.Part{{1, 0, 1}, {0, 1, 1}}), true},
		{group(stencil.Part{{1, 0, 1}}, stencil.Part{{1, 0, -1}}), true},
		{group(stencil.Part{{1, 0, -1}, {1, 0, 1}}), false},
		{group(stencil.Part{{0, 0, -1}}, stencil.Part{{0, 0, 1}}), false},
		{group(stencil.Part{{1, 0, -1}}, stencil.Part{{1, 0, 2}}), false},
	} {
		t.Run(fmt.Sprint(c.stencil.Groups[0].Parts), func(t *testing.T) {
			if got := layered(c.stencil); got != c.want {
				t.Error(got)
			}
		})
	}
}
