package temporal

import (
	"errors"
	"math"
)

// ErrImpossible says that there are no passes of a stencil on a device.
var ErrImpossible = errors.New("no passes of several steps")

// maxDepth is the most steps of a pass.
const maxDepth = 32

// noPasses returns the costs of sweeps alone, with room for passes up to a depth.
func noPasses(depth int) []float64 {
	cost := make([]float64, max(1, depth)+1)
	for d := range cost {
		cost[d] = math.Inf(1)
	}
	cost[0], cost[1] = 0, 1
	return cost
}
