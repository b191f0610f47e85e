package sweep

import (
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// Every shape has a kernel and fits the bounds that it is compiled for, also as sweeps that measure take it.
// Blocks are whole warps.
func TestShapesFitTheirBounds(t *testing.T) {
	for _, s := range append(samples(), linearSamples(t)...) {
		f := must(newPlan(s.point, s.accesses))(t).form()
		for _, shape := range f.shapes {
			bounds, measured := f.boundsOf(shape.Single)
			for _, c := range []struct {
				shape Shape
				most  int
				names []string
			}{{shape, bounds.threads, f.kernels()}, {f.measuredShape(shape), measured.threads, f.measuredKernels()}} {
				threads := c.shape.Block[0] * c.shape.Block[1]
				if threads == 0 || threads%32 > 0 || threads > c.most {
					t.Errorf("%s: shape %v has blocks of %d threads; %d are possible", s.point.Name, c.shape, threads, c.most)
				}
				if !slices.Contains(c.names, f.kernel(c.shape)) {
					t.Errorf("%s: there is no kernel %s for shape %v", s.point.Name, f.kernel(c.shape), c.shape)
				}
			}
		}
	}
}

// Sums go layer by layer where each part lies in a layer, few lie differently there, and for
// stencils of many points, some of them beside the centre's column in other layers.
func TestLayered(t *testing.T) {
	for _, sample := range linearSamples(t) {
		s := *sample.point.linear
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

// Linear refuses what is no stencil of real numbers.
func TestRefusedStencils(t *testing.T) {
	star := stencil.StarWeights{Dims: 2, Equal: true}.Stencil()
	if _, _, err := Linear(star, "float16"); err == nil || !strings.Contains(err.Error(), `type "float16"`) {
		t.Error(err)
	}
	star.Dims = 4
	if _, _, err := Linear(star, kernels.Float64); err == nil {
		t.Error("four dimensions were accepted")
	}
}
