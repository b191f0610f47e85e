package halo

import (
	"context"
	"errors"
)

var errNoContext = errors.New("halo: the context is nil: see context.Background")

// live returns an error if there is no context, or it has ended.
func live(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ctx.Err()
}
