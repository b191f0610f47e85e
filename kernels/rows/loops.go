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
// On amd64 processors with AVX2 the loops are assembly. Everywhere else, under the race detector (which cannot see
// into assembly) and with the build tag purego they are Go.
package rows

import (
	"fmt"
	"math"

	"github.com/halox/halox/kernels/sums"
)

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

// The loops in Go: what runs where there is no assembly, and what the assembly
// is tested against.
//
// A product that is added to something stands in a conversion, T(a*b). It looks
// idle, but without it the compiler may fuse the two on arm64 and others, or
// on amd64 with GOAMD64=v3, and skip a rounding.

func star5Loop[T Float](dst, centre, south, north []T, b Band, alpha, beta T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		// Slices of known length let the compiler drop the checks in the loop.
		out, xm, c, xp := dst[o:o+n], centre[o:o+n], centre[o+1:o+1+n], centre[o+2:o+2+n]
		south, north := south[o:o+n], north[o:o+n]
		for i := range out {
			sum := xp[i] + north[i] + xm[i] + south[i]
			out[i] = T(alpha*c[i]) + T(beta*sum)
		}
	}
}

func star7Loop[T Float](dst, centre, south, north, below, above []T, b Band, alpha, beta T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], centre[o:o+n], centre[o+1:o+1+n], centre[o+2:o+2+n]
		south, north, below, above := south[o:o+n], north[o:o+n], below[o:o+n], above[o:o+n]
		for i := range out {
			sum := xp[i] + north[i] + above[i] + xm[i] + south[i] + below[i]
			out[i] = T(alpha*c[i]) + T(beta*sum)
		}
	}
}

func star5AxesLoop[T Float](dst, centre, south, north []T, b Band, alpha, bx, by T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], centre[o:o+n], centre[o+1:o+1+n], centre[o+2:o+2+n]
		south, north := south[o:o+n], north[o:o+n]
		for i := range out {
			out[i] = T(alpha*c[i]) + T(bx*(xp[i]+xm[i])) + T(by*(north[i]+south[i]))
		}
	}
}

func star7AxesLoop[T Float](dst, centre, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], centre[o:o+n], centre[o+1:o+1+n], centre[o+2:o+2+n]
		south, north, below, above := south[o:o+n], north[o:o+n], below[o:o+n], above[o:o+n]
		for i := range out {
			out[i] = T(alpha*c[i]) + T(bx*(xp[i]+xm[i])) + T(by*(north[i]+south[i])) + T(bz*(above[i]+below[i]))
		}
	}
}

// width is the number of lanes: two AVX2 registers of float64.
const width = 8

// lanes are the norms of every eighth point. The assembly knows the layout.
//
// Here a maximum passes over NaN, as the comparison and the vector instruction
// do; fold puts it back.
type lanes struct {
	maxChange, sumChange2, max, sum2 [width]float64
}

// add puts the points of a row, or of a part of it that starts at a multiple of
// width, into the lanes. The conversions of products keep them from being
// fused, as in the stencils' loops.
func add[T Float](l *lanes, new, old []T) {
	old = old[:len(new)]
	for i, v := range new {
		lane := i % width
		value := float64(v)
		change := value - float64(old[i])
		l.sumChange2[lane] += float64(change * change)
		l.sum2[lane] += float64(value * value)
		if d := math.Abs(change); d > l.maxChange[lane] {
			l.maxChange[lane] = d
		}
		if d := math.Abs(value); d > l.max[lane] {
			l.max[lane] = d
		}
	}
}

// fold joins the lanes, halving their number until one is left.
func (l *lanes) fold() Norms {
	for half := width / 2; half > 0; half /= 2 {
		for i := range half {
			l.maxChange[i] = max(l.maxChange[i], l.maxChange[i+half])
			l.sumChange2[i] += l.sumChange2[i+half]
			l.max[i] = max(l.max[i], l.max[i+half])
			l.sum2[i] += l.sum2[i+half]
		}
	}
	return Norms{
		MaxChange:  orNaN(l.maxChange[0], l.sumChange2[0]),
		SumChange2: sums.Plain(l.sumChange2[0]),
		Max:        orNaN(l.max[0], l.sum2[0]),
		Sum2:       sums.Plain(l.sum2[0]),
	}
}

// orNaN returns the maximum, or NaN if the sum of squares over the same points
// is. A sum of squares is NaN only if a point was: its terms have one sign.
func orNaN(maximum, sum float64) float64 {
	if math.IsNaN(sum) {
		return sum
	}
	return maximum
}

// Norms gathers what a convergence check asks about a sweep, row by row. The
// zero value is the norms of no rows. All of it is float64, whatever the type
// of the rows. Kernels write it as struct NormSum of norms.cuh.
//
// A NaN does not vanish: if any new point is NaN, Max and Sum2 are NaN, and if
// any change is NaN (also that from an infinity to the same infinity),
// MaxChange and SumChange2 are.
type Norms struct {
	MaxChange  float64  // the largest |new - old|
	SumChange2 sums.Sum // the sum of (new - old)^2
	Max        float64  // the largest |new|
	Sum2       sums.Sum // the sum of new^2
}

// Add joins to n the norms of other rows, say those another goroutine swept.
func (n *Norms) Add(other Norms) {
	n.MaxChange = max(n.MaxChange, other.MaxChange)
	n.SumChange2.Join(other.SumChange2)
	n.Max = max(n.Max, other.Max)
	n.Sum2.Join(other.Sum2)
}
