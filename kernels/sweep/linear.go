package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/stencil"
)

// Linear returns a constant linear stencil as a point function, with its accesses: it reads "u" and writes "next".
// The weights are constants of the source. Its Go counterpart is package kernels/rows.
func Linear(s stencil.Stencil, real domain.Element) (Point, []Access, error) {
	if err := s.Check(); err != nil {
		return Point{}, nil, fmt.Errorf("sweep: %w", err)
	}
	if !real.IsReal() {
		return Point{}, nil, fmt.Errorf("sweep: element type must be float32 or float64, got %q", real)
	}
	accesses := []Access{
		{Name: "u", Element: real, Footprint: s.Footprint()},
		{Name: "next", Element: real, Write: true, Before: "u"},
	}
	return Point{Name: "linear", Dims: s.Dims, CUDA: linearSource(s, real), linear: &s}, accesses, nil
}

// linearSource is the function of a linear stencil in CUDA, in the summation order of stencil.Stencil.
func linearSource(s stencil.Stencil, real domain.Element) string {
	return "template <typename P> __device__ __forceinline__ void linear(P &p) {\n\tp.set(next, " +
		source.Sum(s, weight(real), "p.at(u, 0, 0, 0)", source.Part("p.at(u, %d, %d, %d)")) + ");\n}\n"
}

// weight returns a function that formats the weights of a field's stencil.
func weight(e domain.Element) func(float64) string { return source.Weight(scalar.CName(e), e.Size()) }

// maxParts is the largest number of distinct parts of a layered stencil: the sums that a thread keeps per plane.
const maxParts = 4

// layered reports whether the stencil has three dimensions, more points than the 7-point star and radius 1, each
// of its parts is within a plane, few of them are distinct there, and some are off the center's column in planes
// other than its own. A thread that goes from plane to plane then computes the sums of each plane once, and keeps
// fewer values than the planes.
func layered(s stencil.Stencil) bool {
	if s.Dims != 3 || s.Points() <= 7 || s.AxisRadius(0) != 1 || s.AxisRadius(1) != 1 || s.AxisRadius(2) != 1 {
		return false
	}
	offCenter := false
	for _, g := range s.Groups {
		for _, p := range g.Parts {
			for _, o := range p {
				if o[2] != p[0][2] {
					return false
				}
				offCenter = offCenter || (o[2] != 0 && (o[0] != 0 || o[1] != 0))
			}
		}
	}
	return offCenter && len(partsOf(s)) <= maxParts
}

// partsOf returns the distinct parts of a stencil in their planes, the center first.
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

// findPart returns the index of a part in the result of partsOf, or -1.
func findPart(parts []stencil.Part, p stencil.Part) int {
	return slices.IndexFunc(parts, func(q stencil.Part) bool { return slices.Equal(q, inPlane(p)) })
}

// inPlane returns a part relative to its plane.
func inPlane(p stencil.Part) stencil.Part {
	p = slices.Clone(p)
	for i := range p {
		p[i][2] = 0
	}
	return p
}

// writeLayers writes the sums of a layered stencil's parts in one plane, where at(dx, dy, 0) is the value at an
// offset, and the sum at a point, where in(part, dz) is that of a part in a plane.
func writeLayers(b *strings.Builder, s stencil.Stencil, e domain.Element) {
	parts := partsOf(s)
	var sums []string
	for _, p := range parts {
		sums = append(sums, source.Part("at(%d, %d, %d)")(p))
	}
	c := scalar.CName(e)
	fmt.Fprintf(b, "#define LAYERED\nstruct Sums { %s of[%d]; };\n\n", c, len(parts))
	fmt.Fprintf(b,
		"template <typename At> __device__ __forceinline__ Sums sums_of(const At &at) {\n\treturn {{%s}};\n}\n\n",
		strings.Join(sums, ", "))
	fmt.Fprintf(b, "template <typename In> __device__ __forceinline__ %s sum_of(const In &in) {\n\treturn ", c)
	inPlanes := func(p stencil.Part) string { return fmt.Sprintf("in(%d, %d)", findPart(parts, p), p[0][2]) }
	b.WriteString(source.Sum(s, weight(e), "in(0, 0)", inPlanes))
	b.WriteString(";\n}\n\n")
}

// Linear returns the stencil of the function, if it was created by Linear.
func (p Point) Linear() (stencil.Stencil, bool) {
	if p.linear == nil {
		return stencil.Stencil{}, false
	}
	return *p.linear, true
}
