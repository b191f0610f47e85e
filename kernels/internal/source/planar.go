package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
)

// PlanarHeader is what kernels include that make each sum of points of a plane once.
const PlanarHeader = "planar.cuh"

// Planar returns planar.cuh for a stencil in three dimensions that reaches one plane, and whose parts lie in one plane each; ok is false for
// others. That of cu/ is for editors, and for whoever reads it.
//
//	SUMS                  of points of a plane that the stencil adds up
//	plane_sums(at, sum)   all of them around a point; at(dx, dy) is the value at an offset
//	combine(sum)          the sum at one point, in the order that stencil.Stencil gives; sum(which, dz) is one of the plane at an offset,
//	                      or the value there where it is POINT
func Planar(s stencil.Stencil, realBytes int) (text string, ok bool) {
	if s.Dims != 3 || s.AxisRadius(2) != 1 {
		return "", false
	}
	var sums []stencil.Part
	part := func(p stencil.Part) string {
		z := p[0][2]
		flat := make(stencil.Part, len(p))
		for i, o := range p {
			if o[2] != z {
				ok = false
			}
			flat[i] = domain.Vec{o[0], o[1], 0}
		}
		if slices.Equal(flat, stencil.Part{{}}) {
			return fmt.Sprintf("sum(POINT, %d)", z)
		}
		which := slices.IndexFunc(sums, func(q stencil.Part) bool { return slices.Equal(flat, q) })
		if which < 0 {
			which, sums = len(sums), append(sums, flat)
		}
		return fmt.Sprintf("sum(%d, %d)", which, z)
	}
	ok = true
	total := Sum(s, Weight("REAL", realBytes), "sum(POINT, 0)", part)
	if !ok || len(sums) == 0 {
		return "", false
	}
	var b strings.Builder
	b.WriteString("// The sums of a stencil's points that lie in one plane as Planar in kernels/internal/source writes them.\n#pragma once\n\n#include \"device.cuh\"\n#include \"real.cuh\"\n\n// clang-format off\n")
	fmt.Fprintf(&b, "enum { SUMS = %d, POINT = -1 };\n\n", len(sums))
	b.WriteString("template <typename At> __device__ __forceinline__ void plane_sums(const At &at, REAL (&sum)[SUMS]) {\n")
	for i, p := range sums {
		terms := make([]string, len(p))
		for k, o := range p {
			terms[k] = fmt.Sprintf("at(%d, %d)", o[0], o[1])
		}
		fmt.Fprintf(&b, "\tsum[%d] = %s;\n", i, strings.Join(terms, " + "))
	}
	b.WriteString("}\n\ntemplate <typename Sum> __device__ __forceinline__ REAL combine(const Sum &sum) {\n\treturn " + total + ";\n}\n")
	return b.String(), true
}
