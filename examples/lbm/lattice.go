package main

import (
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
)

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

// widths are the ghosts of the components: where they come from.
func widths() (all []domain.Radius) {
	for _, f := range footprints() {
		all = append(all, f.Radius())
	}
	return all
}
