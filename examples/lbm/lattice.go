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

// With this rate the wall is exactly half a spacing beyond the points: (1/omega - 1/2)^2 is 3/16. At other rates its
// position depends on the viscosity.
var omega = 1 / (0.5 + math.Sqrt(3.0/16))

const force = 1e-6

// velocities are the directions of the lattice, weights the weights of rest, axes and diagonals.
var (
	velocities = [19]domain.Vec{
		{}, {1}, {-1}, {0, 1}, {0, -1}, {0, 0, 1}, {0, 0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1},
		{1, 0, 1}, {-1, 0, -1}, {1, 0, -1}, {-1, 0, 1}, {0, 1, 1}, {0, -1, -1}, {0, 1, -1}, {0, -1, 1},
	}
	weights = [3]float64{1.0 / 3, 1.0 / 18, 1.0 / 36}
)

// opposite is the component with the opposite velocity.
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

// plus adds c times a value; c is 1, 0 or -1.
func plus(sum float64, c int, value float64) float64 {
	switch c {
	case 1:
		return sum + value
	case -1:
		return sum - value
	}
	return sum
}

// lbm is the Go counterpart of lbm.cu.
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
	keep, drive := 1-a.Omega, float64(float64(3*(1-float64(0.5*a.Omega)))*a.Force)
	for i := range r.N {
		rho, u := in[0][i], [3]float64{0: float64(0.5 * a.Force)}
		for q := 1; q < len(velocities); q += 2 {
			forth, back := in[q][i], in[q+1][i]
			rho += forth + back
			for axis, c := range velocities[q] {
				u[axis] = plus(u[axis], c, forth-back)
			}
		}
		volume, relax := 1/rho, float64(a.Omega*rho)
		for axis := range u {
			u[axis] *= volume
		}
		all := float64(relax * (1 - float64(1.5*(float64(u[0]*u[0])+float64(u[1]*u[1])+float64(u[2]*u[2])))))
		all -= float64(drive * u[0])
		next[0][i] = float64(keep*in[0][i]) + float64(weights[0]*all)
		for q := 1; q < len(velocities); q += 2 {
			c, w := velocities[q], weight(q)
			along := plus(plus(plus(0, c[0], u[0]), c[1], u[1]), c[2], u[2])
			even := all + float64(along*plus(float64(float64(4.5*relax)*along), c[0], float64(3*drive)))
			odd := plus(float64(float64(3*relax)*along), c[0], drive)
			next[q][i] = float64(keep*in[q][i]) + float64(w*(even+odd))
			next[q+1][i] = float64(keep*in[q+1][i]) + float64(w*(even-odd))
		}
	}
}

// footprints are the points from which components are read; components reflected by a wall are read at the point.
func footprints() (all []stencil.Footprint) {
	for _, c := range velocities {
		all = append(all, stencil.Offsets(domain.Vec{}, domain.Vec{}.Sub(c)))
	}
	return all
}

// widths are the ghost widths of the components.
func widths() (all []domain.Radius) {
	for _, f := range footprints() {
		all = append(all, f.Radius())
	}
	return all
}
