package main

import (
	"math"
	"testing"

	"github.com/halox/halox/examples/internal/sessions"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
)

const nx, ny = 37, 23

// read returns a field of the room.
func read(t *testing.T, f *halo.Field) []float64 {
	t.Helper()
	values, err := halo.ReadAll[float64](f)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// energy returns what the leap-frog scheme conserves: the squares of the pressure,
// and the products of the velocities half a step before and half a step after.
func energy(p, vx, vy []float64) (sum float64) {
	for _, v := range p {
		sum += v * v
	}
	for y := range ny {
		for x := range nx {
			here := p[y*nx+x]
			if x > 0 {
				v := vx[y*(nx+1)+x]
				sum += v * (v - courant*(here-p[y*nx+x-1]))
			}
			if y > 0 {
				v := vy[y*nx+x]
				sum += v * (v - courant*(here-p[(y-1)*nx+x]))
			}
		}
	}
	return sum
}

// Rigid walls keep all sound in: the sum of the pressure and the energy stay what
// they were, to the last digits, while the sound fills the room.
func TestConservation(t *testing.T) {
	var pressure, power float64
	sessions.Each(t, func(t *testing.T, session *halo.Session) []float64 {
		for _, steps := range []int{0, 200} {
			r, err := run(t.Context(), session, nx, ny, steps)
			if err != nil {
				t.Fatal(err)
			}
			p, vx, vy := read(t, r.p), read(t, r.vx), read(t, r.vy)
			if steps == 0 {
				pressure, power = mean(p), energy(p, vx, vy)
				continue
			}
			if off := math.Abs(mean(p)/pressure - 1); off > 1e-12 {
				t.Errorf("a part of %.1e of the pressure appeared or was lost", off)
			}
			if off := math.Abs(energy(p, vx, vy)/power - 1); off > 1e-12 {
				t.Errorf("a part of %.1e of the energy appeared or was lost", off)
			}
			if far := p[ny*nx-1]; math.Abs(far) < 1e-3 {
				t.Errorf("no sound arrived in the far corner: %v", far)
			}
			return append(append(p, vx...), vy...)
		}
		return nil
	})
}

func TestKernelsCompile(t *testing.T) { testdevices.Compile(t, source) }
