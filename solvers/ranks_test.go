package solvers

import (
	"fmt"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
)

// The kernel of scheme ranks, on GPUs that the CPU plays, gives the bits and norms of the reference: with several
// tiles a GPU, of whole groups and of single points, walls of all kinds, and cuts along each axis.
func TestRanksOnCPU(t *testing.T) {
	const steps = 9
	for _, c := range []conformance{
		{"plane", problem(t, []int{70, 9}, kernels.Float64, "dnpp"), []domain.Vec{{1, 1, 1}, {2, 2, 1}}},
		{"cuboid", problem(t, []int{66, 6, 7}, kernels.Float32, "dddnpp"), []domain.Vec{{1, 1, 3}, {2, 1, 2}}},
		{"all periodic", problem(t, []int{33, 6, 5}, kernels.Float64, "pppppp"), []domain.Vec{{1, 1, 1}, {1, 2, 2}}},
		{"more columns than threads", problem(t, []int{66, 40, 33}, kernels.Float64, "dnppdn"), []domain.Vec{{1, 1, 1}, {1, 1, 2}}},
		{"tiny", problem(t, []int{3, 1, 2}, kernels.Float64, "dnppdn"), []domain.Vec{{3, 1, 1}, {1, 1, 2}}},
	} {
		want, norms := expected(c.problem, steps)
		for _, cut := range testdevices.Some(1, c.cuts) {
			t.Run(fmt.Sprintf("%s/%v", c.name, cut), func(t *testing.T) {
				set := testdevices.CPU(t, int(cut.Product()))
				s, res := solve(t, set, c.problem, how{scheme: Ranks, path: p2p.Direct, parts: cut}, Options{Steps: steps, CheckEvery: 4, History: true})
				compare(t, c.problem.Grid, read(t, s), want)
				checkNorms(t, res, norms, c.problem.Grid.Points(), steps)
			})
		}
	}
}
