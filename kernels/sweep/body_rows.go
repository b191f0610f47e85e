package sweep

import (
	"encoding/binary"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
)

// Rows calls the Go twin of a Body for rows of points, whose values lie where the caller says. It may be used by one goroutine at a time.
type Rows struct {
	plan  *plan
	row   Row
	frame []byte // of the step that is made
	first int64  // step of the launch
}

// Rows returns one, for rows of up to so many points.
func (b *Body) Rows(longest int) *Rows {
	r := &Rows{plan: b.plan, row: b.plan.newRow(make(Arrays, len(b.plan.accesses))), frame: b.plan.frame()}
	for i, a := range b.plan.accesses {
		r.row.arrays[i] = make([]kernels.Array, a.components())
	}
	r.row.layers = make([]func(int) int, len(b.plan.accesses))
	r.row.frame, r.row.layerAxis = r.frame, b.plan.point.Dims-1
	for range b.plan.point.Reductions {
		r.row.reduced = append(r.row.reduced, make([]float64, longest))
	}
	return r
}

// Begin takes the frame of a launch.
func (r *Rows) Begin(frame []byte) {
	copy(r.frame, frame)
	r.first = int64(binary.NativeEndian.Uint64(frame))
}

// Later says that rows are those of a step so many after that of the launch.
func (r *Rows) Later(steps int) { binary.NativeEndian.PutUint64(r.frame, uint64(r.first+int64(steps))) }

// Use has a component of an access lie in an array, of which layer returns the layer (plane; row in two dimensions) that one of the
// grid lies in, nil for the same. All components of an access have the same layers.
func (r *Rows) Use(access, component int, array kernels.Array, layer func(int) int) {
	r.row.arrays[access][component] = array
	r.row.layers[access] = layer
}

// Compute computes a row of n points. What it reduces is dropped.
func (r *Rows) Compute(at domain.Vec, n int) {
	r.row.N, r.row.I, r.row.J, r.row.K = n, at[0], at[1], at[2]
	r.plan.point.Go(&r.row)
}
