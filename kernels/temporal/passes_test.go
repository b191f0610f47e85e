package temporal

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

func TestMain(m *testing.M) { os.Exit(testdevices.Main(m, "../cu/pass*.cu")) }

// Passes on any device give the bits of sweeps: all stencils, types, depths, sides and odd sizes, and they store nothing else.
func TestPasses(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		rng := rand.New(rand.NewPCG(3, 4))
		b := kerneltest.NewBench(t, set)
		cases := 3
		if testdevices.OnGPU(b.Device) {
			cases = 12
		}
		for _, s := range stencils(t) {
			tryPasses[float32](t, b, s, kernels.Float32, cases, rng)
			tryPasses[float64](t, b, s, kernels.Float64, cases, rng)
		}
	})
}

func tryPasses[T rows.Float](t *testing.T, b *kerneltest.Bench, s stencil.Stencil, real kernels.Real, cases int, rng *rand.Rand) {
	passes := kerneltest.Must(New(b.Compiler, b.Device, s, real))(t)
	for depth, cost := range passes.Costs() {
		if depth < 2 || math.IsInf(cost, 1) {
			continue
		}
		for range cases {
			size := randomSize(s.Dims, testdevices.OnGPU(b.Device), rng)
			sides := randomSides(s, size, rng)
			p := newProblem[T](t, s, sides, size, depth, rng)
			t.Run(p.String(), func(t *testing.T) {
				from, to := array(b, p.layout, p.from), array(b, p.layout, p.to)
				k := kerneltest.Must(passes.Pass("pass", from, to, p.box, sides, depth))(t)
				b.Do(b.Stream.Launch(k))
				p.to = kerneltest.Get[T](b, to.Data)
				p.check(t)
				b.Do(k.Close())
			})
		}
	}
}

// randomSize is a size of which some are long along one axis, so that there are several tiles and chunks.
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
