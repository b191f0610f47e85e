// Package rows contains the inner loops of CPU sweeps: stencils applied to rows of a grid, and norms of the change
// of a row.
//
// # Bands
//
// x runs along a row. A stencil is applied to a [Band], rows at equal distances in memory, such as along y. The
// caller loops over z and passes slices that begin with the first row:
//
//	dst      dst[i] is point i of the first row, and dst[i+Pitch] that of the
//	         second
//	center   center[i+1] is the point dst[i], so that center[i] and center[i+2]
//	         are its neighbors in -x and +x
//	south    south[i] is the neighbor of dst[i] in -y
//	north    the same in +y
//	below    the same in -z
//	above    the same in +z
//
// dst must not overlap the other slices; the inputs may overlap each other. Only the points of the rows are
// written, and only the points named above are read, so that gaps between the rows, adjacent rows and ghosts may
// be used by other goroutines. Slices need no alignment. A band without points is valid. A slice that is too short
// causes a panic that names it.
//
// # Sweeping
//
// Sweep a grid in memory order, y within z, both ascending and without blocking: the loops prefetch accordingly,
// and any other order is slower. A loop cannot be preempted, not even by the garbage collector: process about ten
// thousand points per call.
//
// # One answer
//
// Each function documents the order of its operations. Every operation is rounded to the type of the row, and none
// is fused with another, on every architecture. So a result depends only on its inputs, not on the machine, nor on
// how its row was divided into pieces. The only unspecified detail is the payload of a NaN.
//
// On amd64 processors with AVX2 the loops are assembly. Otherwise, and with the race detector (which does not support
// assembly) or the build tag purego, they are Go.
package rows

import (
	"fmt"
	"math"

	"github.com/halox/halox/kernels/sums"
)

//go:generate go run ./gen -pkg rows -out rows_amd64.s -stubs rows_amd64.go

// Band is Count rows of Points points each, at a distance of Pitch elements, which is at least Points.
type Band struct {
	Points int // points per row
	Count  int // rows
	Pitch  int // distance of rows, in elements, at least Points
}

// span returns the number of elements from the first point of a band to its last, 0 if it has none. It panics in
// the name of the function if rows overlap.
func (b Band) span(function string) int {
	if b.Points <= 0 || b.Count <= 0 {
		return 0
	}
	if b.Count > 1 && b.Pitch < b.Points {
		panic(fmt.Sprintf("rows.%s: pitch must be at least the %d points of a row, got %d", function, b.Points,
			b.Pitch))
	}
	return (b.Count-1)*b.Pitch + b.Points
}

// Float is the type of the points of a grid.
type Float interface{ float32 | float64 }

// need panics unless a slice, named by the function and its parameter, has the length that the function needs.
func need(function, parameter string, have, want int) {
	if have < want {
		tooShort(function, parameter, have, want)
	}
}

// tooShort is separate so that need is inlined as a comparison.
//
//go:noinline
func tooShort(function, parameter string, have, want int) {
	panic(fmt.Sprintf("rows.%s: %s: must have at least %d points, got %d", function, parameter, want, have))
}

// The loops in Go are used without assembly, and as a reference for testing the assembly.
//
// A product that is added to something is in a conversion, T(a*b). Without it the compiler may fuse the operations
// on arm64 and others, or on amd64 with GOAMD64=v3, and skip a rounding.

func star5Loop[T Float](dst, center, south, north []T, b Band, alpha, beta T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		// slices of known length remove the bounds checks in the loop
		out, xm, c, xp := dst[o:o+n], center[o:o+n], center[o+1:o+1+n], center[o+2:o+2+n]
		south, north := south[o:o+n], north[o:o+n]
		for i := range out {
			sum := xp[i] + north[i] + xm[i] + south[i]
			out[i] = T(alpha*c[i]) + T(beta*sum)
		}
	}
}

func star7Loop[T Float](dst, center, south, north, below, above []T, b Band, alpha, beta T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], center[o:o+n], center[o+1:o+1+n], center[o+2:o+2+n]
		south, north, below, above := south[o:o+n], north[o:o+n], below[o:o+n], above[o:o+n]
		for i := range out {
			sum := xp[i] + north[i] + above[i] + xm[i] + south[i] + below[i]
			out[i] = T(alpha*c[i]) + T(beta*sum)
		}
	}
}

func star5AxesLoop[T Float](dst, center, south, north []T, b Band, alpha, bx, by T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], center[o:o+n], center[o+1:o+1+n], center[o+2:o+2+n]
		south, north := south[o:o+n], north[o:o+n]
		for i := range out {
			out[i] = T(alpha*c[i]) + T(bx*(xp[i]+xm[i])) + T(by*(north[i]+south[i]))
		}
	}
}

func star7AxesLoop[T Float](dst, center, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	n := b.Points
	for row := range b.Count {
		o := row * b.Pitch
		out, xm, c, xp := dst[o:o+n], center[o:o+n], center[o+1:o+1+n], center[o+2:o+2+n]
		south, north, below, above := south[o:o+n], north[o:o+n], below[o:o+n], above[o:o+n]
		for i := range out {
			out[i] = T(alpha*c[i]) + T(bx*(xp[i]+xm[i])) + T(by*(north[i]+south[i])) + T(bz*(above[i]+below[i]))
		}
	}
}

// width is the number of lanes: two AVX2 registers of float64.
const width = 8

// lanes are the norms of every eighth point. The assembly depends on the layout.
//
// Here a maximum ignores NaN, like the comparison and the vector instruction; fold restores it.
type lanes struct {
	maxChange, sumChange2, max, sum2 [width]float64
}

// add adds the points of a row, or of a part of it that starts at a multiple of width, to the lanes. The
// conversions of products prevent fusing, as in the loops of the stencils.
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

// orNaN returns the maximum, or NaN if the sum of squares over the same points is NaN. A sum of squares is NaN
// only if a point was: its terms have one sign.
func orNaN(maximum, sum float64) float64 {
	if math.IsNaN(sum) {
		return sum
	}
	return maximum
}

// Norms accumulates the norms for a convergence check, row by row. The zero value is the norms of no rows. All
// fields are float64, for any type of the rows. Kernels write it as struct NormSum of norms.cuh.
//
// If any new point is NaN, so are Sum2 and SumChange2. The maxima are then NaN on CPU devices, and on GPUs those of the
// other points: Largest returns NaN for both.
type Norms struct {
	MaxChange  float64  // the largest |new - old|
	SumChange2 sums.Sum // the sum of (new - old)^2
	Max        float64  // the largest |new|
	Sum2       sums.Sum // the sum of new^2
}

// Largest returns MaxChange and Max; NaN if a point that they are of is.
func (n *Norms) Largest() (change, value float64) {
	change, value = n.MaxChange, n.Max
	if sum := n.SumChange2.Value(); math.IsNaN(sum) {
		change = sum
	}
	if sum := n.Sum2.Value(); math.IsNaN(sum) {
		value = sum
	}
	return change, value
}

// Add joins the norms of other rows to n.
func (n *Norms) Add(other Norms) {
	n.MaxChange = max(n.MaxChange, other.MaxChange)
	n.SumChange2.Join(other.SumChange2)
	n.Max = max(n.Max, other.Max)
	n.Sum2.Join(other.Sum2)
}
