package rows

import (
	"fmt"
	"slices"
)

// Sum is a stencil of any shape: the value of a point is
//
//	Centre*c + Groups[0].Weight*(sum of its points) + Groups[1].Weight*(...) + ...
//
// from left to right. The sum of a group is that of its parts, in their order from the first,
// and the sum of a part that of its points, in theirs.
type Sum[T Float] struct {
	Centre T
	Groups []Group[T]
}

// Group is points with one weight, in parts: each lies so many elements after the centre in
// memory.
type Group[T Float] struct {
	Weight T
	Parts  [][]int
}

// Apply applies a stencil of any shape to a band. The point under dst[0] is src[first];
// all that the stencil reads must lie in src.
func Apply[T Float](dst, src []T, first int, b Band, s Sum[T]) {
	n := b.span("Apply")
	if n == 0 {
		return
	}
	need("Apply", "dst", len(dst), n)
	low, high := 0, 0
	for _, g := range s.Groups {
		if len(g.Parts) == 0 {
			panic(fmt.Sprintf("rows.Apply: a group of weight %v without points", g.Weight))
		}
		for _, part := range g.Parts {
			if len(part) == 0 {
				panic(fmt.Sprintf("rows.Apply: a part of weight %v without points", g.Weight))
			}
			low, high = min(low, slices.Min(part)), max(high, slices.Max(part))
		}
	}
	if first+low < 0 {
		panic(fmt.Sprintf("rows.Apply: src begins %d points too late", -first-low))
	}
	need("Apply", "src", len(src), first+high+n)
	for row := range b.Count {
		o := row * b.Pitch
		applyRow(dst[o:o+b.Points], src, first+o, s)
	}
}

// piece is how many points of a row are summed at a time: what is read and added to them
// then stays in the nearest cache.
const piece = 256

// applyRow sums one row, piece by piece and point of the stencil by point.
func applyRow[T Float](dst, src []T, first int, s Sum[T]) {
	var room, partRoom [piece]T
	for len(dst) > 0 {
		out := dst[:min(piece, len(dst))]
		for i, c := range src[first : first+len(out)] {
			out[i] = T(s.Centre * c)
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

// sumPart puts the sum of a part's points there.
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

// addProduct adds weight*sum; the conversion keeps the two from being fused.
func addProduct[T Float](out, sum []T, weight T) {
	sum = sum[:len(out)]
	for i := range out {
		out[i] += T(weight * sum[i])
	}
}
