// Package scalar says which numbers kernels add and compare, and what CUDA C++ calls them.
package scalar

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
)

// All are the scalars that kernels add and compare, in the order of enum Scalar of move.cu.
var All = []domain.Element{domain.Float32, domain.Float64, domain.Int32, domain.Int64}

// names are the scalars in CUDA C++.
var names = map[domain.Element]string{
	domain.Float32: "float", domain.Float64: "double", domain.Int8: "signed char", domain.Uint8: "unsigned char",
	domain.Int16: "short", domain.Uint16: "unsigned short", domain.Int32: "int", domain.Uint32: "unsigned",
	domain.Int64: "long long", domain.Uint64: "unsigned long long",
}

// CName returns the name of a real or an integer in CUDA C++.
func CName(e domain.Element) string { return names[e] }

// Place returns the place of a scalar among all, -1 if it is not one of them.
func Place(e domain.Element) int { return slices.Index(All, e) }

// Check returns an error unless kernels can add and compare the elements, or both parts of a complex one.
func Check(e domain.Element) error {
	if Place(e.Scalar()) < 0 {
		return fmt.Errorf("element: must be float32, float64, int32, int64, complex64 or complex128, got %q", e)
	}
	return nil
}

// Real is the definition of REAL in the programs for a type of fields.
func Real(e domain.Element) string { return "REAL=" + CName(e) }
