package sweep

import (
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// hostSpec is a launch on a host device. Where there is a slot, the norms and reductions of what was
// swept go there.
func (n *plan) hostSpec(name string, arrays Arrays, boxes []domain.Box, slot slot) streams.KernelSpec {
	all := slices.Concat(arrays...)
	spec := streams.KernelSpec{Name: name, Work: streams.Sweep, Uses: spansOf(all), Argument: n.frame()}
	h := &hostSweep{hostFound: hostFound{n, slot, make([]rows.Norms, len(n.norms))}, boxes: slices.Clone(boxes)}
	if n.point.linear != nil {
		spec.RunWith = h.linear(h.boxes, all)
		return spec
	}
	h.row = n.newRow(arrays)
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
	spec.RunWith = h.run
	return spec
}

// newRow returns a row of arrays; where it lies is not set.
func (n *plan) newRow(arrays Arrays) Row {
	r := Row{function: n.point.Name, accesses: n.accesses, reductions: n.point.Reductions, coordinates: n.point.Coordinates, arrays: cloneArrays(arrays)}
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

// hostSweep is a sweep by a Go twin.
type hostSweep struct {
	hostFound
	boxes []domain.Box
	row   Row
	norms []normRows // of each written array that has some
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

// oneRow computes a row, and takes its norms and reductions.
func (h *hostSweep) oneRow() {
	for i, one := range h.plan.point.Reductions {
		fill(h.row.reduced[i][:h.row.N], one.Op.identity())
	}
	if h.slot == nil {
		h.plan.point.Go(&h.row)
		return
	}
	at := domain.Vec{h.row.I, h.row.J, h.row.K}
	for _, n := range h.norms {
		n.before(at, h.row.N)
	}
	h.plan.point.Go(&h.row)
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
