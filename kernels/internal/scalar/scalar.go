// Package scalar says what the numbers are made of that kernels add and compare, and how CUDA C++
// calls it.
package scalar

import (
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
)

// Scalar is a number that is not made of others.
type Scalar struct {
	Number kernels.Number
	Name   string // in C++
	Size   int    // bytes
}

// All are the scalars, in the order of enum Scalar of move.cu.
var All = []Scalar{{"float32", "float", 4}, {"float64", "double", 8}, {"int32", "int", 4}, {"int64", "i64", 8}}

// Place returns the place of a scalar among all, -1 if the number is none.
func Place(n kernels.Number) int {
	return slices.IndexFunc(All, func(s Scalar) bool { return s.Number == n })
}

// Of returns the place among the scalars of what n is made of, and how many
// of them it takes: two for a complex number, whose sums are those of its parts.
func Of(n kernels.Number) (place, count int, err error) {
	count = 1
	switch n {
	case "complex64":
		n, count = "float32", 2
	case "complex128":
		n, count = "float64", 2
	}
	if place = Place(n); place < 0 {
		return 0, 0, fmt.Errorf("kernels: %q is no number: float32, float64, int32, int64, complex64 or complex128", n)
	}
	return place, count, nil
}

// Real is the definition of REAL in the programs for a type of fields.
func Real(r kernels.Real) string { return "REAL=" + All[Place(kernels.Number(r))].Name }
