package kernels

import (
	"fmt"
	"slices"
)

// Number is the type of a value that kernels add and compare: "float32",
// "float64", "int32", "int64", "complex64" or "complex128".
type Number string

// scalars are the numbers that the others are made of, in the order of enum
// Scalar of move.cu.
var scalars = []Number{"float32", "float64", "int32", "int64"}

// scalarNames are their C names.
var scalarNames = []string{"float", "double", "int", "i64"}

// scalar returns the place among the scalars of what n is made of, and how many
// of them it takes: two for a complex number, whose sums are those of its parts.
func (n Number) scalar() (place, count int, err error) {
	count = 1
	switch n {
	case "complex64":
		n, count = "float32", 2
	case "complex128":
		n, count = "float64", 2
	}
	if place = slices.Index(scalars, n); place < 0 {
		return 0, 0, fmt.Errorf("kernels: %q is no number: float32, float64, int32, int64, complex64 or complex128", n)
	}
	return place, count, nil
}

// scalarSizes are the sizes of the scalars in bytes.
var scalarSizes = []int{4, 8, 4, 8}
