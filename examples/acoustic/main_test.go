package main

import (
	"math"
	"testing"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/examples/internal/exampletest"
)

const nx, ny = 37, 23

// hall is a reference on plain arrays: the pressure of nx x ny cells, the velocities at their faces.
type hall struct{ p, vx, vy []float64 }

func newHall() hall {
	h := hall{make([]float64, nx*ny), make([]float64, (nx+1)*ny), make([]float64, nx*(ny+1))}
	for y := range ny {
		for x := range nx {
			dx, dy := float64(x-nx/3), float64(y-ny/3)
			h.p[y*nx+x] = math.Exp(-(dx*dx + dy*dy) / 16)
		}
	}
	return h
}

func (h hall) step() {
	for y := range ny {
		for x := range nx {
			if x > 0 {
				h.vx[y*(nx+1)+x] -= float64(courant * (h.p[y*nx+x] - h.p[y*nx+x-1]))
			}
			if y > 0 {
				h.vy[y*nx+x] -= float64(courant * (h.p[y*nx+x] - h.p[(y-1)*nx+x]))
			}
		}
	}
	for y := range ny {
		for x := range nx {
			vx, vy := h.vx[y*(nx+1)+x:], h.vy[y*nx+x:]
			h.p[y*nx+x] -= float64(courant * (vx[1] - vx[0] + vy[nx] - vy[0]))
		}
	}
}

// energy returns what the leap-frog scheme conserves: the squares of the pressure, and the products
// of the velocities half a step before and half a step after.
func (h hall) energy() (sum float64) {
	for _, v := range h.p {
		sum += v * v
	}
	for y := range ny {
		for x := range nx {
			here := h.p[y*nx+x]
			if x > 0 {
				v := h.vx[y*(nx+1)+x]
				sum += v * (v - courant*(here-h.p[y*nx+x-1]))
			}
			if y > 0 {
				v := h.vy[y*nx+x]
				sum += v * (v - courant*(here-h.p[(y-1)*nx+x]))
			}
		}
	}
	return sum
}

// Every scheme, path and number of devices gives the bits of plain loops, in which rigid walls keep
// all sound in: the sum of the pressure and the energy stay what they were, to the last digits,
// while the sound fills the room.
func TestConservation(t *testing.T) {
	const steps = 120
	h := newHall()
	pressure, power := mean(h.p), h.energy()
	for range steps {
		h.step()
	}
	if off := math.Abs(mean(h.p)/pressure - 1); off > 1e-12 {
		t.Errorf("a part of %.1e of the pressure appeared or was lost", off)
	}
	if off := math.Abs(h.energy()/power - 1); off > 1e-12 {
		t.Errorf("a part of %.1e of the energy appeared or was lost", off)
	}
	if far := h.p[ny*nx-1]; math.Abs(far) < 1e-3 {
		t.Errorf("no sound arrived in the far corner: %v", far)
	}
	exampletest.Conform(t, example.Steps{Name: "acoustic", New: newAcoustic}, []int{nx, ny}, steps, example.ChecksumOf(h.p, h.vx, h.vy))
}
