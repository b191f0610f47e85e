package temporal

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Passes are bitwise identical to sweeps on all devices, for all stencils, types, depths, sides and odd sizes, and
// store nothing else.
func TestPasses(t *testing.T) {
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		rng := rand.New(rand.NewPCG(3, 4))
		b := kerneltest.NewBench(t, set)
		smallOnCPU(t, b)
		cases := 3
		if testdevices.OnGPU(b.Device) {
			cases = 6
		}
		all := testdevices.Again(3, stencils(t))
		every := 4
		if testdevices.OnCPU(b.Device) {
			all, every = nil, 2 // each program takes a second to compile
			for _, same := range byKernel(t) {
				all = append(all, testdevices.Some(1, same)...)
			}
		}
		for i, s := range all { // both types in long tests, otherwise one or none by turns
			if testdevices.Turn(i, every, 2) {
				tryPasses[float32](t, b, s, domain.Float32, Options{}, depthsOf(b, s, domain.Float32), cases, rng)
			}
			if testdevices.Turn(i+1, every, 2) {
				tryPasses[float64](t, b, s, domain.Float64, Options{}, depthsOf(b, s, domain.Float64), cases, rng)
			}
		}
	})
}

// byKernel returns the stencils with a specific kernel, for each kernel, followed by those without.
func byKernel(t *testing.T) [][]stencil.Stencil {
	kernel := map[int]int{5: 0, 7: 1, 13: 2, 19: 3, 27: 3}
	all := make([][]stencil.Stencil, 5)
	for _, s := range stencils(t) {
		k, has := kernel[s.Points()]
		if !has {
			k = len(all) - 1
		}
		all[k] = append(all[k], s)
	}
	return all
}

// Kernels with levels in registers are tested with many interior tiles, whole and partial, with and without
// physical faces, with moving walls, and with norms of one and several steps.
func TestPassesOverManyTiles(t *testing.T) {
	for name, c := range map[string]struct {
		turn int // of eight
		all  []Options
	}{
		"plain":         {4, []Options{{}}},
		"moving walls":  {0, []Options{{Moving: true}}},
		"norms":         {7, []Options{{Norms: 1}, {Norms: 1, Moving: true}}},
		"several norms": {6, []Options{{Norms: 2}, {Norms: 3, Moving: true}, {Norms: MaxNorms}}},
	} {
		t.Run(name, func(t *testing.T) {
			testdevices.InTurn(t, c.turn, 8)
			for i, o := range c.all {
				if len(c.all) < 3 || testdevices.Turn(i, 3, 3) {
					tryManyTiles(t, o)
				}
			}
		})
	}
}

func tryManyTiles(t *testing.T, o Options) {
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		rng := rand.New(rand.NewPCG(5, 6))
		smallOnCPU(t, b)
		cases := 3
		if testdevices.OnGPU(b.Device) {
			cases = 12
		}
		for i, s := range stencils(t) { // both types in long tests, otherwise one or none by turns
			if testdevices.Turn(i, 4, 4) {
				overManyTiles[float32](t, b, s, domain.Float32, o, cases, rng)
			}
			if testdevices.Turn(i+2, 4, 4) {
				overManyTiles[float64](t, b, s, domain.Float64, o, cases, rng)
			}
		}
	})
}

// Kernels whose warps publish their progress also work if every lane does so. It is for racecheck, see EVERY_LANE
// of pass_planes.cu. It runs with every seed.
func TestPassesByEveryLane(t *testing.T) {
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		rng := rand.New(rand.NewPCG(7, 8))
		smallOnCPU(t, b)
		heat := test.Must(stencil.HeatOf(stencil.Kinds(3)[0], []float64{0.1, 0.1, 0.1}, 1, 1e-3))(t)
		overManyTiles[float32](t, b, heat, domain.Float32, Options{}, 1, rng, "EVERY_LANE")
		for _, kind := range []stencil.Kind{stencil.Kinds(3)[1], stencil.Kinds(3)[3]} { // of 13 and of 27 points
			s := test.Must(stencil.HeatOf(kind, []float64{0.1, 0.1, 0.1}, 1, 1e-3))(t)
			overManyTiles[float32](t, b, s, domain.Float32, Options{}, 1, rng, "EVERY_LANE")
		}
		if testdevices.OnGPU(b.Device) {
			overManyTiles[float64](t, b, heat, domain.Float64, Options{}, 1, rng, "EVERY_LANE")
		}
	})
}

