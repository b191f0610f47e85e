package temporal

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/sweep"
)

// Passes of random point functions on any device give the bits of sweeps: of several variables and components of different types, with
// coefficients, indices and steps, behind all sides, of odd sizes. They store nothing else.
func TestPassesOfPointFunctions(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		rng := rand.New(rand.NewPCG(11, 12))
		b := kerneltest.NewBench(t, set)
		functions, cases := 16, 3
		if testdevices.OnCPU(b.Device) {
			functions, cases = 2, 2 // each program takes seconds to compile
		}
		if testdevices.Long() {
			functions *= 8
		}
		for i := range functions {
			if !testdevices.Turn(i, 1, 5) {
				continue
			}
			dims := 2 + i%2
			radius := randomRadius(dims, rng)
			f := newRandomPoint(dims, radius, rng)
			for range cases {
				tryPoints(t, b, f, radius, rng)
			}
		}
	})
}

// randomRadius is one of those that are possible.
func randomRadius(dims int, rng *rand.Rand) (r domain.Radius) {
	for a := range dims {
		r.Minus[a] = rng.IntN(3)
		r.Plus[a] = max(0, min(2, r.Minus[a]+rng.IntN(3)-1))
	}
	return r
}

// tryPoints tries a pass over a box of a random size, some of which are long along one axis, so that there are several tiles and chunks.
func tryPoints(t *testing.T, b *kerneltest.Bench, f *randomPoint, radius domain.Radius, rng *rand.Rand) {
	var size domain.Vec
	for a := range size {
		size[a] = 1 + rng.IntN(14)
	}
	size[rng.IntN(f.dims)] += rng.IntN(40)
	if f.dims == 2 {
		size[0], size[2] = size[0]*(1+rng.IntN(6)), 1
	}
	box := domain.Box{Lo: domain.Vec{3, -2, 7}, Hi: domain.Vec{3, -2, 7}.Add(size)}
	if f.dims == 2 {
		box.Lo[2], box.Hi[2] = 0, 1
	}
	sides := f.randomSides(radius, size, rng)
	depths := []int{2, 3, 4}
	depth := depths[rng.IntN(len(depths))]
	p := newPointsProblem(t, f, box, sides, depth, rng)
	passes, err := NewPoints(b.Compiler, b.Device, p.point, p.accesses, p.next, p.upload(b))
	if err != nil {
		t.Log(err)
		return
	}
	defer func() { kerneltest.Check(t, passes.Close()) }()
	compileBeside(b, passes.gpu)
	t.Run(p.String(), func(t *testing.T) {
		if passes.gpu == nil {
			p.run(t, b, func(arrays sweep.Arrays) *sweep.Launch {
				return kerneltest.Must(passes.Pass("pass", arrays, p.box, p.sides, depth))(t)
			})
			return
		}
		for _, one := range kernelsToTry(t, b, passes, depth, rng) {
			p.run(t, b, func(arrays sweep.Arrays) *sweep.Launch {
				return kerneltest.Must(passes.onGPU("pass", one, arrays, p.box, p.sides))(t)
			})
		}
	})
}

// kernelsToTry are all candidates of a depth on a GPU, and one of them on a GPU that the CPU plays; and there one of small tiles, of which there
// are many.
func kernelsToTry(t *testing.T, b *kerneltest.Bench, p *Points, depth int, rng *rand.Rand) (all []shape) {
	for _, one := range p.gpu.candidates {
		if one.depth == depth && (len(all) == 0 || testdevices.OnGPU(b.Device)) {
			all = append(all, one)
		}
	}
	f := pointsForm{depth: depth, wide: 16, high: 1, turn: 1 + depth%2, rows: 1, threads: 64, blocks: 1}
	if p.dims == 3 {
		f.wide, f.high, f.rows = 8, 4+rng.IntN(2), 2
	}
	if _, bytes := p.rings(f); bytes <= int(b.Device.Shared) {
		argument, _ := p.argument(p.like, domain.Box{}, make([]Sides, len(p.like)), 0)
		all = append(all, p.shapeOf(f, len(argument)))
	}
	if len(all) == 0 {
		t.Log("no kernel has room")
	}
	return all
}
