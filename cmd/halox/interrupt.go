package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the outcome of a run that was told to stop.
var errInterrupted = errors.New("interrupted")

// untilInterrupted returns a context that ends at the first signal to stop, for
// what can stop in good order. The next signal ends the program at once.
func untilInterrupted(parent context.Context) (ctx context.Context, release context.CancelFunc) {
	ctx, release = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, release)
	return ctx, release
}

// interruption is errInterrupted for the error of a context that has ended.
func interruption(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errInterrupted
	}
	return err
}
