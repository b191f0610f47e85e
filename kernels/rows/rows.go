// Package rows holds the inner loops of the host sweeps: stencils applied to
// rows of a grid, and the norms of the change that a sweep made to a row.
//
// # Bands
//
// x runs along a row. A stencil is applied to a [Band], rows that lie at equal
// distances in memory, say along y. The caller walks z and hands over slices
// that begin with the first row:
//
//	dst      dst[i] is point i of the first row, and dst[i+Pitch] that of the
//	         second
//	centre   centre[i+1] lies under dst[i], so that centre[i] and centre[i+2]
//	         are its neighbours in -x and +x
//	south    south[i] is the neighbour of dst[i] in -y
//	north    the same in +y
//	below    the same in -z
//	above    the same in +z
//
// dst must not overlap any of the others; the inputs may overlap each other.
// Nothing but the points of the rows is written and nothing but the points
// named above is read, so that what lies between the rows, neighbouring rows
// and ghost cells may belong to other goroutines. Slices need no alignment. A
// band without points is no work at all, and a slice that ends before the last
// row does is a panic that names it.
//
// # Sweeping
//
// Walk a grid in the order of memory, y within z, both upwards and unblocked:
// the loops fetch ahead of themselves on that assumption, which only costs
// time where it is wrong. Nothing interrupts a loop, not even the collector of
// garbage: do some ten thousand points at a time, or all others wait.
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

import "fmt"

//go:generate go run ./gen -pkg rows -out rows_amd64.s -stubs rows_amd64.go

// Band is Count rows of Points each. The first points of two rows that follow
// each other are Pitch elements apart, which is not less than Points.
type Band struct{ Points, Count, Pitch int }

// span returns the elements from the first point of a band to its last, 0 if it
// has none. It panics, in the name of the function, where rows overlap.
func (b Band) span(function string) int {
	if b.Points <= 0 || b.Count <= 0 {
		return 0
	}
	if b.Count > 1 && b.Pitch < b.Points {
		panic(fmt.Sprintf("rows.%s: rows of %d points at a pitch of %d", function, b.Points, b.Pitch))
	}
	return (b.Count-1)*b.Pitch + b.Points
}

// Float is the type of a grid's points.
type Float interface{ float32 | float64 }

// need panics unless a slice, named by the function it was handed to and by
// its parameter, reaches at least as far as that function will read or write.
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
