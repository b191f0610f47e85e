// Wave solves the wave equation in a box with the value 0 at its walls. The initial state is the lowest standing wave
// at the frequency of the leap-frog scheme, which preserves it up to rounding.
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
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

//go:embed wave.cu
var source string

// parameters are those of wave.cu.
type parameters struct{ Courant2 float64 }

const courant = 0.5 // c dt/h; the scheme is stable up to 1/sqrt(3)

// point is the step of one point, in CUDA and in Go.
var point = sweep.Point{
	Name: "wave", Dims: 3, CUDA: source, File: "wave.cu", Go: wave, Parameters: parameters{courant * courant},
}

func wave(r *sweep.Row) {
	u := func(dx, dy, dz int) []float64 { return sweep.At[float64](r, "u", dx, dy, dz) }
	now, west, east, south, north := u(0, 0, 0), u(-1, 0, 0), u(1, 0, 0), u(0, -1, 0), u(0, 1, 0)
	below, above := u(0, 0, -1), u(0, 0, 1)
	old, next := sweep.At[float64](r, "old", 0, 0, 0), sweep.At[float64](r, "next", 0, 0, 0)
	c2 := sweep.Parameters[parameters](r).Courant2
	for i := range next {
		sum := west[i] + east[i] + south[i] + north[i] + below[i] + above[i]
		next[i] = float64(2*now[i]) - old[i] + float64(c2*(sum-float64(6*now[i])))
	}
}

// standing is the lowest standing wave at a step.
func standing(size []int, step int) func(p domain.Vec) float64 {
	sum := 0.0
	for _, n := range size {
		s := math.Sin(math.Pi / float64(n+1) / 2)
		sum += s * s
	}
	swing := math.Cos(2 * math.Asin(courant*math.Sqrt(sum)) * float64(step))
	return func(p domain.Vec) float64 {
		v := swing
		for a, n := range size {
			v *= math.Sin(math.Pi * float64(p[a]+1) / float64(n+1))
		}
		return v
	}
}

func newWave(ctx context.Context, s *halo.Session, size []int) (*example.Simulation, error) {
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}
	place, err := s.Cut(ctx, halo.Cutting{Size: size, Fields: []halo.Spec{spec}})
	if err != nil {
		return nil, err
	}
	u, err := scheme.NewVariable(place, spec, 3)
	if err != nil {
		return nil, err
	}
	u.Boundary = boundary.All(boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{0}})
	err = errors.Join(halo.FillPoints(u.Level(0), standing(size, 0)), halo.FillPoints(u.Level(-1), standing(size, -1)))
	if err != nil {
		return nil, err
	}
	step := &scheme.Step{
		Name: "wave",
		Stages: []scheme.Stage{{
			Reads:  []scheme.Access{u.At(0, stencil.Star(3, 1)), u.At(-1, nil).Named("old")},
			Writes: []scheme.Access{u.At(1, nil).Named("next")},
			Point:  &point,
		}},
		Measured: []*scheme.Variable{u},
	}
	return &example.Simulation{Step: step, Fields: []*scheme.Variable{u}, Report: report(u, size)}, nil
}

// report describes the difference from the standing wave.
func report(u *scheme.Variable, size []int) func(x *scheme.Runner) (string, error) {
	return func(x *scheme.Runner) (string, error) {
		want, worst := standing(size, int(x.Done())), 0.0
		values, err := halo.ReadAll[float64](u.Level(x.Done()))
		for i, v := range values {
			p := domain.Vec{i % size[0], i / size[0] % size[1], i / size[0] / size[1]}
			worst = max(worst, math.Abs(v-want(p)))
		}
		return fmt.Sprintf("wave: the largest difference from the standing wave is %.1e", worst), err
	}
}

func main() {
	example.Steps{Name: "wave", Size: []int{96, 96, 96}, Steps: 300, New: newWave}.Main()
}
