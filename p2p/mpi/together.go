package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
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

// Gather returns what each process gives, by rank. Values travel as JSON. All processes must call it. what names the
// purpose: processes that meet for different purposes, because they have not made the same collective calls before, all
// get an error that says which process came for what. It waits for the others for at most Options.Limit.
func Gather[T any](ctx context.Context, p *Processes, what string, mine T) ([]T, error) {
	if p.IsAlone() {
		return []T{mine}, nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, p.Fail(fmt.Errorf("mpi: %s: %w", what, err))
	}
	texts, err := p.Gather(ctx, what, text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("mpi: %s: %s: %w", what, p.Name(rank), err)
		}
	}
	return all, nil
}

// Broadcast returns, on all processes, what the root gives; what others give is ignored. All must call it, see [Gather].
func Broadcast[T any](ctx context.Context, p *Processes, what string, mine T, root int) (T, error) {
	if p.IsAlone() {
		return mine, nil
	}
	var text []byte
	if p.Rank == root {
		var err error
		if text, err = json.Marshal(mine); err != nil {
			return mine, p.Fail(fmt.Errorf("mpi: %s: %w", what, err))
		}
	}
	text, err := p.Broadcast(ctx, what, text, root)
	if err != nil || p.Rank == root {
		return mine, err
	}
	var got T
	if err := json.Unmarshal(text, &got); err != nil {
		return mine, fmt.Errorf("mpi: %s: %s: %w", what, p.Name(root), err)
	}
	return got, nil
}

// Gather returns what each process has given, by rank. All must call it; what says for what, in
// errors. It waits for the others at most as long as the limit. Where processes meet for different things, as they do that
// have not made the same collective calls before, all get an error that says who is where.
func (p *Processes) Gather(ctx context.Context, what string, b []byte) (all [][]byte, err error) {
	if p.IsAlone() {
		return [][]byte{b}, nil
	}
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
	if p.IsAlone() {
		return b, nil
	}
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

// Agree returns nil on all processes if all give nil, else an error on all. All must call it: it is how processes do
// something together that each may fail at.
//
// Without kinds the error joins that of this process and those of the others, as *[RemoteError], each text once.
// With kinds it is the worst error alone: kinds are in ascending order, errors that wrap none of them are worse, and the
// end of a context is the worst. Where this process has an error of the worst kind it gets its own, else a *[RemoteError]
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

// kindOf returns 0 for nil, the place of the first kind that the error wraps from 1 on, the next number for other errors,
// and the one after that for the end of a context.
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
