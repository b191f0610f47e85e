package mpi

import (
	"context"
	"fmt"

	binding "github.com/halox/halox/internal/mpi"
)

// First returns the first n of the processes, with ranks, hosts and tags of their own; nil on the others. All processes call it.
// Those that get them close them before these. Where these have opened NCCL, messages of those take Pieces before Use. A failure of any of these processes ends what those wait for too.
func (p *Processes) First(ctx context.Context, n int) (*Processes, error) {
	if n < 1 || n > p.Size() {
		return nil, fmt.Errorf("mpi: the first %d of %d processes", n, p.Size())
	}
	color := 0
	if p.Rank >= n {
		color = 1
	}
	var comm *binding.Comm
	what := fmt.Sprintf("take the first %d processes", n)
	err := p.together(ctx, what, func(ctx context.Context) (err error) {
		if _, err := p.gather(ctx, what, nil); err != nil {
			return err
		}
		comm, err = p.control.Split(ctx, p.options.Limit, color, p.Rank)
		return err
	})
	if err != nil {
		return nil, err
	}
	if color == 1 {
		return nil, comm.Free()
	}
	first, err := meet(ctx, comm, p.options, true)
	if err != nil {
		return nil, p.Fail(err)
	}
	first.whole = p
	if p.pairs == nil { // which these would have to open themselves
		first.within, first.across = p.within, p.across
	}
	first.unhook = context.AfterFunc(p.failure.ctx, func() { first.failure.set(p.failure.err()) })
	return first, nil
}
