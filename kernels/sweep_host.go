package kernels

import (
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// onHost returns the sweep as a loop over bands of rows. Where there is a slot, the norms
// of what was swept go there.
func (s *Sweeper) onHost(dst, src Array, boxes []domain.Box, slot *streams.Span) func() {
	if s.real == Float32 {
		return sweepBoxes[float32](s.stencil, dst, src, slices.Clone(boxes), slot)
	}
	return sweepBoxes[float64](s.stencil, dst, src, slices.Clone(boxes), slot)
}

// sweepBoxes returns the loop that applies the stencil to every row of the boxes.
func sweepBoxes[T rows.Float](s stencil.Stencil, dst, src Array, boxes []domain.Box, slot *streams.Span) func() {
	to, from, l := view[T](dst.Data), view[T](src.Data), src.Layout
	sweep := bandSweep[T](s, l)
	return func() {
		var sum Norms
		for _, b := range boxes {
			band := rows.Band{Points: b.Size()[0], Pitch: int(l.Pitch)}
			eachBand(l, b, func(o int64, count int) {
				band.Count = count
				sweep(to, from, o, band)
				if slot != nil {
					addBand(&sum, to, from, o, band)
				}
			})
		}
		if slot != nil {
			putNorms(view[float64](*slot), sum)
		}
	}
}

// bandSweep returns the loop that applies the stencil to a band whose first point lies at o.
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
	return func(to, from []T, o int64, band rows.Band) { rows.Apply(to[o:], from, int(o), band, sum) }
}

func sweepStar[T rows.Float](star stencil.StarWeights, l domain.Layout, to, from []T, o int64, band rows.Band) {
	centre, x, y, z := T(star.Centre), T(star.Axis[0]), T(star.Axis[1]), T(star.Axis[2])
	out, mid, south, north := to[o:], from[o-1:], from[o-l.Pitch:], from[o+l.Pitch:]
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
