package reduce

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/streams"
)

// Norms is the result of a NormReducer for a field and the previous one.
type Norms = rows.Norms

// normsBytes is the size of Norms as written by kernels.
const normsBytes = 2*8 + 2*sums.Bytes

// NormReducer computes norms on one device.
type NormReducer struct {
	device         *streams.Device
	real           domain.Element
	mode           sums.Mode
	partial, total streams.Function // nil on CPU devices
}

// normsArgs is struct Norms of norms.cu.
type normsArgs struct {
	next, last, sums, result uint64
	launch.Strides
	region launch.Region
	blocks int64
	stride int64
}

func normsProgram(r domain.Element, mode sums.Mode) kernels.Program {
	return kernels.Program{
		File: "norms.cu", Defines: append([]string{scalar.Real(r)}, mode.Defines()...),
		Mirrors: []kernels.Mirror{{Name: "NormSum", Value: Norms{}}, {Name: "Norms", Value: normsArgs{}}},
	}
}

// NewNormReducer compiles the reductions for the device. mode selects how sums are computed.
func NewNormReducer(c *kernels.Compiler, d *streams.Device, real domain.Element, mode sums.Mode) (*NormReducer, error) {
	r := &NormReducer{device: d, real: real, mode: mode}
	if !real.IsReal() {
		return nil, fmt.Errorf("reduce: type must be float32 or float64, got %q", real)
	}
	found, err := c.Load(d, normsProgram(real, mode), "norms_partial", "norms_total")
	if err != nil {
		return nil, err
	}
	r.partial, r.total = found[0], found[1]
	return r, nil
}

// NormReduction holds the prepared launches for the norms of one or several steps.
type NormReduction struct{ launches }

// Norms prepares a reduction over the points of the box in the arrays next and last, which must have the same
// layout.
func (r *NormReducer) Norms(next, last kernels.Array, box domain.Box) (*NormReduction, error) {
	if next.Layout != last.Layout {
		return nil, fmt.Errorf("reduce: norms: arrays must have the same layout")
	}
	if err := next.Holds(box); err != nil {
		return nil, err
	}
	const warpsPerBlock, maxBlocks = 8, 1024
	size := box.Size()
	blocks := min(maxBlocks, (int64(size[1])*int64(size[2])+warpsPerBlock-1)/warpsPerBlock)
	red := &NormReduction{}
	if err := red.allocate(r.device, normsBytes, blocks*normsBytes); err != nil {
		return nil, errors.Join(err, red.Close())
	}
	specs := r.specs(next, last, box, red.result, blocks)
	if err := red.prepare(r.device, "norms", specs, next.Data, last.Data); err != nil {
		return nil, errors.Join(err, red.Close())
	}
	return red, nil
}

// specs returns two launches: norms of each block, then of all blocks. The partial norms follow the result in
// memory. In Go the second launch does everything.
func (r *NormReducer) specs(
	next, last kernels.Array, box domain.Box, result *streams.Memory, blocks int64,
) []streams.KernelSpec {
	arg := launch.Argument(&normsArgs{
		next: next.Data.Address(), last: last.Data.Address(),
		sums: result.Address() + normsBytes, result: result.Address(),
		Strides: launch.StridesOf(next.Layout), region: launch.RegionOf(next.Layout, box), blocks: blocks,
	})
	block := [3]int{launch.BlockSize, 1, 1}
	return []streams.KernelSpec{
		{Function: r.partial, Grid: [3]int{int(blocks), 1, 1}, Block: block, Argument: arg},
		{Run: r.onHost(next, last, box, result), Function: r.total, Grid: [3]int{1, 1, 1}, Block: block, Argument: arg},
	}
}

func (r *NormReducer) onHost(next, last kernels.Array, box domain.Box, result *streams.Memory) func() {
	if r.real == domain.Float32 {
		return func() { normRows[float32](r.mode, next, last, box, result) }
	}
	return func() { normRows[float64](r.mode, next, last, box, result) }
}

func normRows[T rows.Float](mode sums.Mode, next, last kernels.Array, box domain.Box, result *streams.Memory) {
	a, b, n := launch.Values[T](next.Data), launch.Values[T](last.Data), int64(box.Size()[0])
	var sum Norms
	launch.EachRow(next.Layout, box, func(o int64) { rows.AddRow(&sum, a[o:o+n], b[o:o+n], mode) })
	streams.View[Norms](result.Bytes())[0] = sum
}

// Result returns the norms once the work of Queue is done: those of the last step if there are several.
func (r *NormReduction) Result() Norms { return r.Results()[0] }

// Results returns the norms of all steps, the last step first.
func (r *NormReduction) Results() []Norms { return streams.View[Norms](r.host.Bytes()) }

// NormParts is memory of a GPU for partial norms of a box, one Norms per part, of one or several steps, to be
// joined.
type NormParts struct {
	reducer *NormReducer
	room    launches
	steps   int
	most    int64
}

// Parts allocates memory for the norms of a number of steps, each of at most most parts. Close frees it.
func (r *NormReducer) Parts(steps int, most int64) (*NormParts, error) {
	if steps < 1 || most < 1 {
		return nil, fmt.Errorf("reduce: numbers of steps and parts must be at least 1, got %d and %d", steps, most)
	}
	p := &NormParts{reducer: r, steps: steps, most: most}
	if err := p.room.allocate(r.device, int64(steps)*normsBytes, int64(steps)*most*normsBytes); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Span returns the memory for the parts of a step, in order. 0 is the last step.
func (p *NormParts) Span(step int) streams.Span {
	return p.room.result.Span((int64(p.steps)+int64(step)*p.most)*normsBytes, p.most*normsBytes)
}

// Join prepares a reduction of the first count parts of each of the last steps. All reductions of the same parts
// store their results in the same memory. Each must be closed separately.
func (p *NormParts) Join(steps int, count int64) (*NormReduction, error) {
	if steps < 1 || steps > p.steps || count < 1 || count > p.most {
		return nil, fmt.Errorf(
			"reduce: norms of %d steps of %d parts: must be within the allocated %d steps of %d parts",
			steps, count, p.steps, p.most,
		)
	}
	red := &NormReduction{launches{result: p.room.result, host: p.room.host}}
	spec := streams.KernelSpec{
		Function: p.reducer.total, Grid: [3]int{steps, 1, 1}, Block: [3]int{launch.BlockSize, 1, 1},
		Argument: launch.Argument(&normsArgs{
			sums: p.Span(0).Address(), result: p.room.result.Address(), blocks: count, stride: p.most,
		}),
	}
	if err := red.prepare(p.reducer.device, "norms", []streams.KernelSpec{spec}); err != nil {
		return nil, errors.Join(err, red.Close())
	}
	return red, nil
}

// Close frees the memory. Closing twice is allowed.
func (p *NormParts) Close() error { return p.room.Close() }
