package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

//go:embed diffusion.cu
var source string

var (
	laplacePoint = sweep.Point{Name: "laplace", Dims: 3, CUDA: source, File: "diffusion.cu", Go: laplaceRow}
	fluxesPoint  = sweep.Point{Name: "fluxes", Dims: 3, CUDA: source, File: "diffusion.cu", Go: fluxesRow}
	diffusePoint = sweep.Point{Name: "diffuse", Dims: 3, CUDA: source, File: "diffusion.cu", Go: diffuseRow}
)

func laplacian(here, west, east, south, north float64) float64 {
	return float64(4*here) - (west + east + south + north)
}

func limited(ahead, here, valueAhead, value float64) float64 {
	flux := ahead - here
	if float64(flux*(valueAhead-value)) > 0 {
		return 0
	}
	return flux
}

func diffused(value, x, beforeX, y, beforeY float64) float64 {
	return value - float64(0.025*(x-beforeX+y-beforeY))
}

func laplaceRow(r *sweep.Row) {
	u := func(dx, dy int) []float64 { return sweep.At[float64](r, "u", dx, dy, 0) }
	here, west, east, south, north, lap := u(0, 0), u(-1, 0), u(1, 0), u(0, -1), u(0, 1), sweep.At[float64](r, "lap", 0, 0, 0)
	for i := range r.N {
		lap[i] = laplacian(here[i], west[i], east[i], south[i], north[i])
	}
}

func fluxesRow(r *sweep.Row) {
	at := func(name string, dx, dy int) []float64 { return sweep.At[float64](r, name, dx, dy, 0) }
	u, uEast, uNorth := at("u", 0, 0), at("u", 1, 0), at("u", 0, 1)
	lap, lapEast, lapNorth := at("lap", 0, 0), at("lap", 1, 0), at("lap", 0, 1)
	flx, fly := at("flx", 0, 0), at("fly", 0, 0)
	for i := range r.N {
		flx[i] = limited(lapEast[i], lap[i], uEast[i], u[i])
		fly[i] = limited(lapNorth[i], lap[i], uNorth[i], u[i])
	}
}

func diffuseRow(r *sweep.Row) {
	at := func(name string, dx, dy int) []float64 { return sweep.At[float64](r, name, dx, dy, 0) }
	u, flx, flxWest, fly, flySouth, next := at("u", 0, 0), at("flx", 0, 0), at("flx", -1, 0), at("fly", 0, 0), at("fly", 0, -1), at("next", 0, 0)
	for i := range r.N {
		next[i] = diffused(u[i], flx[i], flxWest[i], fly[i], flySouth[i])
	}
}

// specs are those of the values, their Laplacian and the fluxes. Ghosts lie on the sides that the next stage reads.
var specs = [4]halo.Spec{
	{Name: "u", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{1, 1}, Plus: domain.Vec{1, 1}}},
	{Name: "lap", Element: halo.Float64, Width: domain.Radius{Plus: domain.Vec{1, 1}}},
	{Name: "flx", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{1}}},
	{Name: "fly", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{0, 1}}},
}

// byStreams steps values under a scheme of halox: sweeps and exchanges, ordered by streams and events.
type byStreams struct {
	variables [4]*scheme.Variable
	runner    *scheme.Runner
	size      domain.Vec
}

func newByStreams(ctx context.Context, s *halo.Session, p problem, o scheme.Options) (b *byStreams, err error) {
	n := len(s.Devices)
	b = &byStreams{size: domain.Vec{p.nx, p.ny * n, p.nz}}
	place, err := s.Cut(ctx, halo.Cutting{Size: b.size[:], Periodic: [3]bool{true, true}, Fields: specs[:], Parts: domain.Vec{1, n, 1}, Devices: n})
	if err != nil {
		return nil, err
	}
	for i, spec := range specs {
		levels := 1
		if i == 0 {
			levels = 2
		}
		if b.variables[i], err = scheme.NewVariable(place, spec, levels); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	u, lap, flx, fly := b.variables[0], b.variables[1], b.variables[2], b.variables[3]
	here, west, east := domain.Vec{}, domain.Vec{-1}, domain.Vec{1}
	south, north := domain.Vec{0, -1}, domain.Vec{0, 1}
	ahead := stencil.Offsets(here, east, north)
	step := &scheme.Step{Name: "diffusion", Stages: []scheme.Stage{
		{
			Name: "laplace", Point: &laplacePoint,
			Reads:  []scheme.Access{u.At(0, stencil.Offsets(here, west, east, south, north))},
			Writes: []scheme.Access{lap.At(1, nil)},
		},
		{
			Name: "fluxes", Point: &fluxesPoint,
			Reads:  []scheme.Access{u.At(0, ahead), lap.At(1, ahead)},
			Writes: []scheme.Access{flx.At(1, nil), fly.At(1, nil)},
		},
		{
			Name: "diffuse", Point: &diffusePoint,
			Reads:  []scheme.Access{u.At(0, nil), flx.At(1, stencil.Offsets(here, west)), fly.At(1, stencil.Offsets(here, south))},
			Writes: []scheme.Access{u.At(1, nil).Named("next")},
		},
	}}
	if b.runner, err = scheme.New(ctx, s, step, o); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// load sets the newest values; all else is not a number until it is computed.
func (b *byStreams) load(u grid) error {
	owned := domain.Box{Hi: b.size}
	errs := []error{halo.FillPoints(b.variables[0].Level(b.runner.Done()), func(at domain.Vec) float64 {
		if !owned.Contains(at) {
			return nan // a ghost
		}
		return u.row(at[2], at[1])[at[0]]
	})}
	for _, v := range b.variables[1:] {
		errs = append(errs, halo.FillPoints(v.Level(b.runner.Done()), func(domain.Vec) float64 { return nan }))
	}
	return errors.Join(errs...)
}

// read returns the newest values.
func (b *byStreams) read() (u grid, err error) {
	u = grid{nx: b.size[0], ny: b.size[1], nz: b.size[2]}
	u.values, err = halo.ReadAll[float64](b.variables[0].Level(b.runner.Done()))
	return u, err
}

// run makes so many steps, and returns what they took.
func (b *byStreams) run(ctx context.Context, steps int) (time.Duration, error) {
	res, err := b.runner.Steps(ctx, int64(steps))
	if err == nil && res.Steps != int64(steps) {
		err = fmt.Errorf("it made %d of %d steps: %w", res.Steps, steps, context.Cause(ctx))
	}
	if err != nil {
		return 0, err
	}
	return res.Loop, nil
}

// Close frees what it holds. Closing twice is no error.
func (b *byStreams) Close() (err error) {
	for _, v := range b.variables {
		if v != nil {
			err = errors.Join(err, v.Close())
		}
	}
	return err
}
