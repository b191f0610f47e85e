package step

import (
	"fmt"
	"strings"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/stencil"
)

// stencilHeader is what tiles.cu includes.
const stencilHeader = "stencil.cuh"

// stencilSource returns stencil.cuh for a stencil, CUDA C++ with the weights as constants. That of cu/ is
// for editors, and for whoever reads it.
//
//	DIMS        2 or 3
//	apply(at)   the sum at one point, in the order that stencil.Stencil gives; at(dx, dy, dz) is the
//	            value at an offset
func stencilSource(s stencil.Stencil, r kernels.Real) string {
	var b strings.Builder
	b.WriteString("// A stencil as stencilSource in stencil_source.go writes it.\n#pragma once\n\n#include \"device.cuh\"\n#include \"real.cuh\"\n\n// clang-format off\n")
	fmt.Fprintf(&b, "#define DIMS %d\n\n", s.Dims)
	b.WriteString("template <typename At> __device__ __forceinline__ REAL apply(const At &at) {\n\treturn ")
	b.WriteString(source.Sum(s, source.Weight("REAL", r.Size()), "at(0, 0, 0)", source.Part("at(%d, %d, %d)")))
	b.WriteString(";\n}\n\n")
	return b.String()
}
