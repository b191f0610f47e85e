package sweep

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// Measure returns formulas as a point function that writes nothing and reduces each result by an operation. It also
// returns the accesses that the function reads, as Formula does.
func Measure(f *stencil.Form, by []Operation, dims int, real domain.Element) (Point, []Access) {
	values := *f
	values.Results, values.InPlace = nil, nil
	p, accesses, _ := Formula(&values, dims, real)
	source := strings.TrimSuffix(p.CUDA, "}\n")
	for i, op := range by {
		name := fmt.Sprintf("m%d", i)
		p.Reductions = append(p.Reductions, Reduction{Name: name, Op: op})
		source += fmt.Sprintf("\tp.reduce(%s, v%d);\n", name, f.Results[i])
	}
	p.CUDA, p.formula = source+"}\n", nil
	if p.Go = measureRow[float64](f); real == domain.Float32 {
		p.Go = measureRow[float32](f)
	}
	return p, accesses
}

// measureRow is the Go counterpart of Measure. Goroutines share its programs, each of which one goroutine uses at a
// time.
func measureRow[T rows.Float](f *stencil.Form) func(r *Row) {
	type measurer struct {
		*rows.Program[T]
		results [][]T // as long as the longest row so far
	}
	idle := sync.Pool{New: func() any {
		return &measurer{rows.NewProgram[T](f.Nodes, f.Results, make([]bool, len(f.Results))), make([][]T, len(f.Results))}
	}}
	return func(r *Row) {
		m := idle.Get().(*measurer)
		defer idle.Put(m)
		for i, n := range f.Nodes {
			if n.Op != "" || n.Read < 0 {
				continue
			}
			row := At[T](r, readName(n.Read), n.Offset[0], n.Offset[1], n.Offset[2])
			if n.Uniform {
				m.SetUniform(i, row[0], r.N)
				continue
			}
			m.Row(i).Set(row)
		}
		for i := range m.results {
			m.results[i] = slices.Grow(m.results[i][:0], r.N)[:r.N]
			m.Result(i).Set(m.results[i])
		}
		m.Run(r.N)
		for i, row := range m.results {
			to := r.Reduced(fmt.Sprintf("m%d", i))
			for k, v := range row {
				to[k] = float64(v)
			}
		}
	}
}