func overManyTiles[T rows.Float](t *testing.T, b *kerneltest.Bench, s stencil.Stencil, real domain.Element, o Options, cases int, rng *rand.Rand, defines ...string) {
	for i := range cases {
		size := domain.Vec{260 + rng.IntN(200), 16 + rng.IntN(8), 2 + rng.IntN(9)}
		switch {
		case s.Dims == 2 && testdevices.OnGPU(b.Device):
			size = domain.Vec{1100 + rng.IntN(2000), 50 + rng.IntN(400), 1}
		case s.Dims == 2:
			size = domain.Vec{300 + rng.IntN(300), 20 + rng.IntN(30), 1}
		case testdevices.OnGPU(b.Device):
			size = domain.Vec{260 + rng.IntN(300), 70 + rng.IntN(60), 2 + rng.IntN(30)}
		}
		if i%3 != 0 {
			size[0] = size[0] / 4 * 4
		}
		sides := randomSides(s, size, rng)
		if i%3 == 1 {
			sides = Sides{Fixed, Mirror, Mirror, Fixed, Fixed, Mirror}
		}
		if s.Dims == 2 {
			sides[4], sides[5] = Open, Open
		}
		if s.Dims == 2 && i%3 == 2 { // faces so close that no strip keeps a point
			size[0], sides[0], sides[1] = 1+rng.IntN(18), Fixed, []Side{Fixed, Mirror, Odd}[rng.IntN(3)]
		}
		l := newProblem[T](t, s, sides, size, 2, rng).layout
		made, err := New(b.Compiler, b.Device, s, real, l, o)
		if errors.Is(err, ErrImpossible) {
			return // does not fit in shared memory of the CPU
		}
		test.Check(t, err)
		if len(defines) == 0 {
			compileAll(b, made)
		}
		for _, one := range made.candidates {
			if one.name == "pass" || !one.fits(size, sides) {
				continue
			}
			p := newProblem[T](t, s, sides, size, one.depth, rng)
			of := More{Box: randomBox(p.box, rng)}
			if o.Moving {
				of.Faces = p.move(b, rng)
			}
			passes := test.Must(New(b.Compiler, b.Device, s, real, p.layout, o))(t)
			one.program.Defines = append(slices.Clone(one.program.Defines), defines...)
			one.shareAnyhow(rng)
			t.Run(fmt.Sprintf("%v/moving=%v/%v", p, p.moving, one), func(t *testing.T) {
				p.runWith(t, b, passes, of, one.kernel(t, passes, p.box, sides))
			})
		}
	}
}

// smallOnCPU selects kernels of small tiles on the CPU, which fit in its shared memory.
func smallOnCPU(t *testing.T, b *kerneltest.Bench) {
	if !testdevices.OnCPU(b.Device) {
		return
	}
	planes3, norms3, sums3, stars3, strips2, more2 := planesTried, planesWithNorms, planeSumsTried, longStarsTried, stripsTried, stripsWithMoreTried
	t.Cleanup(func() {
		planesTried, planesWithNorms, planeSumsTried, longStarsTried = planes3, norms3, sums3, stars3
		stripsTried, stripsWithMoreTried = strips2, more2
	})
	few := []planes{{2, 3, 2, 1, 1, 0, everywhere}, {3, 2, 4, 2, 1, 1, everywhere}, {4, 4, 3, 2, 3, 1, everywhere}, {4, 6, 2, 3, 1, 0, everywhere}}
	planesTried = map[domain.Element][]planes{domain.Float32: few, domain.Float64: few}
	planesWithNorms = planesTried
	sums := []planeSums{{2, 3, 2, 1, everywhere}, {2, 4, 2, 1, everywhere}, {2, 3, 2, 2, everywhere}}
	planeSumsTried = map[domain.Element][]planeSums{domain.Float32: sums, domain.Float64: sums}
	stars := []longStars{{2, 2, 3, 1, everywhere}, {2, 3, 2, 1, everywhere}}
	longStarsTried = map[domain.Element][]longStars{domain.Float32: stars, domain.Float64: stars}
	small := []strips{{2, 2, 1, 2, 1, 1, everywhere}, {3, 2, 2, 1, 1, 2, everywhere}, {5, 3, 3, 1, 2, 3, everywhere}, {7, 4, 2, 1, 2, 2, everywhere}, {9, 4, 4, 1, 3, 2, everywhere}}
	stripsTried = map[domain.Element][]strips{domain.Float32: small, domain.Float64: small}
	var more []stripsWithMore
	for _, c := range small {
		more = append(more, stripsWithMore{c, MaxNorms, MaxNorms, MaxNorms})
	}
	stripsWithMoreTried = map[domain.Element][]stripsWithMore{domain.Float32: more, domain.Float64: more}
}

