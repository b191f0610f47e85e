package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// until returns a context that also ends with the first failure of any process.
func (p *Processes) until(ctx context.Context) (context.Context, context.CancelFunc) {
	merged, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.failure.ctx, func() { end(context.Cause(p.failure.ctx)) })
	return merged, func() { stop(); end(nil) }
}

// Gather returns what each process has given, by rank. All must call it; what says for what, in
// errors. It waits for the others at most as long as the limit. Where processes meet for different things, as they do that
// have not made the same collective calls before, all get an error that says who is where.
func (p *Processes) Gather(ctx context.Context, what string, b []byte) (all [][]byte, err error) {
	err = p.together(ctx, what, func(ctx context.Context) (err error) {
		all, err = p.gather(ctx, what, b)
		return err
	})
	return all, err
}

// gather is Gather within a collective call. Each piece travels behind what it is for.
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
			return nil, fmt.Errorf("%s has come for %q, and %s for %q: all must make the same calls in the same order", p.Name(rank), forWhat(other), p.Name(p.Rank), what)
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

// Broadcast returns, on all processes, what the root has given. All must call it, for the same, see Gather.
func (p *Processes) Broadcast(ctx context.Context, what string, b []byte, root int) (got []byte, err error) {
	err = p.together(ctx, what, func(ctx context.Context) (err error) {
		if _, err := p.gather(ctx, what, nil); err != nil {
			return err
		}
		got, err = p.control.Broadcast(ctx, p.options.Limit, b, root)
		return err
	})
	return got, err
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

// Agree returns nil on all processes where all have given nil, else on all an error: that of this
// process, and those of the others as *RemoteError, but for those that say the same. All must call it: it is how processes do
// something in step that each may fail at.
func (p *Processes) Agree(ctx context.Context, what string, mine error) error {
	text := ""
	if mine != nil {
		text = "x" + mine.Error()        // an error may have no words
		ctx = context.WithoutCancel(ctx) // which may be what has ended: others are to know why
	}
	all, err := p.Gather(ctx, what, []byte(text))
	if err != nil && mine != nil && strings.Contains(err.Error(), mine.Error()) {
		return mine // another had the same error, and has failed since
	}
	if err != nil {
		return errors.Join(mine, err)
	}
	errs := []error{mine}
	for rank, text := range all {
		if rank != p.Rank && len(text) > 0 && (mine == nil || string(text[1:]) != mine.Error()) {
			errs = append(errs, &RemoteError{rank, p.Hosts[rank], string(text[1:])})
		}
	}
	return errors.Join(errs...)
}
