package sweep

import (
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/stencil"
)

// Every shape has a kernel and fits the bounds that it is compiled for, also with single points and as sweeps that
// measure take it. Blocks are whole warps.
func TestShapesFitTheirBounds(t *testing.T) {
	flat := lbmSample(t)
	flat.point.Dims = 2
	for i := range flat.accesses[0].Footprints {
		flat.accesses[0].Footprints[i] = stencil.Point()
	}
	for _, s := range append(append(compiledSamples(t), linearSamples(t)...), flat) {
		f := test.Must(newPlan(s.point, s.accesses))(t).form()
		check := func(shape Shape, most int, names []string) {
			threads := shape.Block[0] * shape.Block[1]
			if threads == 0 || threads%32 > 0 || threads > most {
				t.Errorf("%s: shape %v has blocks of %d threads; the most is %d", s.point.Name, shape, threads, most)
			}
			if !slices.Contains(names, f.kernel(shape)) && !(shape.Single && f.layered) {
				t.Errorf("%s: there is no kernel %s for shape %v", s.point.Name, f.kernel(shape), shape)
			}
		}
		for _, shape := range f.shapes {
			for _, shape := range []Shape{shape, f.single(shape)} {
				bounds, measured := f.boundsOf(shape.Single)
				check(shape, bounds.threads, f.kernels())
				check(f.measuredShape(shape), measured.threads, f.measuredKernels())
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
			test.Check(t, s.Check())
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
