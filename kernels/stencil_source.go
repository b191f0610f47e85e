package kernels

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/halox/halox/stencil"
)

// stencilSource returns stencil.cuh for a stencil, CUDA C++ with the weights as constants. That of cu/ is
// for editors, and for whoever reads it.
//
//	DIMS        2 or 3
//	apply(at)   the sum at one point, in the order that stencil.Stencil gives; at(dx, dy, dz) is the
//	            value at an offset
func stencilSource(s stencil.Stencil, r Real) string {
	var b strings.Builder
	b.WriteString("// A stencil as stencilSource in stencil_source.go writes it.\n#pragma once\n\n#include \"device.cuh\"\n#include \"real.cuh\"\n\n// clang-format off\n")
	fmt.Fprintf(&b, "#define DIMS %d\n\n", s.Dims)
	b.WriteString("template <typename At> __device__ __forceinline__ REAL apply(const At &at) {\n")
	writeSum(&b, s, r, "at(0, 0, 0)", partSum)
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

// literal writes a weight exactly, as it is in the type of the field.
func literal(w float64, r Real) string {
	if r == Float32 {
		return "(REAL)" + strconv.FormatFloat(float64(float32(w)), 'x', -1, 64)
	}
	return "(REAL)" + strconv.FormatFloat(w, 'x', -1, 64)
}
