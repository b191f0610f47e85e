package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	binding "github.com/halox/halox/internal/mpi"
)

// until returns a context that also ends with the first failure of any process.
func (p *Processes) until(ctx context.Context) (context.Context, context.CancelFunc) {
	merged, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.failure.ctx, func() { end(context.Cause(p.failure.ctx)) })
	return merged, func() { stop(); end(nil) }
}

// Gather returns what each process gives, by rank. Values travel as JSON, []byte as it is. All processes must call it.
// what names the purpose: processes that meet for different purposes, because they have not made the same collective
// calls before, all get an error that says which process came for what. It waits for the others for at most
// Options.Limit.
func Gather[T any](ctx context.Context, p *Processes, what string, mine T) ([]T, error) {
	if p.IsAlone() {
		return []T{mine}, nil
	}
	text, err := encode(mine)
	if err != nil {
		return nil, p.Fail(fmt.Errorf("mpi: %s: %w", what, err))
	}
	var texts [][]byte
	err = p.together(ctx, what, func(ctx context.Context) (err error) {
		texts, err = p.gather(ctx, what, text)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for rank, text := range texts {
		if err := decode(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("mpi: %s: %s: %w", what, p.Name(rank), err)
		}
	}
	return all, nil
}

// Broadcast returns, on all processes, what the root gives; what others give is ignored. All must call it, see
// [Gather].
func Broadcast[T any](ctx context.Context, p *Processes, what string, mine T, root int) (T, error) {
	if p.IsAlone() {
		return mine, nil
	}
	var text []byte
	if p.Rank == root {
		var err error
		if text, err = encode(mine); err != nil {
			return mine, p.Fail(fmt.Errorf("mpi: %s: %w", what, err))
		}
	}
	err := p.together(ctx, what, func(ctx context.Context) (err error) {
		if _, err := p.gather(ctx, what, nil); err != nil {
			return err
		}
		text, err = p.control.Broadcast(ctx, p.options.Limit, text, root)
		return err
	})
	if err != nil || p.Rank == root {
		return mine, err
	}
	var got T
	if err := decode(text, &got); err != nil {
		return mine, fmt.Errorf("mpi: %s: %s: %w", what, p.Name(root), err)
	}
	return got, nil
}

// gather gathers bytes within a collective call. Those of each process travel after what they are for.
func (p *Processes) gather(ctx context.Context, what string, b []byte) ([][]byte, error) {
	mine := binary.LittleEndian.AppendUint16(nil, uint16(min(len(what), math.MaxUint16)))
	mine = append(mine, what[:min(len(what), math.MaxUint16)]...)
	head := len(mine)
	all, err := p.control.Allgather(ctx, p.options.Limit, append(mine, b...))
	if err != nil {
		return nil, err
	}
	for rank, other := range all {
		if !bytes.HasPrefix(other, mine[:head]) {
			return nil, fmt.Errorf("%s has come for %q, and %s for %q: all must make the same calls in the same order",
				p.Name(rank), forWhat(other), p.Name(p.Rank), what)
		}
		all[rank] = other[head:]
	}
	return all, nil
}

// forWhat returns for what a process has given a piece.
func forWhat(piece []byte) string {
	if len(piece) < 2 {
		return ""
	}
	n := int(binary.LittleEndian.Uint16(piece))
	return string(piece[2:min(len(piece), 2+n)])
}

// together makes a collective call. Where it fails all processes are told.
func (p *Processes) together(ctx context.Context, what string, call func(context.Context) error) error {
	if err := p.Err(); err != nil {
		return fmt.Errorf("mpi: %s: %w", what, err)
	}
	if p.gone {
		return fmt.Errorf("mpi: %s: the processes have ended together", what)
	}
	merged, end := p.until(ctx)
	defer end()
	err := call(merged)
	if err == nil {
		return nil
	}
	if first := p.Err(); first != nil {
		return fmt.Errorf("mpi: %s: %w", what, first)
	}
	return p.Fail(fmt.Errorf("mpi: %s: %w", what, err))
}

// Agree returns nil on all processes if all give nil, else an error on all. All must call it: it is how processes do
// something together that each may fail at.
//
// Without kinds the error joins that of this process and those of the others, as *[RemoteError], each text once. With
// kinds it is the worst error alone: kinds are in ascending order, errors that wrap none of them are worse, and the end
// of a context is the worst. Where this process has an error of the worst kind it gets its own, else a *[RemoteError]
// that wraps the kind.
func (p *Processes) Agree(ctx context.Context, what string, mine error, kinds ...error) error {
	if p.IsAlone() {
		return mine
	}
	own := outcome{Kind: kindOf(mine, kinds)}
	if mine != nil {
		own.Text = mine.Error()
		ctx = context.WithoutCancel(ctx) // it may be what has ended, and the others need to know why
	}
	all, err := Gather(ctx, p, what, own)
	if err != nil && mine != nil && strings.Contains(err.Error(), mine.Error()) {
		return mine // another had the same error, and has failed since
	}
	if err != nil {
		return errors.Join(mine, err)
	}
	if len(kinds) > 0 {
		return p.worst(all, mine, kinds)
	}
	errs := []error{mine}
	for rank, other := range all {
		if rank != p.Rank && other.Kind > 0 && (mine == nil || other.Text != own.Text) {
			errs = append(errs, p.remote(rank, other, nil))
		}
	}
	return errors.Join(errs...)
}

// outcome is what a process gives to Agree: the number of the error's kind, 0 if it has none, and the error's text.
type outcome struct {
	Kind int
	Text string
}

// kindOf returns 0 for nil, the place of the first kind that the error wraps from 1 on, the next number for other
// errors, and the one after that for the end of a context.
func kindOf(err error, kinds []error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return len(kinds) + 2
	}
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			return 1 + i
		}
	}
	return len(kinds) + 1
}

