package main

import (
	"math"
	"testing"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/examples/internal/exampletest"
)

// lattice is a reference on plain arrays, by point and direction.
type lattice struct {
	nx, ny, nz int
	f          [][19]float64
}

func newLattice(nx, ny, nz int) *lattice {
	l := &lattice{nx, ny, nz, make([][19]float64, nx*ny*nz)}
	for i := range l.f {
		for q := range l.f[i] {
			l.f[i][q] = []float64{1.0 / 3, 1.0 / 18, 1.0 / 36}[min(2, squared(q))]
		}
	}
	return l
}

func squared(q int) int {
	c := velocities[q]
	return c[0]*c[0] + c[1]*c[1] + c[2]*c[2]
}

// pull returns what arrives at a point in a direction: from the neighbour there, around the periodic
// axes, or back from a wall.
func (l *lattice) pull(x, y, z, q int) float64 {
	c := velocities[q]
	if fy := y - c[1]; fy < 0 || fy >= l.ny {
		for back, d := range velocities {
			if d[0] == -c[0] && d[1] == -c[1] && d[2] == -c[2] {
				return l.f[(z*l.ny+y)*l.nx+x][back]
			}
		}
	}
	x, y, z = (x-c[0]+l.nx)%l.nx, y-c[1], (z-c[2]+l.nz)%l.nz
	return l.f[(z*l.ny+y)*l.nx+x][q]
}

func (l *lattice) step() *lattice {
	next := &lattice{l.nx, l.ny, l.nz, make([][19]float64, len(l.f))}
	for z := range l.nz {
		for y := range l.ny {
			for x := range l.nx {
				next.f[(z*l.ny+y)*l.nx+x] = l.collide(x, y, z)
			}
		}
	}
	return next
}

func (l *lattice) collide(x, y, z int) (out [19]float64) {
	var in [19]float64
	var rho, jx, jy, jz float64
	for q, c := range velocities {
		in[q] = l.pull(x, y, z, q)
		rho += in[q]
		jx += float64(float64(c[0]) * in[q])
		jy += float64(float64(c[1]) * in[q])
		jz += float64(float64(c[2]) * in[q])
	}
	ux, uy, uz := (jx+0.5*force)/rho, jy/rho, jz/rho
	energy := float64(1.5 * (float64(ux*ux) + float64(uy*uy) + float64(uz*uz)))
	for q, d := range velocities {
		w := []float64{1.0 / 3, 1.0 / 18, 1.0 / 36}[squared(q)]
		c := float64(3 * (float64(float64(d[0])*ux) + float64(float64(d[1])*uy) + float64(float64(d[2])*uz)))
		equilibrium := float64(float64(w*rho) * (1 + c + float64(float64(0.5*c)*c) - energy))
		relaxed := in[q] + float64(omega*(equilibrium-in[q]))
		push := float64(float64((1-float64(0.5*omega))*w) * (float64(3*(float64(d[0])-ux)) + float64(float64(3*c)*float64(d[0]))))
		out[q] = relaxed + float64(push*force)
	}
	return out
}

// Every scheme, path and number of devices gives the bits of plain loops.
func TestOneAnswer(t *testing.T) {
	const nx, ny, nz, steps = 11, 8, 9, 12
	l := newLattice(nx, ny, nz)
	for range steps {
		l = l.step()
	}
	var components [][]float64
	for q := range velocities {
		var one []float64
		for i := range l.f {
			one = append(one, l.f[i][q])
		}
		components = append(components, one)
	}
	exampletest.Conform(t, example.Example{Name: "lbm", New: newLBM}, []int{nx, ny, nz}, steps, example.ChecksumOf(components...))
}

// Between two plates the fluid comes to flow as Poiseuille's parabola says.
func TestPoiseuille(t *testing.T) {
	const ny = 8
	l := newLattice(3, ny, 3)
	for range 3000 {
		l = l.step()
	}
	for y := range ny {
		var rho, j float64
		for q, c := range velocities {
			v := l.f[y*3][q]
			rho += v
			j += float64(c[0]) * v
		}
		if got, want := (j-force/2)/rho, poiseuille(y, ny); math.Abs(got/want-1) > 1e-6 {
			t.Errorf("layer %d flows at %v, the parabola at %v", y, got, want)
		}
	}
}
