package kernels

import (
	"slices"
	"testing"

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
					if !f.streams && !slices.Contains(rowsAThread, c.shape.Layers) {
						t.Errorf("%d points, %d dimensions, %s: there is no kernel for shape %v", s.Points(), s.Dims, r, c.shape)
					}
				}
			}
		}
	}
}

// Sums go layer by layer where each part lies in a layer, few lie differently there, and for
// stencils of many points, some of them beside the centre's column in other layers.
func TestLayered(t *testing.T) {
	for _, s := range everyStencil() {
		if got, want := layered(s), s.Points() == 19 || s.Points() == 27; got != want {
			t.Errorf("%d points, %d dimensions: %v", s.Points(), s.Dims, got)
		}
	}
	plane := stencil.Part{{1, 0, 0}, {0, 1, 0}, {-1, 0, 0}, {0, -1, 0}, {1, 1, 0}, {-1, -1, 0}}
	alone := []stencil.Part{{{1, 0, 1}}, {{0, 1, 1}}, {{-1, 0, 1}}}
	for _, c := range []struct {
		name  string
		want  bool
		parts []stencil.Part
	}{
		{"in two planes", true, []stencil.Part{plane, {{1, 0, -1}}, {{1, 0, 1}, {0, 1, 1}}}},
		{"downwards", true, []stencil.Part{{{1, 0, 1}}, {{1, 0, -1}}, plane}},
		{"a part in two planes", false, []stencil.Part{plane, {{1, 0, -1}, {1, 0, 1}}}},
		{"a column", false, []stencil.Part{plane, {{0, 0, -1}}, {{0, 0, 1}}}},
		{"far", false, []stencil.Part{plane, {{1, 0, -1}}, {{1, 0, 2}}}},
		{"few points", false, []stencil.Part{plane[:4], {{1, 0, -1}}, {{1, 0, 1}}}},
		{"many parts", false, append([]stencil.Part{plane, {{0, -1, 1}}}, alone...)},
		{"as many as may be", true, append([]stencil.Part{plane}, alone[:2]...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stencil.Stencil{Dims: 3, Centre: 1, Groups: []stencil.Group{{Weight: 1, Parts: c.parts}}}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			if got := layered(s); got != c.want {
				t.Error(got)
			}
		})
	}
}
