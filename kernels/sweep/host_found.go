package sweep

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
)

// hostFound is what a sweep on a host device finds of norms and reductions.
type hostFound struct {
	plan  *plan
	slot  slot         // where it goes in the end; nil where nothing is measured
	found []rows.Norms // by norm
}

// begin sets what is found to what no point finds.
func (h *hostFound) begin() {
	clear(h.found)
	if h.slot != nil {
		h.plan.clear(h.slot)
	}
}

// end puts the norms into the slot.
func (h *hostFound) end() {
	if h.slot != nil {
		for i, f := range h.found {
			*in[rows.Norms](h.slot, i*normBytes) = f
		}
	}
}

// normRows takes the norms of one array, row by row: before is called before a row is computed, and
// after behind it.
type normRows struct {
	norm   int
	before func(at domain.Vec, n int)
	after  func(sum *rows.Norms, at domain.Vec, n int)
}

// normRows returns those of a written array, with sums of a mode; last is the array of the level before.
func (w writtenArray) normRows(mode sums.Mode, next, last kernels.Array, longest int) normRows {
	if w.element == "float32" {
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
