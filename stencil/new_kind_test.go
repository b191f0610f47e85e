package stencil_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

const sample = "solver: heat\ngrid: {size: [9, 12], spacing: 0.125}\nboundary: {x: periodic, y: periodic}\nheat: {diffusivity: 2}\n"

// A new entry in kinds can be named in a config, has a stable time step, and solves.
func TestNewKind(t *testing.T) {
	t.Cleanup(stencil.RegisterDiamond())
	c := test.Must(configs.Parse("new.yaml", []byte(sample+"stencil: {shape: diamond}\n"), configs.Options{}))(t)
	if c.Stencil.Points != 13 || c.TimeStep() != 2*0.125*0.125/(3*2) {
		t.Errorf("got %+v with a time step of %v", c.Stencil, c.TimeStep())
	}
	if alone, halves := solved(t, c, 1), solved(t, c, 2); !slices.Equal(alone, halves) || slices.Equal(alone, make([]float64, len(alone))) {
		t.Error("results on two devices and on one differ")
	}
	for text, says := range map[string]string{
		"stencil: {points: 8}":                            "must be auto, 3, 5, 9, 25, 13, 7, 19 or 27, got 8",
		"stencil: {points: many}":                         "must be auto, 3, 5, 9, 25, 13, 7, 19 or 27, got \"many\"",
		"stencil: {shape: round}":                         "must be auto, star, box or diamond",
		"stencil: {shape: diamond}\ngrid.spacing: [1, 2]": "must not be diamond unless all axes have the same spacing",
	} {
		text = strings.Replace(sample, ", spacing: 0.125", "", 1) + text
		test.Says(t, test.ErrorOf(configs.Parse("bad.yaml", []byte(text), configs.Options{})), says)
	}
}

// solved runs some steps of a config on the given number of devices.
func solved(t *testing.T, c *configs.Run, devices int) []float64 {
	t.Helper()
	set := testdevices.Host(t, devices)
	grid, err1 := domain.NewGrid(c.Grid.Size, []bool{true, true})
	cut, err2 := domain.Decompose(grid, domain.Vec{1, devices, 1})
	initial, err3 := stencil.Parse("sin(x) + y*y")
	kind := stencil.Kind{Points: c.Stencil.Points, Shape: stencil.Shape(c.Stencil.Shape)}
	diffusivity, _ := c.Heat.Diffusivity.Number()
	heat, err4 := stencil.HeatOf(kind, c.Spacing(), diffusivity, c.TimeStep())
	test.Check(t, errors.Join(err1, err2, err3, err4))
	place := test.Must(halo.Place(cut, set.Devices))(t)
	p := &solvers.Problem{Grid: grid, Spacing: c.Spacing(), Element: domain.Float64, TimeStep: c.TimeStep(), Stencil: heat, Initial: initial}
	for i := range 4 {
		p.Boundary[i].Kind = solvers.Periodic
	}
	plan := test.Must(p.NewPlan(place, set.Links, p2p.Staged))(t)
	s := test.Must(solvers.New(t.Context(), p, plan, set.Compiler))(t)
	defer s.Close()
	test.Must(s.Run(context.Background(), scheme.Options{Scheme: scheme.TwoStream, Steps: 6}))(t)
	values := make([]float64, grid.Points())
	test.Check(t, s.Read(values, grid.Box()))
	return values
}

// At the stable step no wave grows; slightly beyond it, some wave does.
func TestStableSteps(t *testing.T) {
	t.Cleanup(stencil.RegisterDiamond())
	for _, spacing := range [][]float64{{0.5, 0.5}, {0.5, 0.25}, {0.5, 0.5, 0.5}, {0.5, 0.25, 1}} {
		for _, kind := range stencil.Kinds(len(spacing)) {
			if kind.OneSpacing() && !slices.Equal(spacing, equalSpacing(len(spacing), 0.5)) {
				continue
			}
			limit := kind.StableStep(spacing, 3)
			if at, beyond := growth(t, kind, spacing, limit), growth(t, kind, spacing, 1.01*limit); at > 1+1e-12 || beyond < 1.01 {
				t.Errorf("%v on %v: growth %v at the stable step and %v beyond it", kind, spacing, at, beyond)
			}
		}
	}
	if got := (stencil.Kind{Points: 6, Shape: stencil.BoxShape}).StableStep([]float64{1, 1}, 1); got != 0 {
		t.Errorf("StableStep of an unknown kind: got %v, want 0", got)
	}
}

// growth returns the largest growth factor of a wave in one step.
func growth(t *testing.T, kind stencil.Kind, spacing []float64, dt float64) (most float64) {
	t.Helper()
	s := test.Must(stencil.HeatOf(kind, spacing, 3, dt))(t)
	const waves = 60
	for n := range waves * waves * waves {
		wave, sum := [3]int{n % waves, n / waves % waves, n / waves / waves}, s.Center
		if len(spacing) == 2 && wave[2] > 0 {
			break
		}
		for _, g := range s.Groups {
			for _, o := range g.Offsets() {
				sum += g.Weight * math.Cos(2*math.Pi/waves*float64(wave[0]*o[0]+wave[1]*o[1]+wave[2]*o[2]))
			}
		}
		most = max(most, math.Abs(sum))
	}
	return most
}