// tryPasses tests passes with options of some depths, each for several boxes: that of each depth which Pass
// selects, and without options all others too.
func tryPasses[T rows.Float](
	t *testing.T, b *kerneltest.Bench, s stencil.Stencil, real domain.Element, o Options, depths []int, cases int, rng *rand.Rand,
) {
	for _, depth := range depths {
		for range cases {
			size := randomSize(s.Dims, testdevices.OnGPU(b.Device), rng)
			sides := randomSides(s, size, rng)
			p := newProblem[T](t, s, sides, size, depth, rng)
			of := More{Box: randomBox(p.box, rng)}
			if o.Moving {
				of.Faces = p.move(b, rng)
			}
			passes, err := New(b.Compiler, b.Device, s, real, p.layout, o)
			if !o.plain() && (errors.Is(err, ErrImpossible) || err == nil && !passes.finite(depth)) {
				continue // does not fit in shared memory of the CPU
			}
			test.Check(t, err)
			compileAll(b, passes)
			t.Run(fmt.Sprintf("%v/norms=%d/moving=%v", p, o.Norms, p.moving), func(t *testing.T) {
				p.runWith(t, b, passes, of, func(from, to kernels.Array, of More) (*streams.Kernel, int64) {
					k, parts, err := passes.Pass("pass", from, to, p.box, sides, depth, of)
					test.Check(t, err)
					return k, parts
				})
			})
			for _, one := range passes.candidates {
				if !o.plain() || one.depth != depth || !one.fits(size, sides) || one.String() == passes.of(depth, size, sides).String() {
					continue
				}
				one.shareAnyhow(rng)
				t.Run(p.String()+"/"+one.String(), func(t *testing.T) {
					p.runWith(t, b, passes, More{}, one.kernel(t, passes, p.box, sides))
				})
			}
		}
	}
}

// shareAnyhow makes blocks share the box in a random way, which must not change results.
func (s *shape) shareAnyhow(rng *rand.Rand) {
	if s.weight > 0 {
		s.weight, s.start = weights[rng.IntN(len(weights))], rng.IntN(100)
	}
}

// eachGPU runs a test on GPUs, and on emulated GPUs: CPU devices have no passes.
func eachGPU(t *testing.T, n int, f func(t *testing.T, set *testdevices.Set)) {
	testdevices.EachKernel(t, n, func(t *testing.T, set *testdevices.Set) {
		if set.Devices[0].GoKernels {
			t.Skip("SKIPPED: CPU devices have no passes")
		}
		f(t, set)
	})
}

// compileAll compiles concurrently, on a GPU, the kernels that a test uses one by one.
func compileAll(b *kerneltest.Bench, passes *Passes) {
	if testdevices.OnGPU(b.Device) {
		passes.compileAll()
	}
}

// depthsOf returns the depths of all passes between arrays of the default layout.
func depthsOf(b *kerneltest.Bench, s stencil.Stencil, real domain.Element) (depths []int) {
	b.T.Helper()
	l := test.Must(domain.NewLayout(domain.Box{Hi: domain.Vec{1, 1, 1}}, s.Radius(), real.Size()))(b.T)
	passes := test.Must(New(b.Compiler, b.Device, s, real, l, Options{}))(b.T)
	passes.compileAll()
	for depth, cost := range passes.Costs() {
		if depth > 1 && !math.IsInf(cost, 1) {
			depths = append(depths, depth)
		}
	}
	return depths
}

// makePass returns a kernel of a pass, and its number of blocks.
type makePass func(from, to kernels.Array, of More) (*streams.Kernel, int64)

// kernel returns a function that prepares passes of this shape.
func (s shape) kernel(t *testing.T, passes *Passes, box domain.Box, sides Sides) makePass {
	return func(from, to kernels.Array, of More) (*streams.Kernel, int64) {
		spec := test.Must(passes.spec("pass", s, from, to, box, sides, of))(t)
		return test.Must(passes.device.NewKernel(spec))(t), blocksOf(spec.Grid)
	}
}

// runWith runs a pass, and checks the stored points and its norms, if it computes any.
func (p *problem[T]) runWith(t *testing.T, b *kerneltest.Bench, passes *Passes, of More, pass makePass) {
	t.Helper()
	room := newNormRoom(b, passes.real, passes.options.Norms, passes.Parts(p.box, p.sides))
	of.Parts = room.spans
	var blocks int64
	p.run(t, b, func(from, to kernels.Array) (k *streams.Kernel) {
		k, blocks = pass(from, to, of)
		return k
	})
	checkNorms(t, b, p, room, blocks, of.Box)
}

// run runs a pass and checks the stored points.
func (p *problem[T]) run(t *testing.T, b *kerneltest.Bench, pass func(from, to kernels.Array) *streams.Kernel) {
	t.Helper()
	from, to := array(b, p.layout, p.from), array(b, p.layout, p.to)
	k := pass(from, to)
	b.Do(b.Stream.Launch(k))
	p.stored = kerneltest.Get[T](b, to.Data)
	p.check(t)
	b.Do(k.Close())
}

// randomSize returns a random size, sometimes long along one axis for several tiles and chunks.
func randomSize(dims int, large bool, rng *rand.Rand) (size domain.Vec) {
	for a := range size {
		size[a] = 1 + rng.IntN(24)
	}
	long := rng.IntN(dims)
	if large {
		size[long] += rng.IntN(120)
	} else {
		size[long] += rng.IntN(40)
	}
	if dims == 2 {
		size[0] *= 1 + rng.IntN(8)
		size[2] = 1
	}
	return size
}

func array[T rows.Float](b *kerneltest.Bench, l domain.Layout, values []T) kernels.Array {
	return kernels.Array{Data: kerneltest.Upload(b, values), Layout: l}
}
