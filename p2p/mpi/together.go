package mpi

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// until returns a context that also ends with the first failure of any process.
func (p *Processes) until(ctx context.Context) (context.Context, context.CancelFunc) {
	merged, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.failure.ctx, func() { end(context.Cause(p.failure.ctx)) })
	return merged, func() { stop(); end(nil) }
}

// Gather returns what each process has given, by rank. All must call it; what says for what, in
// errors. It waits for the others at most as long as the limit.
func (p *Processes) Gather(ctx context.Context, what string, b []byte) (all [][]byte, err error) {
	err = p.together(ctx, what, func(ctx context.Context) (err error) {
		all, err = p.control.Allgather(ctx, p.options.Limit, b)
		return err
	})
	return all, err
}

// Broadcast returns, on all processes, what the root has given. All must call it.
func (p *Processes) Broadcast(ctx context.Context, what string, b []byte, root int) (got []byte, err error) {
	err = p.together(ctx, what, func(ctx context.Context) (err error) {
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
		text = "x" + mine.Error() // an error may have no words
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
