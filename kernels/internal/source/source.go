// Package source writes what the compiler is given beside the files of kernels/cu: its options, and
// stencils as CUDA C++.
package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
)

// Architecture returns the number of a GPU architecture, as 90 of "sm_90".
func Architecture(arch string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	if err != nil {
		return 0, fmt.Errorf("architecture %q", arch)
	}
	return n, nil
}

// Options returns those of NVRTC for a target, as "sm_90", and definitions NAME=VALUE. Products and
// sums are not contracted, so that the Go form of a kernel gives the same bits.
func Options(target string, defines ...string) []string {
	options := []string{
		"--gpu-architecture=" + target, "--std=c++17", "--fmad=false", "-lineinfo", "-default-device",
	}
	for _, d := range defines {
		options = append(options, "--define-macro="+d)
	}
	return options
}

// preamble begins generated headers, after a line that says what they are.
const preamble = `#pragma once

#include "device.cuh"
#include "real.cuh"

// clang-format off
`

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
	b.WriteString("// A stencil as Stencil in kernels/internal/source writes it.\n" + preamble)
	fmt.Fprintf(&b, "#define DIMS %d\n\n", s.Dims)
	b.WriteString("template <typename At> __device__ __forceinline__ REAL apply(const At &at) {\n\treturn ")
	b.WriteString(Sum(s, Weight("REAL", realBytes), "at(0, 0, 0)", Part("at(%d, %d, %d)")))
	b.WriteString(";\n}\n\n")
	return b.String()
}

// Sum is the weighted sum of a centre and of groups' parts, in the order that stencil.Stencil
// gives. The functions write weights and parts.
func Sum(s stencil.Stencil, weight func(float64) string, centre string, part func(stencil.Part) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s * %s", weight(s.Centre), centre)
	for _, g := range s.Groups {
		var parts []string
		for _, p := range g.Parts {
			parts = append(parts, part(p))
		}
		fmt.Fprintf(&b, "\n\t    + %s * (%s)", weight(g.Weight), strings.Join(parts, " + "))
	}
	return b.String()
}

// Part returns what writes the sum of a part's points, each by a format of its offset.
func Part(format string) func(stencil.Part) string {
	return func(p stencil.Part) string {
		terms := make([]string, len(p))
		for i, o := range p {
			terms[i] = fmt.Sprintf(format, o[0], o[1], o[2])
		}
		return "(" + strings.Join(terms, " + ") + ")"
	}
}

// Weight returns what writes a weight exactly, as it is in a type of so many bytes, 4 or 8, that
// the source calls name.
func Weight(name string, bytes int) func(float64) string {
	return func(w float64) string {
		if bytes == 4 {
			w = float64(float32(w))
		}
		return fmt.Sprintf("(%s)%s", name, strconv.FormatFloat(w, 'x', -1, 64))
	}
}

// PlanarHeader is what kernels include that make each sum of points of a plane once.
const PlanarHeader = "planar.cuh"

// Planar returns planar.cuh for a stencil in three dimensions that reaches one plane, and whose parts lie in one plane
// each; ok is false for others. That of cu/ is for editors, and for whoever reads it.
//
//	SUMS                  of points of a plane that the stencil adds up
//	plane_sums(at, sum)   all of them around a point; at(dx, dy) is the value at an offset
//	combine(sum)          the sum at one point, in the order that stencil.Stencil gives; sum(which, dz) is one of the
//	                      plane at an offset, or the value there where it is POINT
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
	b.WriteString("// The sums of points in one plane as Planar in kernels/internal/source writes them.\n" + preamble)
	fmt.Fprintf(&b, "enum { SUMS = %d, POINT = -1 };\n\n", len(sums))
	b.WriteString(
		"template <typename At> __device__ __forceinline__ void plane_sums(const At &at, REAL (&sum)[SUMS]) {\n")
	for i, p := range sums {
		terms := make([]string, len(p))
		for k, o := range p {
			terms[k] = fmt.Sprintf("at(%d, %d)", o[0], o[1])
		}
		fmt.Fprintf(&b, "\tsum[%d] = %s;\n", i, strings.Join(terms, " + "))
	}
	b.WriteString("}\n\ntemplate <typename Sum> __device__ __forceinline__ REAL combine(const Sum &sum) {\n\treturn " +
		total + ";\n}\n")
	return b.String(), true
}
