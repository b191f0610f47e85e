package scheme

import (
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// Scheme blocked gives the bits of plain loops for point functions, which it sweeps: of one stage that reads some
// variables around points and steps them all, with coefficients, in groups over several devices and alone on one.
func TestBlockedStagesGiveOneAnswer(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	addUntuned(t)
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		seeds := len(testdevices.Again(4, testdevices.Numbers(24)))
		if testdevices.OnCPU(set.Devices[0]) {
			seeds = 3 // each program takes seconds to compile
		}
		for seed := range seeds {
			s := newBlockedStep(t, rand.New(rand.NewPCG(uint64(seed), 4)), seed%2 == 0)
			c := cases{
				steps: 11, cuts: cuts, options: []Options{{Scheme: untuned}}, points: true,
				paths: []p2p.Path{p2p.Staged, p2p.Peer, p2p.Direct}[seed%3:][:1],
			}
			if s.group == 1 {
				c.cuts = cuts[:1]
			}
			c.try(t, set, s, seed)
		}
	})
}

// newBlockedStep returns a step of one stage that reads variables and computes their next levels, alone on a grid
// between walls or in groups.
func newBlockedStep(t testing.TB, r *rand.Rand, alone bool) *randomStep {
	s := newRandomStep(t, r)
	if s.group = 2 + r.IntN(3); alone {
		s.group, s.grid.Periodic = 1, [3]bool{}
	}
	for a := range s.grid.Dims {
		s.grid.Size[a] += r.IntN(16)
	}
	s.variables, s.stages = nil, []randomStage{{}}
	for i := range 1 + r.IntN(4) {
		v := s.newVariable(r)
		for a := range s.grid.Dims {
			v.width.Plus[a] = max(0, min(2, v.width.Minus[a]+r.IntN(3)-1))
		}
		a := randomAccess{variable: i}
		for _, far := range []domain.Vec{{}, v.width.Plus, {-v.width.Minus[0], -v.width.Minus[1], -v.width.Minus[2]}, s.offset(r, v.width), s.offset(r, v.width)} {
			a.around = append(a.around, far)
		}
		if v.levels = 1; i == 0 || r.IntN(3) > 0 {
			v.levels = 2
			s.stages[0].writes = append(s.stages[0].writes, randomAccess{variable: i, level: 1})
		}
		s.variables, s.stages[0].reads = append(s.variables, v), append(s.stages[0].reads, a)
	}
	return s
}
