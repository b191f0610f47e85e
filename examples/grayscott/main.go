// Grayscott computes a reaction and diffusion of two substances on a periodic plane: two variables, which one stage
// reads around a point and writes.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

//go:embed grayscott.cu
var source string

// rates are the coefficients of the model per step: parameters of grayscott.cu.
type rates struct{ DiffuseU, DiffuseV, Feed, Kill float64 }

var coral = rates{DiffuseU: 0.2, DiffuseV: 0.1, Feed: 0.0545, Kill: 0.062} // grows like a catalyst

// point is the step of one point, in CUDA and in Go.
func point(r rates) *sweep.Point {
	return &sweep.Point{Name: "grayscott", Dims: 2, CUDA: source, File: "grayscott.cu", Go: grayscott, Parameters: r}
}

func grayscott(r *sweep.Row) {
	u, v := sweep.At[float64](r, "u", 0, 0, 0), sweep.At[float64](r, "v", 0, 0, 0)
	nextU, nextV := sweep.At[float64](r, "next_u", 0, 0, 0), sweep.At[float64](r, "next_v", 0, 0, 0)
	aroundU, aroundV := laplacian(r, "u"), laplacian(r, "v")
	rate := sweep.Parameters[rates](r)
	for i := range r.N {
		made := float64(float64(u[i]*v[i]) * v[i])
		nextU[i] = u[i] + float64(rate.DiffuseU*aroundU(i)) - made + float64(rate.Feed*(1-u[i]))
		nextV[i] = v[i] + float64(rate.DiffuseV*aroundV(i)) + made - float64((rate.Feed+rate.Kill)*v[i])
	}
}

// laplacian is the counterpart of laplacian in grayscott.cu, for point i of a row.
func laplacian(r *sweep.Row, name string) func(i int) float64 {
	at := func(dx, dy int) []float64 { return sweep.At[float64](r, name, dx, dy, 0) }
	here, west, east, south, north := at(0, 0), at(-1, 0), at(1, 0), at(0, -1), at(0, 1)
	southwest, southeast, northwest, northeast := at(-1, -1), at(1, -1), at(-1, 1), at(1, 1)
	return func(i int) float64 {
		faces := west[i] + east[i] + south[i] + north[i]
		corners := southwest[i] + southeast[i] + northwest[i] + northeast[i]
		return float64(0.2*faces) + float64(0.05*corners) - here[i]
	}
}

// specs are the two variables.
var specs = [2]halo.Spec{
	{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1), Connectivity: halo.Corners},
	{Name: "v", Element: halo.Float64, Width: domain.UniformRadius(2, 1), Connectivity: halo.Corners},
}

// newVariable returns a variable with one value in a square in the middle, and another value outside.
func newVariable(place *halo.Placement, spec halo.Spec, inside, around float64) (*scheme.Variable, error) {
	v, err := scheme.NewVariable(place, spec, 2)
	if err != nil {
		return nil, err
	}
	middle := domain.Box{Hi: domain.Vec{0, 0, 1}}
	for a, n := range place.Grid.Size[:2] {
		middle.Lo[a], middle.Hi[a] = n*3/8, n*5/8
	}
	return v, halo.FillPoints(v.Level(0), func(at domain.Vec) float64 {
		if middle.Contains(at) {
			return inside
		}
		return around
	})
}

func newGrayScott(r rates) func(ctx context.Context, s *halo.Session, size []int) (*example.Simulation, error) {
	return func(ctx context.Context, s *halo.Session, size []int) (*example.Simulation, error) {
		place, err := s.Cut(ctx, halo.Cutting{Size: size, Periodic: []bool{true, true}, Fields: specs[:]})
		if err != nil {
			return nil, err
		}
		u, err := newVariable(place, specs[0], 0.5, 1)
		if err != nil {
			return nil, err
		}
		v, err := newVariable(place, specs[1], 0.25, 0)
		if err != nil {
			return nil, err
		}
		box := stencil.Box(2, 1)
		step := &scheme.Step{
			Name: "grayscott",
			Stages: []scheme.Stage{{
				Reads:  []scheme.Access{u.At(0, box), v.At(0, box)},
				Writes: []scheme.Access{u.At(1, nil).Named("next_u"), v.At(1, nil).Named("next_v")},
				Point:  point(r),
			}},
			Measured: []*scheme.Variable{u, v},
		}
		report := func(x *scheme.Runner) (string, error) {
			values, err := halo.ReadAll[float64](v.Level(x.Done()))
			return fmt.Sprintf("grayscott: v is at most %.9f", slices.Max(values)), err
		}
		return &example.Simulation{Step: step, Fields: []*scheme.Variable{u, v}, Report: report}, nil
	}
}

func main() {
	example.Steps{Name: "grayscott", Size: []int{256, 256}, Steps: 1000, New: newGrayScott(coral)}.Main()
}
