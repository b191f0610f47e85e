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

// pull returns the value that arrives at a point in a direction: from the neighbor there, around the periodic
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

// collide takes directions in pairs: what goes one way and the other of both relaxes towards the same even
// part, and towards odd parts of either sign.
func (l *lattice) collide(x, y, z int) (out [19]float64) {
	var in [19]float64
	for q := range in {
		in[q] = l.pull(x, y, z, q)
	}
	rho, jx, jy, jz := in[0], 0.5*force, 0.0, 0.0
	for q := 1; q < 19; q += 2 {
		d, flow := velocities[q], in[q]-in[q+1]
		rho += in[q] + in[q+1]
		jx += float64(float64(d[0]) * flow)
		jy += float64(float64(d[1]) * flow)
		jz += float64(float64(d[2]) * flow)
	}
	ux, uy, uz := float64(jx*(1/rho)), float64(jy*(1/rho)), float64(jz*(1/rho))
	energy := float64(1.5 * (float64(ux*ux) + float64(uy*uy) + float64(uz*uz)))
	push := float64(float64(3*(1-float64(0.5*omega))) * force)
	common := float64(float64(omega*rho)*(1-energy)) - float64(push*ux)
	out[0] = float64((1-omega)*in[0]) + float64(1.0/3*common)
	for q := 1; q < 19; q += 2 {
		d, w := velocities[q], []float64{1.0 / 3, 1.0 / 18, 1.0 / 36}[squared(q)]
		u := float64(float64(d[0])*ux) + float64(float64(d[1])*uy) + float64(float64(d[2])*uz)
		bend := float64(float64(4.5*float64(omega*rho))*u) + float64(float64(d[0])*float64(3*push))
		even := common + float64(u*bend)
		odd := float64(float64(3*float64(omega*rho))*u) + float64(float64(d[0])*push)
		out[q] = float64((1-omega)*in[q]) + float64(w*(even+odd))
		out[q+1] = float64((1-omega)*in[q+1]) + float64(w*(even-odd))
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
	exampletest.Conform(t, example.Steps{Name: "lbm", New: newLBM}, []int{nx, ny, nz}, steps, example.ChecksumOf(components...))
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
