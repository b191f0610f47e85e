// Acoustic simulates a pulse of sound in a box with rigid walls. The pressure is at cell centers, each velocity between
// two cells of its axis: three variables with ghosts on one side each, updated in place by the two stages of a step.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

//go:embed acoustic.cu
var source string

// parameters are those of acoustic.cu.
type parameters struct{ Courant float64 }

const courant = 0.5 // c dt/h; the scheme is stable up to 1/sqrt(2)

var (
	velocity = sweep.Point{
		Name: "velocity", Dims: 2, CUDA: source, File: "acoustic.cu", Go: moveVelocity, Parameters: parameters{courant},
	}
	pressure = sweep.Point{
		Name: "pressure", Dims: 2, CUDA: source, File: "acoustic.cu", Go: movePressure, Parameters: parameters{courant},
	}
)

func moveVelocity(r *sweep.Row) {
	at := func(name string, dx, dy int) []float64 { return sweep.At[float64](r, name, dx, dy, 0) }
	p, west, south, vx, vy := at("p", 0, 0), at("p", -1, 0), at("p", 0, -1), at("vx", 0, 0), at("vy", 0, 0)
	for i := range r.N {
		if r.I+i > 0 {
			vx[i] -= float64(courant * (p[i] - west[i]))
		}
		if r.J > 0 {
			vy[i] -= float64(courant * (p[i] - south[i]))
		}
	}
}

func movePressure(r *sweep.Row) {
	at := func(name string, dx, dy int) []float64 { return sweep.At[float64](r, name, dx, dy, 0) }
	p, vx, east, vy, north := at("p", 0, 0), at("vx", 0, 0), at("vx", 1, 0), at("vy", 0, 0), at("vy", 0, 1)
	for i := range r.N {
		p[i] -= float64(courant * (east[i] - vx[i] + north[i] - vy[i]))
	}
}

// room is the pressure and velocities of the box.
type room struct{ p, vx, vy *scheme.Variable }

// specs are the Specs of the pressure and the velocities. A velocity needs the pressure of the cell before it, and a
// pressure the velocities at the faces after it.
var specs = [3]halo.Spec{
	{Name: "p", Element: halo.Float64, Width: domain.Radius{Minus: domain.Vec{1, 1}}},
	{Name: "vx", Element: halo.Float64, Width: domain.Radius{Plus: domain.Vec{1, 0}}, Stagger: []bool{true, false}},
	{Name: "vy", Element: halo.Float64, Width: domain.Radius{Plus: domain.Vec{0, 1}}, Stagger: []bool{false, true}},
}

// newRoom returns a box with a pulse of pressure.
func newRoom(place *halo.Placement) (r room, err error) {
	for i, v := range []**scheme.Variable{&r.p, &r.vx, &r.vy} {
		if *v, err = scheme.NewVariable(place, specs[i], 1); err != nil {
			return r, err
		}
	}
	still := func(domain.Vec) float64 { return 0 }
	clap := func(at domain.Vec) float64 {
		dx, dy := float64(at[0]-place.Grid.Size[0]/3), float64(at[1]-place.Grid.Size[1]/3)
		return math.Exp(-(dx*dx + dy*dy) / 16)
	}
	return r, errors.Join(halo.FillPoints(r.p.Level(0), clap),
		halo.FillPoints(r.vx.Level(0), still), halo.FillPoints(r.vy.Level(0), still))
}

// step returns the two stages.
func (r room) step() *scheme.Step {
	here, west, east := domain.Vec{}, domain.Vec{-1}, domain.Vec{1}
	south, north := domain.Vec{0, -1}, domain.Vec{0, 1}
	return &scheme.Step{Name: "acoustic", Stages: []scheme.Stage{
		{
			Name: "velocity", Point: &velocity,
			Reads:  []scheme.Access{r.p.At(0, stencil.Offsets(here, west, south)), r.vx.At(0, nil), r.vy.At(0, nil)},
			Writes: []scheme.Access{r.vx.At(1, nil), r.vy.At(1, nil)},
		},
		{
			Name: "pressure", Point: &pressure,
			Reads: []scheme.Access{
				r.vx.At(1, stencil.Offsets(here, east)), r.vy.At(1, stencil.Offsets(here, north)), r.p.At(0, nil),
			},
			Writes: []scheme.Access{r.p.At(1, nil)},
		},
	}}
}

func newAcoustic(ctx context.Context, s *halo.Session, size []int) (*example.Simulation, error) {
	place, err := s.Cut(ctx, halo.Cutting{Size: size, Fields: specs[:]})
	if err != nil {
		return nil, err
	}
	r, err := newRoom(place)
	if err != nil {
		return nil, err
	}
	report := func(x *scheme.Runner) (string, error) {
		values, err := halo.ReadAll[float64](r.p.Level(x.Done()))
		return fmt.Sprintf("acoustic: the mean pressure is %.12f", mean(values)), err
	}
	return &example.Simulation{Step: r.step(), Fields: []*scheme.Variable{r.p, r.vx, r.vy}, Report: report}, nil
}

// mean returns the mean pressure, which is conserved.
func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

func main() {
	example.Steps{Name: "acoustic", Size: []int{300, 200}, Steps: 1000, New: newAcoustic}.Main()
}
