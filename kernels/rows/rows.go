// Package rows holds the inner loops of the host sweeps: stencils applied to
// one row of a grid, and the norms of the change that a sweep made to a row.
//
// # Rows
//
// x runs along a row and is the only direction the package knows. The caller
// walks y and z and hands over the slices:
//
//	dst      n points, one for each result; n is len(dst)
//	centre   at least n+2 points: centre[i+1] lies under dst[i], so that
//	         centre[i] and centre[i+2] are its neighbours in -x and +x
//	south    at least n points: south[i] is the neighbour of dst[i] in -y
//	north    the same in +y
//	below    the same in -z
//	above    the same in +z
//
// dst must not overlap any of the others; the inputs may overlap each other.
// Nothing outside dst is written and nothing outside the points named above
// is read, so that neighbouring rows and ghost cells may belong to other
// goroutines. Slices need no alignment. An empty dst is no work at all, and a
// slice that is too short is a panic that names it.
//
// # Sweeping
//
// Walk a grid in the order of memory, y within z, both upwards and unblocked:
// the loops fetch ahead of themselves on that assumption, which only costs
// time where it is wrong.
//
// # One answer
//
// Each function states the order of its operations. Every operation is rounded
// to the row's type and none is fused with the next, on every architecture, so
// that a result depends on its inputs alone and not on the machine; a point
// that a stencil makes does not depend on how its row was cut into pieces
// either. The one thing left open is which NaN stands for a NaN.
//
// On amd64 the loops are assembly for AVX-512 or AVX2, whichever the processor
// has. Everywhere else, under the race detector (which cannot see into
// assembly) and with the build tag purego they are Go.
package rows

import (
	"fmt"
	"unsafe"
)

//go:generate go run ./gen -pkg rows -out rows_amd64.s -stubs rows_amd64.go

// Float is the type of a grid's points.
type Float interface{ float32 | float64 }

// need panics unless a slice, named by the function it was handed to and by
// its parameter, has at least the points that function will read.
func need(function, parameter string, have, want int) {
	if have < want {
		tooShort(function, parameter, have, want)
	}
}

// tooShort stands apart so that need is a comparison wherever it is inlined.
//
//go:noinline
func tooShort(function, parameter string, have, want int) {
	panic(fmt.Sprintf("rows.%s: %s has %d points, needs %d", function, parameter, have, want))
}

// points is the slice of the n points at an address.
//
// Inside the package a row is an address, which takes one register where a
// slice takes three. Six slices travel through memory, at a cost that shows on
// rows of some hundred points.
func points[T Float](first *T, n int) []T { return unsafe.Slice(first, n) }
