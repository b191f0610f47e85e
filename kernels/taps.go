package kernels

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
)

// stencilSource returns stencil.cuh for a stencil: its points and weights, and the form in which
// large boxes are swept. That of cu/ is for editors, and for whoever reads it.
func stencilSource(s stencil.Stencil, r Real) string {
	return "// A stencil as stencilSource in taps.go writes it.\n#pragma once\n\n#include \"device.cuh\"\n#include \"real.cuh\"\n\n// clang-format off\n" +
		tapsSource(s, r) + formOf(s, r).source()
}

// tapsSource returns CUDA C++ for a stencil, with the weights as constants:
//
//	DIMS                     2 or 3
//	POINTS                   how many there are, the centre among them
//	RADIUS_X, ..._Y, ..._Z   its radius along each axis
//	apply(at)                the sum at one point, in the order that stencil.Stencil gives;
//	                         at(dx, dy, dz) is the value at an offset
//	taps_high, taps_low      see tapsLayers
//	Sums, sums_of, sum_of    the sums of parts in one layer, and of those of all layers, if it
//	                         is layered
func tapsSource(s stencil.Stencil, r Real) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#define DIMS %d\n#define POINTS %d\n", s.Dims, s.Points())
	fmt.Fprintf(&b, "enum { RADIUS_X = %d, RADIUS_Y = %d, RADIUS_Z = %d };\n\n", s.AxisRadius(0), s.AxisRadius(1), s.AxisRadius(2))
	b.WriteString("template <typename At> __device__ __forceinline__ REAL apply(const At &at) {\n")
	writeSum(&b, s, r, "at(0, 0, 0)", partSum)
	if layered(s) {
		writeLayers(&b, s, r)
	}
	high, low := tapsLayers(s)
	fmt.Fprintf(&b, "__device__ constexpr int taps_high[][3] = %s;\n", braces(high))
	fmt.Fprintf(&b, "__device__ constexpr int taps_low[][3] = %s;\n\n", braces(low))
	return b.String()
}

// writeSum ends a function with the weighted sum of a centre and of groups' parts.
func writeSum(b *strings.Builder, s stencil.Stencil, r Real, centre string, part func(stencil.Part) string) {
	fmt.Fprintf(b, "\treturn %s * %s", literal(s.Centre, r), centre)
	for _, g := range s.Groups {
		var parts []string
		for _, p := range g.Parts {
			parts = append(parts, part(p))
		}
		fmt.Fprintf(b, "\n\t    + %s * (%s)", literal(g.Weight, r), strings.Join(parts, " + "))
	}
	b.WriteString(";\n}\n\n")
}

// partSum is the sum of a part's points.
func partSum(p stencil.Part) string {
	terms := make([]string, len(p))
	for i, o := range p {
		terms[i] = fmt.Sprintf("at(%d, %d, %d)", o[0], o[1], o[2])
	}
	return "(" + strings.Join(terms, " + ") + ")"
}

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
				parts = append(parts, flat(p))
			}
		}
	}
	return parts
}

// findPart returns the place of a part among those that partsOf returns, -1 if it is none.
func findPart(parts []stencil.Part, p stencil.Part) int {
	return slices.IndexFunc(parts, func(q stencil.Part) bool { return slices.Equal(q, flat(p)) })
}

// flat is a part as it lies in its plane.
func flat(p stencil.Part) stencil.Part {
	p = slices.Clone(p)
	for i := range p {
		p[i][2] = 0
	}
	return p
}

// writeLayers writes the sums of a layered stencil's parts in one plane, where at(dx, dy, 0) is
// the value at an offset, and the sum at a point, where in(part, dz) is that of a part in a plane.
func writeLayers(b *strings.Builder, s stencil.Stencil, r Real) {
	parts := partsOf(s)
	var sum strings.Builder
	writeSum(&sum, s, r, "in(0, 0)", func(p stencil.Part) string { return fmt.Sprintf("in(%d, %d)", findPart(parts, p), p[0][2]) })
	var sums []string
	for _, p := range parts {
		sums = append(sums, partSum(p))
	}
	fmt.Fprintf(b, "#define LAYERED\nstruct Sums { REAL of[%d]; };\n\n", len(parts))
	fmt.Fprintf(b, "template <typename At> __device__ __forceinline__ Sums sums_of(const At &at) {\n\treturn {{%s}};\n}\n\n", strings.Join(sums, ", "))
	fmt.Fprintf(b, "template <typename In> __device__ __forceinline__ REAL sum_of(const In &in) {\n%s", &sum)
}

// literal writes a weight exactly, as it is in the type of the field.
func literal(w float64, r Real) string {
	if r == Float32 {
		return "(REAL)" + strconv.FormatFloat(float64(float32(w)), 'x', -1, 64)
	}
	return "(REAL)" + strconv.FormatFloat(w, 'x', -1, 64)
}

// noLayer is the highest layer of what a stencil does not read; the lowest is its
// negative.
const noLayer = -99

// tapsLayers returns the highest and the lowest layer, along the slowest axis, in which
// the stencil reads points left of the centre, at its x and right of it. There is an
// entry for each row of a layer: those from -RADIUS_Y to RADIUS_Y in three dimensions,
// where layers are planes, and one in two, where they are rows. The layers between are
// counted in.
func tapsLayers(s stencil.Stencil) (high, low [][3]int) {
	side := 0
	if s.Dims == 3 {
		side = s.AxisRadius(1)
	}
	for range 2*side + 1 {
		high, low = append(high, [3]int{noLayer, noLayer, noLayer}), append(low, [3]int{-noLayer, -noLayer, -noLayer})
	}
	note := func(row, part, layer int) {
		high[row][part], low[row][part] = max(high[row][part], layer), min(low[row][part], layer)
	}
	each := func(o domain.Vec) {
		row, layer := side, o[s.Dims-1]
		if s.Dims == 3 {
			row += o[1]
		}
		note(row, 1, layer) // a group of points along x is its own neighbour
		switch {
		case o[0] < 0:
			note(row, 0, layer)
		case o[0] > 0:
			note(row, 2, layer)
		}
	}
	each(domain.Vec{})
	for _, o := range s.Offsets() {
		each(o)
	}
	return high, low
}

// braces writes a table as C does.
func braces(table [][3]int) string {
	return strings.NewReplacer("[", "{", "]", "}", " ", ", ").Replace(fmt.Sprint(table))
}
