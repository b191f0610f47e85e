package sweep

import (
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// hostSpec returns a launch on a CPU device. If slot is not nil, norms and reductions are stored there.
func (n *plan) hostSpec(name string, arrays Arrays, boxes []domain.Box, slot slot) streams.KernelSpec {
	all := slices.Concat(arrays...)
	spec := streams.KernelSpec{Name: name, Work: streams.Sweep, Argument: n.given()}
	spec.Uses = append(spansOf(all), n.uses()...)
	h := &hostSweep{hostFound: hostFound{n, slot, make([]rows.Norms, len(n.norms))}, boxes: slices.Clone(boxes)}
	if n.point.linear != nil {
		spec.RunWith = h.linear(h.boxes, all)
		return spec
	}
	h.row, h.compute = n.newRow(arrays), n.point.Go
	if f := n.point.formula; f != nil {
		h.compute = formulaRows(f, n.accesses, h.row.arrays)
	}
	longest := 0
	for _, b := range boxes {
		longest = max(longest, b.Size()[0])
	}
	for range n.point.Reductions {
		h.row.reduced = append(h.row.reduced, make([]float64, longest))
	}
	for _, w := range n.writes {
		if w.norm >= 0 && slot != nil {
			h.norms = append(h.norms, w.normRows(n.point.Sums, all[w.array], all[n.reads[w.before].array], longest))
		}
	}
	spec.RunWith = n.looksUp(h.run)
	return spec
}

// newRow returns a row of arrays without a position.
func (n *plan) newRow(arrays Arrays) Row {
	r := Row{
		function: n.point.Name, accesses: n.accesses, reductions: n.point.Reductions, coordinates: n.point.Coordinates,
		arrays: cloneArrays(arrays),
	}
	if n.point.Parameters != nil {
		r.parameters = parametersType(n.point.Parameters).Size()
	}
	return r
}

func cloneArrays(arrays Arrays) (clone Arrays) {
	for _, a := range arrays {
		clone = append(clone, slices.Clone(a))
	}
	return clone
}

// hostSweep is a sweep by a Go counterpart.
type hostSweep struct {
	hostFound
	boxes []domain.Box
	row   Row
	norms []normRows // of each written array with norms

	compute func(r *Row)
}

// run sweeps all boxes, with the frame of the launch.
func (h *hostSweep) run(frame []byte) {
	h.row.frame = frame
	h.begin()
	for _, b := range h.boxes {
		h.row.N, h.row.I = b.Size()[0], b.Lo[0]
		for k := b.Lo[2]; k < b.Hi[2]; k++ {
			for j := b.Lo[1]; j < b.Hi[1]; j++ {
				h.row.J, h.row.K = j, k
				h.oneRow()
			}
		}
	}
	h.end()
}

// oneRow computes a row, and its norms and reductions.
func (h *hostSweep) oneRow() {
	for i, one := range h.plan.point.Reductions {
		fill(h.row.reduced[i][:h.row.N], one.Op.identity())
	}
	h.row.used = 0
	if h.slot == nil {
		h.compute(&h.row)
		return
	}
	at := domain.Vec{h.row.I, h.row.J, h.row.K}
	for _, n := range h.norms {
		n.before(at, h.row.N)
	}
	h.compute(&h.row)
	for _, n := range h.norms {
		n.after(&h.found[n.norm], at, h.row.N)
	}
	for i, one := range h.plan.point.Reductions {
		values, place := h.row.reduced[i][:h.row.N], h.plan.placeOf(i)
		if one.Op == Sum {
			h.plan.point.Sums.Add(in[sums.Sum](h.slot, place), values)
			continue
		}
		most := in[float64](h.slot, place)
		for _, v := range values {
			*most = one.Op.join(*most, v)
		}
	}
}

// hostFound holds the norms and reductions of a sweep on a CPU device.
type hostFound struct {
	plan  *plan
	slot  slot         // destination; nil if nothing is measured
	found []rows.Norms // by norm
}

// begin resets the results.
func (h *hostFound) begin() {
	clear(h.found)
	if h.slot != nil {
		h.plan.clear(h.slot)
	}
}

// end stores the norms in the slot.
func (h *hostFound) end() {
	if h.slot != nil {
		for i, f := range h.found {
			*in[rows.Norms](h.slot, i*normBytes) = f
		}
	}
}

// normRows computes the norms of one array, row by row: before is called before a row is computed, and after
// afterwards.
type normRows struct {
	norm   int
	before func(at domain.Vec, n int)
	after  func(sum *rows.Norms, at domain.Vec, n int)
}

// normRows returns the normRows of a written array, with sums of a mode; last is the array of the previous level.
func (w writtenArray) normRows(mode sums.Mode, next, last kernels.Array, longest int) normRows {
	if w.element == domain.Float32 {
		return normRowsOf[float32](w, mode, next, last, longest)
	}
	return normRowsOf[float64](w, mode, next, last, longest)
}

func normRowsOf[T rows.Float](w writtenArray, mode sums.Mode, next, last kernels.Array, longest int) normRows {
	new, old := values[T](&next), values[T](&last)
	row := func(v []T, a *kernels.Array, at domain.Vec, n int) []T {
		o := a.Layout.Offset(at)
		return v[o : o+int64(n)]
	}
	if !w.inPlace {
		return normRows{w.norm, func(domain.Vec, int) {}, func(sum *rows.Norms, at domain.Vec, n int) {
			rows.AddRow(sum, row(new, &next, at, n), row(old, &last, at, n), mode)
		}}
	}
	kept := make([]T, longest)
	return normRows{
		w.norm,
		func(at domain.Vec, n int) { copy(kept, row(old, &last, at, n)) },
		func(sum *rows.Norms, at domain.Vec, n int) { rows.AddRow(sum, row(new, &next, at, n), kept[:n], mode) },
	}
}

func fill(row []float64, v float64) {
	for i := range row {
		row[i] = v
	}
}

// linear returns the sweep of a linear stencil, by bands of rows.
func (h *hostFound) linear(boxes []domain.Box, arrays []kernels.Array) func([]byte) {
	if h.plan.writes[0].element == domain.Float32 {
		return linearBands[float32](h, boxes, arrays[0], arrays[1])
	}
	return linearBands[float64](h, boxes, arrays[0], arrays[1])
}

func linearBands[T rows.Float](h *hostFound, boxes []domain.Box, src, dst kernels.Array) func([]byte) {
	from, to := values[T](&src), values[T](&dst)
	sweep := bandSweep[T](*h.plan.point.linear, src.Layout)
	most := maxBand
	if src.Layout.Pitch != dst.Layout.Pitch {
		most = 1
	}
	return func([]byte) {
		h.begin()
		for _, b := range boxes {
			band := rows.Band{Points: b.Size()[0], Pitch: int(src.Layout.Pitch)}
			eachBand(b, most, func(first domain.Vec, count int) {
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

// maxBand is the number of rows swept at once, limited because the loop cannot be preempted.
const maxBand = 64

// eachBand calls f with the first point of at most most consecutive rows of the box along y, and their count, for
// all rows in memory order.
func eachBand(b domain.Box, most int, f func(first domain.Vec, count int)) {
	if b.Empty() {
		return
	}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y += most {
			f(domain.Vec{b.Lo[0], y, z}, min(most, b.Hi[1]-y))
		}
	}
}

// bandSweep returns the loop that applies the stencil to a band. Its first point is from[o], stored to to[0].
func bandSweep[T rows.Float](s stencil.Stencil, l domain.Layout) func(to, from []T, o int64, band rows.Band) {
	if star, ok := s.AsStar(); ok {
		return func(to, from []T, o int64, band rows.Band) { sweepStar(star, l, to, from, o, band) }
	}
	sum := rows.Sum[T]{Center: T(s.Center)}
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
	centre, x, y, z := T(star.Center), T(star.Axis[0]), T(star.Axis[1]), T(star.Axis[2])
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
