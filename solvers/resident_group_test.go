package solvers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// randomStar is a problem of a star of radius 1 between walls that do not move.
func randomStar(t *testing.T, r *rand.Rand, most int) *Problem {
	size, walls := make([]int, 2+r.IntN(2)), ""
	for a := range size {
		size[a] = 1 + r.IntN(most)
		pair := []string{"dd", "nn", "pp", "dn", "nd"}[r.IntN(5)]
		if pair != "dd" {
			size[a] = max(2, size[a])
		}
		walls += pair
	}
	return problem(t, size, []kernels.Real{kernels.Float64, kernels.Float32}[r.IntN(2)], walls)
}

// Scheme resident with several steps between two exchanges gives the bits, the norms and the history of the reference, by runs of any number of steps behind
// each other: of any size, walls, type and cut, chosen at random.
func TestResidentGroups(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		r := rand.New(rand.NewPCG(4, 2+uint64(testdevices.Seed())))
		cases, most, made := 40, 22, 0
		if testdevices.OnCPU(set.Devices[0]) { // which compiles some programs for each
			cases, most = 4, 14
		}
		for c := 0; c < 40*cases && made < len(testdevices.Again(cases/2, testdevices.Numbers(cases))); c++ {
			p := inGroupsOf(randomStar(t, r, most), 2+r.IntN(3))
			h := how{scheme: Resident, path: p2p.Direct, parts: domain.Vec{1 + r.IntN(2), 1 + r.IntN(3), 1}}
			if p.Grid.Dims == 3 {
				h.parts[2] = 1 + r.IntN(2)
			}
			if !fits(p, h) || int(h.parts.Product()) > len(set.Devices) || h.parts.Product() == 1 && r.IntN(3) > 0 {
				continue
			}
			made++
			every, first, second := 1+r.IntN(5), 1+r.IntN(9), 1+r.IntN(14)
			t.Run(fmt.Sprintf("%d/size=%v/type=%s/group=%d/parts=%v/every=%d/steps=%d+%d", c, p.Grid.Size, p.Real, p.Group, h.parts, every, first, second), func(t *testing.T) {
				want, norms := expected(p, first+second)
				s, _ := solve(t, set, p, h, Options{Steps: int64(first), CheckEvery: int64(every)})
				res, err := s.Run(t.Context(), h.options(Options{Steps: int64(second), CheckEvery: int64(every), History: true}))
				if err != nil {
					t.Fatal(err)
				}
				compare(t, p.Grid, read(t, s), want)
				checkNorms(t, res, norms, p.Grid.Points(), int64(second))
			})
		}
		if len(set.Devices) > 1 && made == 0 {
			t.Error("no cases were made")
		}
	})
}

// On GPUs that cannot have tiles with ghosts so wide, scheme resident refuses and says why.
func TestResidentGroupsThatDoNotFit(t *testing.T) {
	set := testdevices.CPU(t, 2)
	for name, c := range map[string]struct {
		p    *Problem
		says string
	}{
		"a large grid":  {problem(t, []int{60, 60, 60}, kernels.Float64, "dddddd"), "do not fit twice into the shared memory"},
		"another shape": {of(t, problem(t, []int{19, 16, 17}, kernels.Float32, "dddddd"), stencil.Kind{Points: 13, Shape: stencil.StarShape}), "tiles are of stars of radius 1"},
	} {
		h := how{scheme: Resident, path: p2p.Direct, parts: domain.Vec{1, 1, 2}}
		s := prepare(t, set, inGroupsOf(c.p, 2), h)
		_, err := s.Run(t.Context(), h.options(Options{Steps: 3}))
		if !errors.Is(err, scheme.ErrUnsuited) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, not %q", name, err, c.says)
		}
	}
}
