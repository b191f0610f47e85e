package reduce

import (
	"errors"
	"fmt"

	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// NormParts is room on a device where kernels leave the norms of parts of a box, one Norms a part, to be joined: those of one step
// or of several.
type NormParts struct {
	reducer *NormReducer
	room    *NormReduction
	steps   int
	most    int64
}

// Parts makes room for the norms of so many steps, each of so many parts at most. Close frees it.
func (r *NormReducer) Parts(steps int, most int64) (*NormParts, error) {
	if steps < 1 || most < 1 {
		return nil, fmt.Errorf("reduce: room for the norms of %d steps of %d parts", steps, most)
	}
	room, err := newNormReduction(r.device, int64(steps), int64(steps)*most)
	if err != nil {
		return nil, err
	}
	return &NormParts{r, room, steps, most}, nil
}

// Span is where the parts of a step lie, one behind the other. 0 is the last step.
func (p *NormParts) Span(step int) streams.Span {
	return p.room.result.Span((int64(p.steps)+int64(step)*p.most)*normsBytes, p.most*normsBytes)
}

// Join makes a reduction ready that joins the first parts of each of the last so many steps. All reductions of the same parts leave their
// results in one place. They are closed by themselves.
func (p *NormParts) Join(steps int, count int64) (*NormReduction, error) {
	if steps < 1 || steps > p.steps || count < 1 || count > p.most {
		return nil, fmt.Errorf("reduce: norms of %d steps of %d parts, where there is room for %d of %d", steps, count, p.steps, p.most)
	}
	red := &NormReduction{result: p.room.result, host: p.room.host}
	arg := launch.Argument(&normsArgs{sums: p.Span(0).Address(), result: p.room.result.Address(), blocks: count, stride: p.most})
	spec := streams.KernelSpec{Run: p.onHost(steps, count), Function: p.reducer.total, Grid: [3]int{steps, 1, 1}, Block: [3]int{launch.BlockSize, 1, 1}, Argument: arg}
	if err := red.launchAll(p.reducer.device, "norms", []streams.KernelSpec{spec}); err != nil {
		return nil, errors.Join(err, red.Close())
	}
	return red, nil
}

func (p *NormParts) onHost(steps int, count int64) func() {
	return func() {
		all := streams.View[Norms](p.room.result.Bytes())
		for step := range int64(steps) {
			var sum Norms
			for _, part := range all[int64(p.steps)+step*p.most:][:count] {
				sum.Add(part)
			}
			all[step] = sum
		}
	}
}

// Close frees the room. Closing twice is no error.
func (p *NormParts) Close() error { return p.room.Close() }
