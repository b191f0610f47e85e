package temporal

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// pass_stars.cu gives the bits of sweeps in shapes that other tests have no room for on the CPU: those that are tried
// on GPUs, with level 0 asked for two planes ahead, and of three steps. Boxes are smaller than a tile, have walls
// within one, and have many.
func TestPassesOfLongStars(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		rng := rand.New(rand.NewPCG(17, 18))
		shapes := []longStars{{2, 2, 3, 1, everywhere}, {2, 3, 2, 2, everywhere}, {3, 3, 4, 1, everywhere}, {2, 4, 8, 2, everywhere}, {2, 3, 8, 2, everywhere}}
		for i, c := range shapes { // of either type if tests are long, else some by turns
			for k, spacing := range [][]float64{{0.1, 0.1, 0.1}, {0.1, 0.2, 0.3}} {
				s := test.Must(stencil.HeatOf(stencil.Kinds(3)[1], spacing, 1, 1e-3))(t)
				if testdevices.Turn(i+2*k, 8, 8) {
					tryLongStars[float32](t, b, s, longStarShape(s, kernels.Float32, c), kernels.Float32, rng)
				}
				if testdevices.Turn(i+2*k+4, 8, 8) {
					tryLongStars[float64](t, b, s, longStarShape(s, kernels.Float64, c), kernels.Float64, rng)
				}
			}
		}
	})
}

func tryLongStars[T rows.Float](t *testing.T, b *kerneltest.Bench, s stencil.Stencil, one shape, real kernels.Real, rng *rand.Rand) {
	for i := range 4 {
		size := domain.Vec{1 + rng.IntN(70), 1 + rng.IntN(20), 1 + rng.IntN(30)}
		if i > 0 {
			size[i-1] += 40 * (1 + rng.IntN(3)) // several tiles along x or y, or a long march
		}
		sides := randomSides(s, size, rng)
		if i == 3 {
			sides = Sides{}
		}
		p := newProblem[T](t, s, sides, size, one.depth, rng)
		passes := test.Must(New(b.Compiler, b.Device, s, real, p.layout, Options{}))(t)
		t.Run(fmt.Sprintf("%v/%v", p, one), func(t *testing.T) {
			p.runWith(t, b, passes, More{}, one.kernel(t, passes, p.box, sides))
		})
	}
}
