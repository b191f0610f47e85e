package temporal

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// A pass on a host device gives the bits of sweeps, whatever the stencil, the sides, the size and the tiles.
func TestHostPasses(t *testing.T) {
	testdevices.Once(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range stencils(t) {
		for range 12 {
			size := domain.Vec{1 + rng.IntN(20), 1 + rng.IntN(12), 1 + rng.IntN(9)}
			if s.Dims == 2 {
				size[2] = 1
			}
			sides, depth := randomSides(s, size, rng), 1+rng.IntN(5)
			tile := domain.Vec{1 + rng.IntN(size[0]), 1 + rng.IntN(size[1]), 0}
			if rng.IntN(3) == 0 {
				tile = domain.Vec{}
			}
			checkHost[float32](t, s, sides, size, depth, tile, rng)
			checkHost[float64](t, s, sides, size, depth, tile, rng)
		}
	}
}

func checkHost[T rows.Float](t *testing.T, s stencil.Stencil, sides Sides, size domain.Vec, depth int, tile domain.Vec, rng *rand.Rand) {
	p := newProblem[T](t, s, sides, size, depth, rng)
	t.Run(p.String(), func(t *testing.T) {
		h := newHostPass(s, sides, p.from, p.to, p.layout, p.layout, p.box, depth, tile)
		h.room = make([]T, h.rooms)
		h.run()
		p.stored = p.to
		p.check(t)
	})
}
