package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
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

// Gather returns the values of all processes, by rank. Values are encoded as JSON, except for []byte. All
// processes must call it. what names the purpose: if processes call it for different purposes, because their
// collective calls differ, all get an error that names both purposes. It waits for the others for at most
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

// Broadcast returns, on all processes, the value of the root; other values are ignored. All processes must call
// it, see [Gather].
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

// gather gathers bytes in a collective call. The bytes of each process follow its purpose.
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
			return nil, fmt.Errorf("%s called for %q, and %s for %q: all must make the same calls in the same order",
				p.Name(rank), forWhat(other), p.Name(p.Rank), what)
		}
		all[rank] = other[head:]
	}
	return all, nil
}

// forWhat returns the purpose in the bytes of a process.
func forWhat(piece []byte) string {
	if len(piece) < 2 {
		return ""
	}
	n := int(binary.LittleEndian.Uint16(piece))
	return string(piece[2:min(len(piece), 2+n)])
}

// together makes a collective call. An error is reported to all processes.
func (p *Processes) together(ctx context.Context, what string, call func(context.Context) error) error {
	if err := p.Err(); err != nil {
		return fmt.Errorf("mpi: %s: %w", what, err)
	}
	if p.gone {
		return fmt.Errorf("mpi: %s: the processes are closed", what)
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

// Agree returns nil on all processes if all pass nil, and otherwise an error on all. All processes must call it,
// after an operation that may fail on each.
//
// Without kinds the error joins that of this process and those of the others, as *[RemoteError], without
// duplicates. With kinds it is only the worst error: kinds are in ascending order, errors that wrap none of them
// are worse, and the end of a context is the worst. A process with an error of the worst kind gets its own error,
// the others a *[RemoteError] that wraps the kind.
func (p *Processes) Agree(ctx context.Context, what string, mine error, kinds ...error) error {
	if p.IsAlone() {
		return mine
	}
	own := outcome{Kind: kindOf(mine, kinds)}
	if mine != nil {
		own.Text = mine.Error()
		ctx = context.WithoutCancel(ctx) // it may have ended, and the others need to know why
	}
	all, err := Gather(ctx, p, what, own)
	if err != nil && mine != nil && strings.Contains(err.Error(), mine.Error()) {
		return mine // another process had the same error, and has failed since
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

// outcome is the argument of Agree on a process: the number of the error's kind, 0 for nil, and the error's text.
type outcome struct {
	Kind int
	Text string
}

// kindOf returns 0 for nil, 1 plus the index of the first kind that the error wraps, the next number for other
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

// worst returns the worst error of all processes.
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

// First returns the first n processes as a group with separate ranks, hosts and tags; nil on the others. All
// processes must call it. The group must be closed before this one. If this group has opened NCCL, messages of the
// new group use Pieces until Use. A failure in this group also ends waits in the new one.
func (p *Processes) First(ctx context.Context, n int) (*Processes, error) {
	if n < 1 || n > p.Size() {
		return nil, fmt.Errorf("mpi: number of processes: must be between 1 and %d, got %d", p.Size(), n)
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
	if p.pairs == nil { // the new group must open it itself
		first.sameHost, first.interHost = p.sameHost, p.interHost
	}
	first.unhook = context.AfterFunc(p.failure.ctx, func() { first.failure.set(p.failure.err()) })
	return first, nil
}

// Duplicate returns a group of the same processes with separate messages and collective calls, for another goroutine:
// calls of the two groups need no common order. limit is the longest wait in it. It may exceed that of this group, for
// waits until others have written files: both groups detect processes that have ended, and share their failures. All
// processes must call it. The duplicate must be closed before this group. Its messages use Pieces.
func (p *Processes) Duplicate(ctx context.Context, limit time.Duration) (*Processes, error) {
	if p.IsAlone() {
		return Alone(), nil
	}
	d := &Processes{
		Rank: p.Rank, Hosts: p.Hosts, Nodes: p.Nodes, Locals: p.Locals, Library: p.Library,
		options: p.options, library: p.library, lent: true, watch: p.watch, failure: p.failure, whole: p,
		lastTag: p.lastTag, sameHost: Pieces, interHost: Pieces,
	}
	d.options.Limit = limit
	what := "duplicate the processes"
	err := p.together(ctx, what, func(ctx context.Context) (err error) {
		if _, err = p.gather(ctx, what, nil); err != nil {
			return err
		}
		if d.control, err = p.control.Dup(ctx, p.options.Limit); err != nil {
			return err
		}
		d.data, err = p.control.Dup(ctx, p.options.Limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// closeDuplicate waits until all processes have called it, and frees the communicators.
func (p *Processes) closeDuplicate(ctx context.Context) error {
	if p.Err() == nil {
		if _, err := Gather(ctx, p, "close", 0); err != nil {
			return err
		}
	}
	if p.Err() != nil {
		return nil
	}
	p.gone = true
	return errors.Join(p.data.Free(), p.control.Free())
}

// Close waits until all processes have called it, for at most the limit, and finalizes MPI if Join has initialized
// it. After a failure it does not wait, and MPI stays initialized: the process should end soon, preferably by
// Abort. Closing twice is allowed.
func (p *Processes) Close() error {
	if p == nil || p.control == nil || p.closed {
		return nil
	}
	p.closed = true
	ctx := context.Background()
	if p.whole != nil && p.unhook == nil {
		return p.closeDuplicate(ctx)
	}
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

// Disconnect frees the objects of networks on devices. It must be called before those devices are closed, and
// after messages are closed. Messages created afterwards use Pieces until Use is called again.
func (p *Processes) Disconnect() error {
	if p == nil || p.control == nil {
		return nil
	}
	return errors.Join(p.disconnectHost(), p.EndNCCL())
}

// EndNCCL is Disconnect for NCCL only.
func (p *Processes) EndNCCL() error {
	if p.pairs == nil {
		return nil
	}
	ended := p.pairs
	p.pairs, p.sameHost, p.interHost = nil, Pieces, Pieces
	return ended.close(p.Err())
}

// sweepHost frees the closed messages that no other process has open.
func (p *Processes) sweepHost() (err error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.host = slices.DeleteFunc(p.host, func(h hostGroup) bool {
		if p.Err() != nil || !h.unused() {
			return false
		}
		err = errors.Join(err, h.free())
		return true
	})
	return err
}

// disconnectHost closes all messages between processes of the host, and waits a moment for the others to do the same.
// Then nothing arrives here any more.
func (p *Processes) disconnectHost() (err error) {
	p.lock.Lock()
	all := slices.Clone(p.host)
	p.lock.Unlock()
	for _, h := range all {
		err = errors.Join(err, h.Close())
	}
	const patience = 5 * time.Second
	for end := time.Now().Add(patience); p.Err() == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err = errors.Join(err, p.sweepHost()); p.hasNoHost() {
			return err
		}
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.host = nil
	return err
}

func (p *Processes) hasNoHost() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return len(p.host) == 0
}

// meetAtEnd waits for all processes, and exchanges the last notes.
func (p *Processes) meetAtEnd(ctx context.Context) error {
	if p.Err() != nil {
		return nil // the caller has the error
	}
	if _, err := Gather(ctx, p, "close", 0); err != nil {
		return err
	}
	close(p.watch.quiet)
	if err := p.together(ctx, "close", p.awaitLeave); err != nil {
		return err
	}
	// MPI may keep a last note until it is called again, and MPI_Finalize waits for the receiver of that note.
	return p.together(ctx, "close",
		func(ctx context.Context) error { return p.control.Barrier(ctx, p.options.Limit) })
}

// awaitLeave waits until no notes are in flight between the threads that listen.
func (p *Processes) awaitLeave(ctx context.Context) error {
	timer := time.NewTimer(p.options.Limit)
	defer timer.Stop()
	select {
	case <-p.watch.left:
		return nil
	case <-timer.C:
		return fmt.Errorf("not all processes have sent their last note within %v", p.options.Limit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Delays before Abort: the launcher of MPICH loses output that it has not forwarded, and rank 0 should print its
// error before the others end it.
const (
	passedOn = 500 * time.Millisecond
	grace    = 2 * time.Second
)

// Abort ends this process and all others with the exit code, after a failure. It waits briefly so that output is
// forwarded, longer on ranks other than 0 so that rank 0 can print its error. It has no effect on a communicator
// passed to Lend, whose program decides how it ends, or after Close has finalized MPI.
func (p *Processes) Abort(code int) {
	if p == nil || p.control == nil || p.lent || p.ended {
		return
	}
	if p.Rank == 0 {
		time.Sleep(passedOn)
	} else {
		time.Sleep(grace)
	}
	_ = p.library.Abort(code) // does not return unless MPI fails: then the caller ends the process
}

// Tags of the communicator for collective calls.
const bytesTag = 1

// SendBytes sends bytes to a process that calls ReceiveBytes for the same number, piece by piece. It returns when
// they may be changed, and waits for at most the limit per piece. Calls between two processes must be in the same
// order on both. An error is reported to all processes.
func (p *Processes) SendBytes(ctx context.Context, what string, b []byte, to int) error {
	return p.inPieces(ctx, fmt.Sprintf("%s, to %s", what, p.Name(to)), b, to, true)
}

// ReceiveBytes fills b with the bytes that a process sends by SendBytes.
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
