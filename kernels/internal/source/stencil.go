package source

import (
	"fmt"
	"strings"

	"github.com/halox/halox/stencil"
)

// StencilHeader is what kernels include that are compiled for one linear stencil.
const StencilHeader = "stencil.cuh"

// Stencil returns stencil.cuh for a stencil, CUDA C++ with the weights as constants. That of cu/ is
// for editors, and for whoever reads it.
//
//	DIMS        2 or 3
//	apply(at)   the sum at one point, in the order that stencil.Stencil gives; at(dx, dy, dz) is the
//	            value at an offset
func Stencil(s stencil.Stencil, realBytes int) string {
	var b strings.Builder
	b.WriteString("// A stencil as Stencil in kernels/internal/source writes it.\n#pragma once\n\n#include \"device.cuh\"\n#include \"real.cuh\"\n\n// clang-format off\n")
	fmt.Fprintf(&b, "#define DIMS %d\n\n", s.Dims)
	b.WriteString("template <typename At> __device__ __forceinline__ REAL apply(const At &at) {\n\treturn ")
	b.WriteString(Sum(s, Weight("REAL", realBytes), "at(0, 0, 0)", Part("at(%d, %d, %d)")))
	b.WriteString(";\n}\n\n")
	return b.String()
}
