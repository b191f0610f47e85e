package sweep

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// linear returns the sweep of a linear stencil, by bands of rows.
func (h *hostFound) linear(boxes []domain.Box, arrays []kernels.Array) func([]byte) {
	if h.plan.writes[0].element == "float32" {
		return linearBands[float32](h, boxes, arrays[0], arrays[1])
	}
	return linearBands[float64](h, boxes, arrays[0], arrays[1])
}

func linearBands[T rows.Float](h *hostFound, boxes []domain.Box, src, dst kernels.Array) func([]byte) {
	from, to := values[T](&src), values[T](&dst)
	if src.Layout.Pitch != dst.Layout.Pitch {
		return linearRows(h, boxes, src, dst, from, to)
	}
	sweep := bandSweep[T](*h.plan.point.linear, src.Layout)
	return func([]byte) {
		h.begin()
		for _, b := range boxes {
			band := rows.Band{Points: b.Size()[0], Pitch: int(src.Layout.Pitch)}
			eachBand(b, func(first domain.Vec, count int) {
				band.Count = count
				o, p := src.Layout.Offset(first), dst.Layout.Offset(first)
				sweep(to[p:], from, o, band)
				if h.slot == nil {
					return
				}
				for i := range int64(count) {
					n := int64(band.Points)
					o, p := o+i*src.Layout.Pitch, p+i*dst.Layout.Pitch
					rows.AddRow(&h.found[0], to[p:p+n], from[o:o+n], h.plan.point.Sums)
				}
			})
		}
		h.end()
	}
}

// linearRows is the same row by row, for arrays whose rows lie differently.
func linearRows[T rows.Float](h *hostFound, boxes []domain.Box, src, dst kernels.Array, from, to []T) func([]byte) {
	sweep := bandSweep[T](*h.plan.point.linear, src.Layout)
	return func([]byte) {
		h.begin()
		for _, b := range boxes {
			band := rows.Band{Points: b.Size()[0], Count: 1, Pitch: b.Size()[0]}
			eachBand(b, func(first domain.Vec, count int) {
				for i := range count {
					at := first.Add(domain.Vec{0, i, 0})
					o, p, n := src.Layout.Offset(at), dst.Layout.Offset(at), int64(band.Points)
					sweep(to[p:], from, o, band)
					if h.slot != nil {
						rows.AddRow(&h.found[0], to[p:p+n], from[o:o+n], h.plan.point.Sums)
					}
				}
			})
		}
		h.end()
	}
}

// eachBand calls f with the first point of count rows of the box that follow each other along y,
// for all its rows in order of memory. count is at most some dozens, so that nobody waits long for
// a loop that cannot be interrupted.
func eachBand(b domain.Box, f func(first domain.Vec, count int)) {
	const most = 64
	if b.Empty() {
		return
	}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y += most {
			f(domain.Vec{b.Lo[0], y, z}, min(most, b.Hi[1]-y))
		}
	}
}

// bandSweep returns the loop that applies the stencil to a band; its first point is from[o] and
// goes to to[0].
func bandSweep[T rows.Float](s stencil.Stencil, l domain.Layout) func(to, from []T, o int64, band rows.Band) {
	if star, ok := s.AsStar(); ok {
		return func(to, from []T, o int64, band rows.Band) { sweepStar(star, l, to, from, o, band) }
	}
	sum := rows.Sum[T]{Centre: T(s.Centre)}
	for _, g := range s.Groups {
		group := rows.Group[T]{Weight: T(g.Weight)}
		for _, part := range g.Parts {
			var offsets []int
			for _, p := range part {
				offsets = append(offsets, int(l.Offset(l.Owned.Lo.Add(p))-l.Offset(l.Owned.Lo)))
			}
			group.Parts = append(group.Parts, offsets)
		}
		sum.Groups = append(sum.Groups, group)
	}
	return func(to, from []T, o int64, band rows.Band) { rows.Apply(to, from, int(o), band, sum) }
}

func sweepStar[T rows.Float](star stencil.StarWeights, l domain.Layout, out, from []T, o int64, band rows.Band) {
	centre, x, y, z := T(star.Centre), T(star.Axis[0]), T(star.Axis[1]), T(star.Axis[2])
	mid, south, north := from[o-1:], from[o-l.Pitch:], from[o+l.Pitch:]
	switch {
	case star.Dims == 2 && star.Equal:
		rows.Star5(out, mid, south, north, band, centre, x)
	case star.Dims == 2:
		rows.Star5Axes(out, mid, south, north, band, centre, x, y)
	case star.Equal:
		rows.Star7(out, mid, south, north, from[o-l.Plane:], from[o+l.Plane:], band, centre, x)
	default:
		rows.Star7Axes(out, mid, south, north, from[o-l.Plane:], from[o+l.Plane:], band, centre, x, y, z)
	}
}
