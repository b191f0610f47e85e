// Lbm computes the flow between two plates with the lattice Boltzmann method on the lattice D3Q19: one variable of 19
// components, each of which is read at the neighbor that it comes from. The flow converges to the parabola of
// Poiseuille.
package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
)

//go:embed lbm.cu
var source string

func newLBM(ctx context.Context, s *halo.Session, size []int) (*example.Simulation, error) {
	spec := halo.Spec{
		Name: "f", Element: halo.Float64, Components: len(velocities), SoA: true,
		Width: domain.UniformRadius(3, 1), Widths: widths(), Connectivity: halo.Edges,
	}
	place, err := s.Cut(ctx, halo.Cutting{Size: size, Periodic: []bool{true, false, true}, Fields: []halo.Spec{spec}})
	if err != nil {
		return nil, err
	}
	f, err := scheme.NewVariable(place, spec, 2)
	if err != nil {
		return nil, err
	}
	for q := range velocities { // a fluid at rest
		component, err := f.Level(0).Component(q)
		if err != nil {
			return nil, err
		}
		if err := halo.FillPoints(component, func(domain.Vec) float64 { return weight(q) }); err != nil {
			return nil, err
		}
	}
	step := &scheme.Step{
		Name: "lbm",
		Stages: []scheme.Stage{{
			Reads:  []scheme.Access{f.At(0, nil).ByComponent(footprints()).Sparsely()},
			Writes: []scheme.Access{f.At(1, nil).Named("next")},
			Point: &sweep.Point{
				Name: "lbm", Dims: 3, CUDA: source, File: "lbm.cu", Go: lbm,
				Parameters: parameters{int64(size[1]), omega, force},
			},
		}},
	}
	report := func(x *scheme.Runner) (string, error) {
		profile, err := profile(f.Level(x.Done()))
		return fmt.Sprintf("lbm: the largest velocity is %.6e", maximum(profile)), err
	}
	return &example.Simulation{Step: step, Fields: []*scheme.Variable{f}, Report: report}, nil
}

// profile returns the velocity along x in each layer between the plates, where x and z are 0.
func profile(f *halo.Field) ([]float64, error) {
	n := f.Cut.Grid.Size[1]
	rho, momentum, u := make([]float64, n), make([]float64, n), make([]float64, n)
	line, values := domain.Box{Hi: domain.Vec{1, n, 1}}, make([]float64, n)
	for q, c := range velocities {
		component, err := f.Component(q)
		if err != nil {
			return nil, err
		}
		if err := halo.Read(values, component, line); err != nil {
			return nil, err
		}
		for i, v := range values {
			rho[i] += v
			momentum[i] += float64(c[0]) * v
		}
	}
	for i := range u {
		u[i] = (momentum[i] - force/2) / rho[i] // half of the force that the collision adds
	}
	return u, nil
}

// poiseuille is the velocity in layer i of n when the flow has become steady.
func poiseuille(i, n int) float64 {
	viscosity := (1/omega - 0.5) / 3
	y := float64(i) + 0.5
	return force / (2 * viscosity) * y * (float64(n) - y)
}

func maximum(values []float64) (m float64) {
	for _, v := range values {
		m = max(m, v)
	}
	return m
}

func main() {
	example.Steps{Name: "lbm", Size: []int{32, 32, 32}, Steps: 1000, New: newLBM}.Main()
}
