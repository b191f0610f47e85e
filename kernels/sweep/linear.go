package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/stencil"
)

// Linear returns a constant linear stencil as a point function, with its accesses: it reads "u" and writes "next". The
// weights are constants of the source. Its Go counterpart is package kernels/rows.
func Linear(s stencil.Stencil, real kernels.Real) (Point, []Access, error) {
	if err := s.Check(); err != nil {
		return Point{}, nil, fmt.Errorf("sweep: %w", err)
	}
	if real.Size() == 0 {
		return Point{}, nil, fmt.Errorf("sweep: a stencil of type %q", real)
	}
	accesses := []Access{
		{Name: "u", Element: Element(real), Footprint: s.Footprint()},
		{Name: "next", Element: Element(real), Write: true, Before: "u"},
	}
	return Point{Name: "linear", Dims: s.Dims, CUDA: linearSource(s, Element(real)), linear: &s}, accesses, nil
}

// linearSource is the function of a linear stencil in CUDA, in the order that stencil.Stencil gives.
func linearSource(s stencil.Stencil, real Element) string {
	return "template <typename P> __device__ __forceinline__ void linear(P &p) {\n\tp.set(next, " +
		source.Sum(s, weight(real), "p.at(u, 0, 0, 0)", source.Part("p.at(u, %d, %d, %d)")) + ");\n}\n"
}

// weight returns what writes the weights of a field's stencil.
func weight(e Element) func(float64) string { return source.Weight(elements[e].c, e.size()) }

// maxParts is how many different parts a layered stencil may have: what a thread holds of
// each plane.
const maxParts = 4

// layered reports whether the stencil has three dimensions, more points than the 7-point star
// and reaches one, each of its parts lies within a plane, few of them lie differently there,
// and some lie beside the centre's column in other planes than its own: a thread that goes from
// plane to plane then sums the parts of each once, and holds less than the planes.
func layered(s stencil.Stencil) bool {
	if s.Dims != 3 || s.Points() <= 7 || s.AxisRadius(0) != 1 || s.AxisRadius(1) != 1 || s.AxisRadius(2) != 1 {
		return false
	}
	beside := false
	for _, g := range s.Groups {
		for _, p := range g.Parts {
			for _, o := range p {
				if o[2] != p[0][2] {
					return false
				}
				beside = beside || (o[2] != 0 && (o[0] != 0 || o[1] != 0))
			}
		}
	}
	return beside && len(partsOf(s)) <= maxParts
}

// partsOf returns how the parts of a stencil lie in their planes, those that lie alike once;
// the first is the centre.
func partsOf(s stencil.Stencil) []stencil.Part {
	parts := []stencil.Part{{{}}}
	for _, g := range s.Groups {
		for _, p := range g.Parts {
			if findPart(parts, p) < 0 {
				parts = append(parts, inPlane(p))
			}
		}
	}
	return parts
}

// findPart returns the place of a part among those that partsOf returns, -1 if it is none.
func findPart(parts []stencil.Part, p stencil.Part) int {
	return slices.IndexFunc(parts, func(q stencil.Part) bool { return slices.Equal(q, inPlane(p)) })
}

// inPlane is a part as it lies in its plane.
func inPlane(p stencil.Part) stencil.Part {
	p = slices.Clone(p)
	for i := range p {
		p[i][2] = 0
	}
	return p
}

// writeLayers writes the sums of a layered stencil's parts in one plane, where at(dx, dy, 0) is
// the value at an offset, and the sum at a point, where in(part, dz) is that of a part in a plane.
func writeLayers(b *strings.Builder, s stencil.Stencil, e Element) {
	parts := partsOf(s)
	var sums []string
	for _, p := range parts {
		sums = append(sums, source.Part("at(%d, %d, %d)")(p))
	}
	c := elements[e].c
	fmt.Fprintf(b, "#define LAYERED\nstruct Sums { %s of[%d]; };\n\n", c, len(parts))
	fmt.Fprintf(b,
		"template <typename At> __device__ __forceinline__ Sums sums_of(const At &at) {\n\treturn {{%s}};\n}\n\n",
		strings.Join(sums, ", "))
	fmt.Fprintf(b, "template <typename In> __device__ __forceinline__ %s sum_of(const In &in) {\n\treturn ", c)
	inPlanes := func(p stencil.Part) string { return fmt.Sprintf("in(%d, %d)", findPart(parts, p), p[0][2]) }
	b.WriteString(source.Sum(s, weight(e), "in(0, 0)", inPlanes))
	b.WriteString(";\n}\n\n")
}

// Linear returns the stencil that the function is, if it is one that Linear made.
func (p Point) Linear() (stencil.Stencil, bool) {
	if p.linear == nil {
		return stencil.Stencil{}, false
	}
	return *p.linear, true
}
