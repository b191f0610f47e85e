package rows

import (
	"fmt"
	"slices"

	"github.com/halox/halox/kernels/sums"
)

// Star5 applies the isotropic 5-point stencil of two dimensions to a band:
//
//	dst = alpha*c + beta*(((xp + yp) + xm) + ym)
//
// where c, xm and xp are the point and its neighbors in center, ym is south
// and yp is north.
func Star5[T Float](dst, center, south, north []T, b Band, alpha, beta T) {
	if begin("Star5", b, center, dst, south, north) {
		star5(assembly, dst, center, south, north, b, alpha, beta)
	}
}

// Star7 applies the isotropic 7-point stencil of three dimensions to a band:
//
//	dst = alpha*c + beta*(((((xp + yp) + zp) + xm) + ym) + zm)
//
// where c, xm and xp are the point and its neighbors in center, ym is south,
// yp is north, zm is below and zp is above.
func Star7[T Float](dst, center, south, north, below, above []T, b Band, alpha, beta T) {
	if begin("Star7", b, center, dst, south, north, below, above) {
		star7(assembly, dst, center, south, north, below, above, b, alpha, beta)
	}
}

// Star5Axes applies the 5-point stencil with a weight per axis, for unequal spacings, to a band:
//
//	dst = (alpha*c + bx*(xp + xm)) + by*(yp + ym)
//
// with the names of [Star5].
func Star5Axes[T Float](dst, center, south, north []T, b Band, alpha, bx, by T) {
	if begin("Star5Axes", b, center, dst, south, north) {
		star5Axes(assembly, dst, center, south, north, b, alpha, bx, by)
	}
}

// Star7Axes applies the 7-point stencil with a weight per axis, for unequal spacings, to a band:
//
//	dst = ((alpha*c + bx*(xp + xm)) + by*(yp + ym)) + bz*(zp + zm)
//
// with the names of [Star7].
func Star7Axes[T Float](dst, center, south, north, below, above []T, b Band, alpha, bx, by, bz T) {
	if begin("Star7Axes", b, center, dst, south, north, below, above) {
		star7Axes(assembly, dst, center, south, north, below, above, b, alpha, bx, by, bz)
	}
}

// begin panics if a row of a star is too short, and reports whether there are any points. The others are dst,
// south, north, below and above.
func begin[T Float](function string, b Band, center []T, others ...[]T) bool {
	n := b.span(function)
	if n == 0 {
		return false
	}
	need(function, "center", len(center), n+2)
	for i, row := range others {
		need(function, [...]string{"dst", "south", "north", "below", "above"}[i], len(row), n)
	}
	return true
}

// Sum is a stencil of any shape: the value of a point is
//
//	Center*c + Groups[0].Weight*(sum of its points) + Groups[1].Weight*(...) + ...
//
// from left to right. The sum of a group is the sum of its parts in order, and the sum of a part that of its
// points in order.
type Sum[T Float] struct {
	Center T          // weight of the center
	Groups []Group[T] // weighted sums of other points
}

// Group is a set of points with one weight, in parts: offsets from the center in memory, in elements.
type Group[T Float] struct {
	Weight T       // factor
	Parts  [][]int // offsets
}

// Apply applies a stencil of any shape to a band. The center of dst[0] is src[first]; src must contain all points
// that the stencil reads.
func Apply[T Float](dst, src []T, first int, b Band, s Sum[T]) {
	n := b.span("Apply")
	if n == 0 {
		return
	}
	need("Apply", "dst", len(dst), n)
	low, high := 0, 0
	for _, g := range s.Groups {
		if len(g.Parts) == 0 {
			panic(fmt.Sprintf("rows.Apply: group of weight %v: must have points", g.Weight))
		}
		for _, part := range g.Parts {
			if len(part) == 0 {
				panic(fmt.Sprintf("rows.Apply: part of weight %v: must have points", g.Weight))
			}
			low, high = min(low, slices.Min(part)), max(high, slices.Max(part))
		}
	}
	if first+low < 0 {
		panic(fmt.Sprintf("rows.Apply: src: must begin %d points earlier", -first-low))
	}
	need("Apply", "src", len(src), first+high+n)
	for row := range b.Count {
		o := row * b.Pitch
		applyRow(dst[o:o+b.Points], src, first+o, s)
	}
}

// piece is the number of points of a row summed at a time, so that they stay in the first-level cache.
const piece = 256

// applyRow sums one row, piece by piece and point of the stencil by point.
func applyRow[T Float](dst, src []T, first int, s Sum[T]) {
	var room, partRoom [piece]T
	for len(dst) > 0 {
		out := dst[:min(piece, len(dst))]
		for i, c := range src[first : first+len(out)] {
			out[i] = T(s.Center * c)
		}
		for _, g := range s.Groups {
			sum := room[:len(out)]
			sumPart(sum, src, first, g.Parts[0])
			for _, part := range g.Parts[1:] {
				if len(part) == 1 {
					addRow(sum, src[first+part[0]:])
					continue
				}
				one := partRoom[:len(out)]
				sumPart(one, src, first, part)
				addRow(sum, one)
			}
			addProduct(out, sum, g.Weight)
		}
		dst, first = dst[len(out):], first+len(out)
	}
}

// sumPart sets sum to the sum of a part's points.
func sumPart[T Float](sum, src []T, first int, part []int) {
	copy(sum, src[first+part[0]:])
	for _, o := range part[1:] {
		addRow(sum, src[first+o:])
	}
}

func addRow[T Float](sum, v []T) {
	v = v[:len(sum)]
	for i := range sum {
		sum[i] += v[i]
	}
}

// addProduct adds weight*sum; the conversion prevents fusing.
func addProduct[T Float](out, sum []T, weight T) {
	sum = sum[:len(out)]
	for i := range out {
		out[i] += T(weight * sum[i])
	}
}

// AddRow joins the norms of one row that a sweep changed from old to new to n, with sums of a mode. old must have
// at least len(new) points.
//
// Points are converted to float64 first.
//
// With fast sums, point i goes to lane i%8. At the end of the row, the lanes are folded by halves, 0..3 with 4..7,
// then 0..1 with 2..3, then 0 with 1, and the result is joined as in [Norms.Add]. The sums of a row are therefore
// the same on every machine, but depend on how a row is divided into pieces.
func AddRow[T Float](n *Norms, new, old []T, mode sums.Mode) {
	if len(new) == 0 {
		return
	}
	need("AddRow", "old", len(old), len(new))
	old = old[:len(new)]
	if mode == sums.Fast {
		var l lanes
		accumulate(assembly, &l, new, old)
		n.Add(l.fold())
		return
	}
	for len(new) > 0 {
		some := min(len(new), chunk)
		addChunk(n, new[:some], old[:some])
		new, old = new[some:], old[some:]
	}
}

// chunk is the number of points of a row processed at a time.
const chunk = 512

// addChunk joins the norms of a few points.
func addChunk[T Float](n *Norms, new, old []T) {
	var l lanes
	accumulate(assembly, &l, new, old)
	most := l.fold()
	n.MaxChange, n.Max = max(n.MaxChange, most.MaxChange), max(n.Max, most.Max)
	var room [2][chunk]float64
	changes, values := room[0][:len(new)], room[1][:len(new)]
	old = old[:len(new)]
	for i, v := range new {
		value := float64(v)
		change := value - float64(old[i])
		changes[i], values[i] = float64(change*change), float64(value*value)
	}
	n.SumChange2.AddUpTo(changes, float64(most.MaxChange*most.MaxChange))
	n.Sum2.AddUpTo(values, float64(most.Max*most.Max))
}
