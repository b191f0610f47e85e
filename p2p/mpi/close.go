package mpi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Close ends the work together: it waits until all processes have called it, at most as long as
// the limit, and ends MPI where Join has started it. After a failure nobody is waited for and MPI
// is left as it is: the process ends soon, best by Abort. Closing twice is no error.
func (p *Processes) Close() error {
	if p == nil || p.control == nil || p.closed {
		return nil
	}
	p.closed = true
	ctx := context.Background()
	err := p.meetAtEnd(ctx)
	close(p.watch.end)
	<-p.watch.ended
	if p.whole != nil {
		p.unhook()
	}
	err = errors.Join(err, p.Disconnect())
	if err != nil || p.Err() != nil {
		return err
	}
	p.gone = true
	if err := errors.Join(p.watch.comm.Free(), p.data.Free(), p.control.Free()); err != nil {
		return err
	}
	if p.whole != nil {
		return nil
	}
	p.ended = true
	return p.library.Finalize(ctx, p.options.Limit)
}

// Disconnect ends what networks hold on devices, which comes before those are closed. Messages must be closed before. Messages that
// are made afterwards need Use again, where they are to take another network than Pieces.
func (p *Processes) Disconnect() error {
	if p == nil || p.pairs == nil {
		return nil
	}
	ended := p.pairs
	p.pairs, p.within, p.across = nil, Pieces, Pieces
	return ended.close(p.Err())
}

// meetAtEnd waits for all, and has all take leave.
func (p *Processes) meetAtEnd(ctx context.Context) error {
	if p.Err() != nil {
		return nil // who called knows it
	}
	if _, err := p.Gather(ctx, "end together", nil); err != nil {
		return err
	}
	close(p.watch.quiet)
	if err := p.together(ctx, "end together", p.awaitLeave); err != nil {
		return err
	}
	// MPI may keep a last note until it is called again, and MPI_Finalize waits for who waits for that.
	return p.together(ctx, "end together", func(ctx context.Context) error { return p.control.Barrier(ctx, p.options.Limit) })
}

// awaitLeave waits until nothing is under way between the threads that listen.
func (p *Processes) awaitLeave(ctx context.Context) error {
	timer := time.NewTimer(p.options.Limit)
	defer timer.Stop()
	select {
	case <-p.watch.left:
		return nil
	case <-timer.C:
		return fmt.Errorf("not all have taken leave within %v", p.options.Limit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// How long all wait before they are ended: MPICH's launcher loses what it has not passed on by
// then, and rank 0 is to speak before others end it.
const (
	passedOn = 500 * time.Millisecond
	grace    = 2 * time.Second
)

// Abort ends this process and all others, with that exit code, after a failure. It waits a little,
// so that what was printed is seen, and other ranks than 0 longer, so that rank 0 can speak. Where a program has lent its
// communicator it does nothing: how its processes end is the program's. Nor does it where Close has ended MPI.
func (p *Processes) Abort(code int) {
	if p == nil || p.control == nil || p.lent || p.ended {
		return
	}
	if p.Rank == 0 {
		time.Sleep(passedOn)
	} else {
		time.Sleep(grace)
	}
	_ = p.library.Abort(code) // it does not return, but where MPI fails: then the caller ends the process
}
