// Lbm drives a fluid between two plates by the lattice Boltzmann method on the lattice D3Q19: one
// variable of 19 components, of which each is read from where it comes from. The flow becomes the
// parabola of Poiseuille.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

//go:embed lbm.cu
var source string

// parameters are those of lbm.cu: the points between the plates, the rate of relaxation, and the
// force on a unit of volume.
type parameters struct {
	NY           int64
	Omega, Force float64
}

// With this rate the wall lies half a spacing beyond the points, whatever the viscosity does else:
// (1/omega - 1/2)^2 is 3/16.
var omega = 1 / (0.5 + math.Sqrt(3.0/16))

const force = 1e-6

// velocities are the directions of the lattice, weights those of rest, of axes and of diagonals.
var (
	velocities = [19]domain.Vec{
		{}, {1}, {-1}, {0, 1}, {0, -1}, {0, 0, 1}, {0, 0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1},
		{1, 0, 1}, {-1, 0, -1}, {1, 0, -1}, {-1, 0, 1}, {0, 1, 1}, {0, -1, -1}, {0, 1, -1}, {0, -1, 1},
	}
	weights = [3]float64{1.0 / 3, 1.0 / 18, 1.0 / 36}
)

// opposite is the component that comes from the other side.
func opposite(q int) int {
	if q == 0 {
		return 0
	}
	return (q - 1 ^ 1) + 1
}

func weight(q int) float64 {
	c := velocities[q]
	return weights[c[0]*c[0]+c[1]*c[1]+c[2]*c[2]]
}

// lbm is the Go twin of lbm.cu.
func lbm(r *sweep.Row) {
	a := sweep.Parameters[parameters](r)
	var in, next [19][]float64
	for q, c := range velocities {
		in[q] = sweep.AtComponent[float64](r, "f", q, -c[0], -c[1], -c[2])
		if c[1] == 1 && r.J == 0 || c[1] == -1 && int64(r.J) == a.NY-1 {
			in[q] = sweep.AtComponent[float64](r, "f", opposite(q), 0, 0, 0)
		}
		next[q] = sweep.AtComponent[float64](r, "next", q, 0, 0, 0)
	}
	for i := range r.N {
		rho, u := 0.0, [3]float64{}
		for q, c := range velocities {
			rho += in[q][i]
			for axis := range u {
				u[axis] += float64(float64(c[axis]) * in[q][i])
			}
		}
		u[0] += float64(0.5 * a.Force)
		for axis := range u {
			u[axis] /= rho
		}
		square := float64(1.5 * (float64(u[0]*u[0]) + float64(u[1]*u[1]) + float64(u[2]*u[2])))
		for q, v := range velocities {
			w := weight(q)
			c := float64(3 * (float64(float64(v[0])*u[0]) + float64(float64(v[1])*u[1]) + float64(float64(v[2])*u[2])))
			relaxed := in[q][i] + float64(a.Omega*(float64(float64(w*rho)*(1+c+float64(float64(0.5*c)*c)-square))-in[q][i]))
			driven := float64((1 - float64(0.5*a.Omega)) * w)
			driven = float64(driven * (float64(3*(float64(v[0])-u[0])) + float64(float64(3*c)*float64(v[0]))))
			next[q][i] = relaxed + float64(driven*a.Force)
		}
	}
}

// footprints are where the components come from; those that a wall turns round stay at the point.
func footprints() (all []stencil.Footprint) {
	for _, c := range velocities {
		all = append(all, stencil.Offsets(domain.Vec{}, domain.Vec{}.Sub(c)))
	}
	return all
}

func newLBM(ctx context.Context, s *halo.Session, size []int) (*example.Simulation, error) {
	spec := halo.Spec{
		Name: "f", Element: halo.Float64, Components: len(velocities), SoA: true,
		Width: domain.UniformRadius(3, 1), Connectivity: halo.Edges,
	}
	place, err := s.Cut(ctx, halo.Cutting{Size: size, Periodic: [3]bool{0: true, 2: true}, Fields: []halo.Spec{spec}})
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
			Reads:  []scheme.Access{f.At(0, nil).ByComponent(footprints())},
			Writes: []scheme.Access{f.At(1, nil).Named("next")},
			Point: &sweep.Point{
				Name: "lbm", Dims: 3, CUDA: source, File: "lbm.cu", Go: lbm,
				Parameters: parameters{int64(size[1]), omega, force},
			},
		}},
	}
	report := func(x *scheme.Runner) (string, error) {
		profile, err := profile(f.Level(x.Done()))
		return fmt.Sprintf("lbm: the fluid flows at most at %.6e", maximum(profile)), err
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
		u[i] = (momentum[i] - force/2) / rho[i] // half of the force that the collision has added
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
	example.Main(example.Example{Name: "lbm", Size: []int{32, 32, 32}, Steps: 1000, New: newLBM})
}