// worst returns the worst of the errors of all processes.
func (p *Processes) worst(all []outcome, mine error, kinds []error) error {
	worst := p.Rank
	for rank, other := range all {
		if other.Kind > all[worst].Kind {
			worst = rank
		}
	}
	if worst == p.Rank {
		return mine
	}
	return p.remote(worst, all[worst], kinds)
}

// remote returns the error of another process.
func (p *Processes) remote(rank int, o outcome, kinds []error) error {
	e := &RemoteError{Rank: rank, Host: p.Hosts[rank], Text: o.Text}
	switch {
	case o.Kind <= len(kinds):
		e.Kind = kinds[o.Kind-1]
	case o.Kind == len(kinds)+2:
		e.Kind = context.Canceled
	}
	return e
}

// First returns the first n of the processes, with ranks, hosts and tags of their own; nil on the others. All processes
// call it. Those that get them close them before these. Where these have opened NCCL, messages of those take Pieces
// before Use. A failure of any of these processes ends what those wait for too.
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
		first.sameHost, first.interHost = p.sameHost, p.interHost
	}
	first.unhook = context.AfterFunc(p.failure.ctx, func() { first.failure.set(p.failure.err()) })
	return first, nil
}

// Close ends the work together: it waits until all processes have called it, at most as long as
// the limit, and ends MPI where Join has started it. After a failure it does not wait and MPI
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

// Disconnect ends what networks hold on devices, which comes before those are closed. Messages must be closed before.
// Messages that are made afterwards need Use again, where they are to take another network than Pieces.
func (p *Processes) Disconnect() error {
	if p == nil || p.pairs == nil {
		return nil
	}
	ended := p.pairs
	p.pairs, p.sameHost, p.interHost = nil, Pieces, Pieces
	return ended.close(p.Err())
}

// meetAtEnd waits for all, and has all take leave.
func (p *Processes) meetAtEnd(ctx context.Context) error {
	if p.Err() != nil {
		return nil // who called knows it
	}
	if _, err := Gather(ctx, p, "end together", 0); err != nil {
		return err
	}
	close(p.watch.quiet)
	if err := p.together(ctx, "end together", p.awaitLeave); err != nil {
		return err
	}
	// MPI may keep a last note until it is called again, and MPI_Finalize waits for who waits for that.
	return p.together(ctx, "end together",
		func(ctx context.Context) error { return p.control.Barrier(ctx, p.options.Limit) })
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

// Abort ends this process and all others, with that exit code, after a failure. It waits a little, so that what was
// printed is seen, and other ranks than 0 longer, so that rank 0 can speak. Where a program has lent its communicator
// it does nothing: how its processes end is the program's. Nor does it where Close has ended MPI.
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

// Tags of the communicator of collective calls.
const bytesTag = 1

// SendBytes sends bytes to a process that calls ReceiveBytes for as many, piece by piece. It
// returns when they may be changed, and waits for the other at most as long as the limit for each
// piece. Between two processes the calls are in the same order on both. Where it fails all
// processes are told.
func (p *Processes) SendBytes(ctx context.Context, what string, b []byte, to int) error {
	return p.inPieces(ctx, fmt.Sprintf("%s, to %s", what, p.Name(to)), b, to, true)
}

// ReceiveBytes fills b with what a process sends by SendBytes.
func (p *Processes) ReceiveBytes(ctx context.Context, what string, b []byte, from int) error {
	return p.inPieces(ctx, fmt.Sprintf("%s, from %s", what, p.Name(from)), b, from, false)
}

// inPieces sends or receives the bytes piece by piece.
func (p *Processes) inPieces(ctx context.Context, what string, b []byte, other int, sends bool) error {
	return p.together(ctx, what, func(ctx context.Context) error {
		size := min(int64(len(b)), p.options.Piece)
		if size == 0 {
			return nil
		}
		m, err := binding.NewMemory(int(size))
		if err != nil {
			return err
		}
		for len(b) > 0 {
			n := min(len(b), len(m.Bytes))
			var r binding.Request
			if sends {
				copy(m.Bytes, b[:n])
				err = p.control.Isend(&r, m.Bytes[:n], other, bytesTag)
			} else {
				err = p.control.Irecv(&r, m.Bytes[:n], other, bytesTag)
			}
			if err == nil {
				err = r.Wait(ctx, p.options.Limit)
			}
			if err != nil {
				return err // MPI may still use the memory
			}
			if !sends {
				copy(b, m.Bytes[:n])
			}
			b = b[n:]
		}
		m.Free()
		return nil
	})
}
