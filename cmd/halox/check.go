package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/files"
	"github.com/halox/halox/solvers"
)

// checkRun refuses what a run of the config refuses after it was loaded, as far as that can be told
// without the devices and their memory: all at once.
func checkRun(ctx context.Context, file string, c *configs.Run) error {
	during(ctx, "checking the config", nil)
	p, err := newProblem(c)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	for _, err := range []error{checkCut(c, p), p.CheckValues(ctx)} {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	return errors.Join(append(errs, checkOutputs(file, c.Output, possible))...)
}

// possible refuses a file that could not be written, and makes no folder for it.
func possible(file string) error {
	if err := files.CheckPossible(file); err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, err)
	}
	return nil
}

// checkCut refuses a number of devices, or parts, that the grid is too small for, as a run
// does.
func checkCut(c *configs.Run, p *solvers.Problem) error {
	if c.Devices.Count == 0 {
		return nil
	}
	parts := domain.Vec{1, 1, 1}
	if copy(parts[:], c.Decomposition) == 0 {
		_, err := domain.AutoParts(p.Grid, int(c.Devices.Count), p.Width())
		return under("devices.count", err)
	}
	cut, err := domain.Decompose(p.Grid, parts)
	if err == nil {
		err = cut.CheckWidth(p.Width())
	}
	return under("decomposition", err)
}

// under names the key that an error is about.
func under(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}
