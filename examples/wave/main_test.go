package main

import (
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/examples/internal/exampletest"
)

// grid is a reference on one array with plain loops; outside of it the wave is 0.
type grid struct {
	size   []int
	values []float64
}

func newGrid(size []int, value func(p domain.Vec) float64) grid {
	g := grid{size, make([]float64, size[0]*size[1]*size[2])}
	g.each(func(p domain.Vec) { g.values[g.index(p)] = value(p) })
	return g
}

func (g grid) index(p domain.Vec) int { return (p[2]*g.size[1]+p[1])*g.size[0] + p[0] }

func (g grid) each(f func(p domain.Vec)) {
	for z := range g.size[2] {
		for y := range g.size[1] {
			for x := range g.size[0] {
				f(domain.Vec{x, y, z})
			}
		}
	}
}

func (g grid) at(p domain.Vec, dx, dy, dz int) float64 {
	q := domain.Vec{p[0] + dx, p[1] + dy, p[2] + dz}
	for a, n := range g.size {
		if q[a] < 0 || q[a] >= n {
			return 0
		}
	}
	return g.values[g.index(q)]
}

func expected(size []int, steps int) grid {
	old, now := newGrid(size, standing(size, -1)), newGrid(size, standing(size, 0))
	for range steps {
		next := newGrid(size, func(p domain.Vec) float64 {
			sum := now.at(p, -1, 0, 0) + now.at(p, 1, 0, 0) + now.at(p, 0, -1, 0) + now.at(p, 0, 1, 0) + now.at(p, 0, 0, -1) + now.at(p, 0, 0, 1)
			u := now.at(p, 0, 0, 0)
			return float64(2*u) - old.at(p, 0, 0, 0) + float64(courant*courant*(sum-float64(6*u)))
		})
		old, now = now, next
	}
	return now
}

// Every scheme, path and number of devices gives the bits of plain loops, of a wave that keeps its
// shape and swings at the frequency of the leap-frog scheme, to the last digits.
func TestStandingWave(t *testing.T) {
	const steps = 31
	size := []int{21, 18, 23}
	want := expected(size, steps)
	exact := standing(size, steps)
	want.each(func(p domain.Vec) {
		if off := math.Abs(want.at(p, 0, 0, 0) - exact(p)); off > 1e-13 {
			t.Fatalf("%v off the standing wave at %v", off, p)
		}
	})
	exampletest.Conform(t, example.Steps{Name: "wave", New: newWave}, size, steps, example.ChecksumOf(want.values))
}
