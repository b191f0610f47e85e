package sweep

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
)

// hostFound is what a sweep on a host device finds of norms and reductions.
type hostFound struct {
	plan  *plan
	slot  []float64    // where it goes in the end; nil where nothing is measured
	found []rows.Norms // by norm
}

// begin sets what is found to what no point finds.
func (h *hostFound) begin() {
	clear(h.found)
	if h.slot != nil {
		for i, one := range h.plan.point.Reductions {
			h.slot[4*len(h.found)+i] = one.Op.identity()
		}
	}
}

// end puts the norms into the slot.
func (h *hostFound) end() {
	if h.slot != nil {
		for i, f := range h.found {
			copy(h.slot[4*i:], []float64{f.MaxChange, f.SumChange2, f.Max, f.Sum2})
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

// normRows returns those of a written array; last is the array of the level before.
func (w writtenArray) normRows(next, last kernels.Array, longest int) normRows {
	if w.element == "float32" {
		return normRowsOf[float32](w, next, last, longest)
	}
	return normRowsOf[float64](w, next, last, longest)
}

func normRowsOf[T rows.Float](w writtenArray, next, last kernels.Array, longest int) normRows {
	new, old := values[T](&next), values[T](&last)
	row := func(v []T, a *kernels.Array, at domain.Vec, n int) []T {
		o := a.Layout.Offset(at)
		return v[o : o+int64(n)]
	}
	if !w.inPlace {
		return normRows{w.norm, func(domain.Vec, int) {}, func(sum *rows.Norms, at domain.Vec, n int) {
			rows.AddRow(sum, row(new, &next, at, n), row(old, &last, at, n))
		}}
	}
	kept := make([]T, longest)
	return normRows{
		w.norm,
		func(at domain.Vec, n int) { copy(kept, row(old, &last, at, n)) },
		func(sum *rows.Norms, at domain.Vec, n int) { rows.AddRow(sum, row(new, &next, at, n), kept[:n]) },
	}
}

func fill(row []float64, v float64) {
	for i := range row {
		row[i] = v
	}
}
