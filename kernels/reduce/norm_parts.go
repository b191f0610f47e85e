package reduce

import (
	"errors"
	"fmt"

	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// NormParts is room on a device where kernels leave the norms of parts of a box, one Norms a part, to be joined.
type NormParts struct {
	reducer *NormReducer
	room    *NormReduction
	most    int64
}

// Parts makes room for the norms of so many parts at most. Close frees it.
func (r *NormReducer) Parts(most int64) (*NormParts, error) {
	room, err := newNormReduction(r.device, most+1)
	if err != nil {
		return nil, err
	}
	return &NormParts{r, room, most}, nil
}

// Span is where the parts lie, one behind the other.
func (p *NormParts) Span() streams.Span {
	return p.room.result.Span(normsBytes, p.most*normsBytes)
}

// Join makes a reduction ready that joins the first parts. All reductions of the same parts leave their result in one place.
// They are closed by themselves.
func (p *NormParts) Join(count int64) (*NormReduction, error) {
	if count < 1 || count > p.most {
		return nil, fmt.Errorf("reduce: norms of %d parts, where there is room for %d", count, p.most)
	}
	red := &NormReduction{result: p.room.result, host: p.room.host}
	arg := launch.Argument(&normsArgs{sums: p.Span().Address(), result: p.room.result.Address(), blocks: count})
	spec := streams.KernelSpec{Run: p.onHost(count), Function: p.reducer.total, Grid: [3]int{1, 1, 1}, Block: [3]int{launch.BlockSize, 1, 1}, Argument: arg}
	if err := red.launchAll(p.reducer.device, "norms", []streams.KernelSpec{spec}); err != nil {
		return nil, errors.Join(err, red.Close())
	}
	return red, nil
}

func (p *NormParts) onHost(count int64) func() {
	return func() {
		all := streams.View[Norms](p.room.result.Bytes())
		var sum Norms
		for _, part := range all[1 : 1+count] {
			sum.Add(part)
		}
		all[0] = sum
	}
}

// Close frees the room. Closing twice is no error.
func (p *NormParts) Close() error { return p.room.Close() }
