package temporal

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/stencil"
)

// Passes between walls that have other values at each level give the bits of sweeps that set them anew: of stencils
// that lie along the axes, with norms and without.
func TestPassesBetweenMovingWalls(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		rng := rand.New(rand.NewPCG(11, 12))
		b := kerneltest.NewBench(t, set)
		cases := 3
		if testdevices.OnCPU(b.Device) && !testdevices.Long() {
			cases = 1 // each compiles a program
		}
		for i, s := range testdevices.Again(6, stencils(t)) {
			if s.Footprint().Axes() > 1 {
				continue // it reads ghosts behind two walls
			}
			if testdevices.Turn(i, 4, 2) {
				tryPasses[float32](t, b, s, kernels.Float32, Options{Moving: true}, []int{2, 3, 4}, cases, rng)
			}
			if testdevices.Turn(i+1, 4, 2) {
				tryPasses[float64](t, b, s, kernels.Float64, Options{Moving: true}, []int{2, 3, 4}, cases, rng)
			}
		}
	})
}

// move has some of the sides move, and one at least that can.
func (p *problem[T]) move(b *kerneltest.Bench, rng *rand.Rand) (walls Walls) {
	p.walls = map[wallPoint]T{}
	var r domain.Vec
	for a := range p.stencil.Dims {
		r[a] = p.stencil.AxisRadius(a)
	}
	for i := range 2 * p.stencil.Dims {
		if p.sides[i] != Odd && (p.sides[i] != Fixed || r[i/2] > 1) || rng.IntN(4) == 0 {
			continue
		}
		p.moving[i] = true
		w := &walls[i]
		w.Box = p.sides.region(p.box, p.box, p.depth-1, r)
		w.Box.Lo[i/2] = p.box.Lo[i/2] - 1
		if i%2 == 1 {
			w.Box.Lo[i/2] = p.box.Hi[i/2]
		}
		w.Box.Hi[i/2] = w.Box.Lo[i/2] + 1
		for a := range p.stencil.Dims { // the tables may hold more than is read
			if a != i/2 && p.sides.low(a) == Open {
				w.Box.Lo[a] -= rng.IntN(2)
			}
		}
		var values []T
		for level := 1; level < p.depth; level++ {
			kerneltest.EachPoint(w.Box, func(at domain.Vec) {
				v := T(rng.Float64() - 0.5)
				p.walls[wallPoint{level, at}], values = v, append(values, v)
			})
		}
		w.Values = kerneltest.Upload(b, values)
	}
	return walls
}

// Walls are refused of which a pass would read what is not there.
func TestMisusedWalls(t *testing.T) {
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		rng := rand.New(rand.NewPCG(13, 14))
		s := test.Must(stencil.HeatOf(stencil.Kinds(2)[0], []float64{0.1, 0.1}, 1, 1e-3))(t)
		sides := Sides{Fixed, Mirror, Fixed, Fixed}
		p := newProblem[float64](t, s, sides, domain.Vec{8, 9, 1}, 3, rng)
		from, to := array(b, p.layout, p.from), array(b, p.layout, p.to)
		box := domain.Box{Lo: p.box.Lo, Hi: p.box.Hi}
		box.Lo[0], box.Hi[0] = p.box.Lo[0]-1, p.box.Lo[0]
		good := Wall{box, kerneltest.Upload(b, make([]float64, 2*9))}
		short, narrow := good, good
		short.Values.Length -= 8
		narrow.Box.Hi[1]--
		for name, c := range map[string]struct {
			options Options
			side    int
			wall    Wall
		}{
			"without the option":    {Options{}, 0, good},
			"of a mirror":           {Options{Moving: true}, 1, good},
			"of too few levels":     {Options{Moving: true}, 0, short},
			"of too few points":     {Options{Moving: true}, 0, narrow},
			"of another side":       {Options{Moving: true}, 2, good},
			"nothing is the matter": {Options{Moving: true}, 0, good},
		} {
			passes := test.Must(New(b.Compiler, b.Device, s, kernels.Float64, p.layout, c.options))(t)
			var walls Walls
			walls[c.side] = c.wall
			k, _, err := passes.Pass("pass", from, to, p.box, sides, 3, More{Walls: walls})
			if (err == nil) != (name == "nothing is the matter") {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				b.Do(k.Close())
			}
		}
	})
}
