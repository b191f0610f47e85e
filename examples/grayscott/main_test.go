package main

import (
	"math"
	"testing"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/examples/internal/exampletest"
)

// plane is a reference on two arrays with plain loops, which wrap around.
type plane struct {
	nx, ny int
	u, v   []float64
}

func newPlane(nx, ny int) *plane {
	p := &plane{nx, ny, make([]float64, nx*ny), make([]float64, nx*ny)}
	for y := range ny {
		for x := range nx {
			p.u[y*nx+x] = 1
			if x >= nx*3/8 && x < nx*5/8 && y >= ny*3/8 && y < ny*5/8 {
				p.u[y*nx+x], p.v[y*nx+x] = 0.5, 0.25
			}
		}
	}
	return p
}

func (p *plane) laplacian(f []float64, x, y int) float64 {
	at := func(dx, dy int) float64 { return f[(y+dy+p.ny)%p.ny*p.nx+(x+dx+p.nx)%p.nx] }
	faces := at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)
	corners := at(-1, -1) + at(1, -1) + at(-1, 1) + at(1, 1)
	return float64(0.2*faces) + float64(0.05*corners) - at(0, 0)
}

func (p *plane) step(r rates) *plane {
	next := &plane{p.nx, p.ny, make([]float64, len(p.u)), make([]float64, len(p.v))}
	for y := range p.ny {
		for x := range p.nx {
			i := y*p.nx + x
			u, v := p.u[i], p.v[i]
			made := float64(float64(u*v) * v)
			next.u[i] = u + float64(r.DiffuseU*p.laplacian(p.u, x, y)) - made + float64(r.Feed*(1-u))
			next.v[i] = v + float64(r.DiffuseV*p.laplacian(p.v, x, y)) + made - float64((r.Feed+r.Kill)*v)
		}
	}
	return next
}

func expected(nx, ny, steps int, r rates) *plane {
	p := newPlane(nx, ny)
	for range steps {
		p = p.step(r)
	}
	return p
}

func total(all ...[]float64) (sum float64) {
	for _, values := range all {
		for _, v := range values {
			sum += v
		}
	}
	return sum
}

// Every scheme, path and number of devices gives the bits of plain loops, of which, where nothing is
// fed and nothing removed, u and v together are conserved.
func TestConservation(t *testing.T) {
	closed := coral
	closed.Feed, closed.Kill = 0, 0
	const nx, ny, steps = 51, 37, 60
	want := expected(nx, ny, steps, closed)
	before := newPlane(nx, ny)
	if off := math.Abs(total(want.u, want.v)/total(before.u, before.v) - 1); off > 1e-13 {
		t.Errorf("a part of %.1e of u and v appeared or was lost", off)
	}
	if total(want.v) < 1.5*total(before.v) {
		t.Errorf("nothing happened: v is %v", total(want.v))
	}
	exampletest.Conform(t, example.Steps{Name: "grayscott", New: newGrayScott(closed)}, []int{nx, ny}, steps, example.ChecksumOf(want.u, want.v))
}

// The pattern that feeds is one answer too, and stays symmetric across corners and cuts.
func TestPattern(t *testing.T) {
	const n, steps, lo, hi = 51, 100, 51 * 3 / 8, 51 * 5 / 8
	want := expected(n, n, steps, coral)
	for y := lo; y < hi; y++ {
		for x := lo; x < hi; x++ {
			if v, mirrored := want.v[y*n+x], want.v[y*n+lo+hi-1-x]; math.Abs(v-mirrored) > 1e-12 {
				t.Fatalf("v is %v at %d, %d and %v at its mirror image", v, x, y, mirrored)
			}
		}
	}
	exampletest.Conform(t, example.Steps{Name: "grayscott", New: newGrayScott(coral)}, []int{n, n}, steps, example.ChecksumOf(want.u, want.v))
}
