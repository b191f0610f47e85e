package solvers

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// inGroups returns the ways to run in which several steps go between two exchanges.
func inGroups() (all []how) {
	for _, h := range ways() {
		if h.scheme != Ranks && h.scheme != Resident {
			all = append(all, h)
		}
	}
	return all
}

// Several steps between two exchanges give the bits and the norms of the reference: every kind of stencil, type, kind of
// wall, cut, scheme, order and path, chosen at random.
func TestGroupsGiveOneAnswer(t *testing.T) {
	testdevices.Each(t, 8, func(t *testing.T, set *testdevices.Set) {
		r, made := rand.New(rand.NewPCG(1, 7)), 0
		for c := range testdevices.Few(60, make([]struct{}, 240)) {
			p := randomProblem(t, r)
			steps, every := 3+r.IntN(9), 1+r.IntN(5)
			want, norms := expected(p, steps)
			for range 4 {
				h := inGroups()[r.IntN(len(inGroups()))]
				p := inGroupsOf(p, 2+r.IntN(6))
				h.parts = domain.Vec{1 + r.IntN(3), 1 + r.IntN(2), 1}
				if p.Grid.Dims == 3 {
					h.parts[2] = 1 + r.IntN(2)
				}
				if !fits(p, h) || h.scheme == Graph && changes(p) || int(h.parts.Product()) > len(set.Devices) {
					continue
				}
				made++
				t.Run(fmt.Sprintf("%d/%v of %d points/type=%s/group=%d/%v", c, p.Grid.Size, p.Stencil.Points(), p.Real, p.Group, h), func(t *testing.T) {
					s, res := solve(t, set, p, h, Options{Steps: int64(steps), CheckEvery: int64(every), History: true})
					compare(t, p.Grid, read(t, s), want)
					checkNorms(t, res, norms, p.Grid.Points(), int64(steps))
				})
			}
		}
		if len(set.Devices) > 1 && made < 20 {
			t.Errorf("%d cases were made", made)
		}
	})
}

// randomProblem is a problem of any kind of stencil between walls of any kind.
func randomProblem(t *testing.T, r *rand.Rand) *Problem {
	dims := 2 + r.IntN(2)
	size, walls := make([]int, dims), ""
	kinds := stencil.Kinds(dims)
	kind := kinds[r.IntN(len(kinds))]
	for a := range size {
		size[a] = 1 + r.IntN(22)
		pairs := []string{"dd", "nn", "pp", "dn", "nd", "td", "nt", "tt"}
		if kind.Shape == stencil.BoxShape {
			pairs = pairs[:5]
		}
		pair := pairs[r.IntN(len(pairs))]
		if pair != "dd" {
			size[a] = max(2, size[a])
		}
		walls += pair
	}
	real := []kernels.Real{kernels.Float64, kernels.Float32}[r.IntN(2)]
	return of(t, problem(t, size, real, walls), kind)
}

// fits reports whether subdomains own as many layers as their neighbours need.
func fits(p *Problem, h how) bool {
	cut, err := domain.Decompose(p.Grid, h.parts)
	if err != nil {
		return false
	}
	return cut.CheckWidth(p.Width()) == nil
}

// inGroupsOf returns the problem with so many steps between two exchanges.
func inGroupsOf(p *Problem, steps int) *Problem {
	grouped := *p
	grouped.Group = steps
	return &grouped
}

// Kernels that sweep ghosts, and store several layers into those of neighbours, give the bits and norms of the reference on
// GPUs that the CPU plays.
func TestGroupsOnCPU(t *testing.T) {
	const steps = 7
	for _, c := range []conformance{
		{"plane", problem(t, []int{40, 13}, kernels.Float64, "dntt"), []domain.Vec{{2, 1, 1}}},
		{"fourth order", of(t, problem(t, []int{19, 16, 17}, kernels.Float32, "dtnnpp"), stencil.Kind{Points: 13, Shape: stencil.StarShape}), []domain.Vec{{2, 1, 2}}},
		{"box", of(t, problem(t, []int{14, 12, 13}, kernels.Float64, "ddnnpp"), stencil.Kind{Points: 27, Shape: stencil.BoxShape}), []domain.Vec{{1, 2, 2}}},
	} {
		want, norms := expected(c.problem, steps)
		for i, h := range []how{{scheme: Fused, path: p2p.Direct}, {scheme: TwoStream, order: LeftRight, path: p2p.Peer}, {scheme: Assisted, order: LeftRight, path: p2p.Direct}} {
			h.parts = c.cuts[0]
			p := inGroupsOf(c.problem, 3-i%2)
			t.Run(fmt.Sprintf("%s/group=%d/%v", c.name, p.Group, h), func(t *testing.T) {
				set := testdevices.CPU(t, int(h.parts.Product()))
				s, res := solve(t, set, p, h, Options{Steps: steps, CheckEvery: 4, History: true})
				compare(t, p.Grid, read(t, s), want)
				checkNorms(t, res, norms, p.Grid.Points(), steps)
			})
		}
	}
}
