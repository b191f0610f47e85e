package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stepper is a method: it holds values, and steps them.
type stepper interface {
	load(u grid) error
	read() (grid, error)
	run(ctx context.Context, steps int) (time.Duration, error)
	Close() error
}

// errDiffers says that a method gave other values than the reference.
var errDiffers = errors.New("not what the reference has")

// checked runs from the first values and compares what comes out with what is wanted, if that is not nil.
func checked(ctx context.Context, m stepper, first grid, want *grid, steps int) error {
	if err := m.load(first); err != nil {
		return err
	}
	if _, err := m.run(ctx, steps); err != nil {
		return err
	}
	got, err := m.read()
	if err != nil || want == nil {
		return err
	}
	if i := differ(got, *want); i >= 0 {
		return fmt.Errorf("%v at %d, %d, %d after %d steps, want %v: %w", got.values[i], i%got.nx, i/got.nx%got.ny, i/got.nx/got.ny, steps, want.values[i], errDiffers)
	}
	return nil
}
