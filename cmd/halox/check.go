package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// checkRun rejects what a run of the config rejects after it was loaded, as far as that can be told
// without the devices and their memory: all at once.
func checkRun(ctx context.Context, file string, c *configs.Run) error {
	return errors.Join(checkProblem(ctx, file, c),
		option.CheckFiles(outputFiles(c.Output), option.File{Name: "the config", Path: file}))
}

// checkProblem is checkRun without the outputs, for commands that write none.
func checkProblem(ctx context.Context, file string, c *configs.Run) error {
	during(ctx, "checking the config", nil)
	p, err := newProblem(c)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var errs []error
	name := scheme.Scheme(c.Exchange.Scheme)
	tooMany := under("exchange.scheme", name.Needs().CheckDevices(name, int(c.Devices.Count)))
	for _, err := range []error{tooMany, checkCut(c, p), p.CheckValues(ctx), checkExact(ctx, c, p)} {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	return errors.Join(errs...)
}

// checkExact rejects an exact solution that is not finite after the last step; where a run may end before that, one
// that is not finite before the first step either.
func checkExact(ctx context.Context, c *configs.Run, p *solvers.Problem) error {
	if c.Exact == "" {
		return nil
	}
	exact, err := stencil.Parse(c.Exact)
	if err != nil {
		return err
	}
	last := p.CheckExact(ctx, exact, int64(c.Stop.Iterations))
	if last == nil || c.Stop.Tolerance == 0 || !exact.Uses("t") {
		return last
	}
	if first := p.CheckExact(ctx, exact, 0); first == nil || context.Cause(ctx) != nil {
		return first
	}
	return last
}

// checkCut rejects a number of devices, or parts, that the grid is too small for, as a run does.
func checkCut(c *configs.Run, p *solvers.Problem) error {
	cut, err := cutOf(c, p)
	if err != nil {
		return err
	}
	return under("boundary", p.CheckWalls(cut))
}

// cutOf cuts the grid as the config says; where it leaves that open, for as many devices as it names, or one.
func cutOf(c *configs.Run, p *solvers.Problem) (cut *domain.Decomposition, err error) {
	parts, key := domain.Vec{1, 1, 1}, "grid.size"
	if copy(parts[:], c.Decomposition) > 0 {
		key = "decomposition"
	} else if c.Devices.Count > 0 {
		key = "devices.count"
		if parts, err = domain.AutoParts(p.Grid, int(c.Devices.Count), p.Width()); err != nil {
			return nil, under(key, wide(p, tooSmall(err, p, int(c.Devices.Count))))
		}
	}
	cut, err = domain.Decompose(p.Grid, parts)
	if err == nil {
		err = cut.CheckWidth(p.Width())
	}
	return cut, under(key, wide(p, err))
}

// tooSmall adds what to do to the error of a grid that is too small for so many devices. Fewer do not help where one is
// too many.
func tooSmall(err error, p *solvers.Problem, devices int) error {
	if _, alone := domain.AutoParts(p.Grid, 1, p.Width()); devices == 1 || alone != nil {
		return fmt.Errorf("%w: use a larger grid", err)
	}
	return fmt.Errorf("%w: use fewer devices or a larger grid", err)
}

// checkMemory rejects a grid that is too large for the memory of the host, where its devices are to hold it. A plan
// and a run ask the devices themselves.
func checkMemory(file string, c *configs.Run) error {
	p, err := newProblem(c)
	if err != nil || c.Devices.Backend != string(streams.Host) {
		return err
	}
	cut, err := cutOf(c, p)
	if err == nil {
		err = under("grid.size", checkHost(p, cut))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// checkHost returns an error unless the fields of a problem fit on CPU devices.
func checkHost(p *solvers.Problem, cut *domain.Decomposition) (err error) {
	devices, err := streams.HostPlatform(len(cut.Subdomains)).Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, streams.CloseAll(devices)) }()
	place, err := halo.Place(cut, devices)
	if err != nil {
		return err
	}
	return solvers.Fit(p, place)
}

// wide adds to an error, whose text ends with what to do, that fewer steps between two exchanges would do too, if there
// are several.
func wide(p *solvers.Problem, err error) error {
	if err == nil || p.Group == 1 {
		return err
	}
	return fmt.Errorf("%w, or fewer steps between two exchanges than %d (exchange.steps)", err, p.Group)
}

// under names the key that an error is about.
func under(key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", key, err)
}

// outputFiles returns the files that a config names, by their keys.
func outputFiles(o configs.Output) []option.File {
	return []option.File{{Name: "output.picture", Path: o.Picture}, {Name: "output.field", Path: o.Field},
		{Name: "output.record", Path: o.Record}}
}
