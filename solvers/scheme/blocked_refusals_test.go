package scheme

import (
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// untuned is scheme blocked with passes that nothing has timed: all count as faster than sweeps. Exchanges overlap the
// interior wherever they can.
const untuned Scheme = "untuned"

// overlaps counts subdomains, of all runs: those that exchange beside the interior, those that have a kernel for a
// last pass that stores ghosts of neighbours, and those whose passes do.
type overlaps struct{ overlapped, Kernels, Stores int }

// addUntuned adds it for a test, and returns how its subdomains exchange.
func addUntuned(t testing.TB) *overlaps {
	found := &overlaps{}
	before := schemes
	schemes = append(slices.Clone(schemes), func() *definition {
		d := blockedScheme()
		d.name = untuned
		d.make = func(x *run, o Options) ([]worker, error) {
			workers, err := newBlockedWithin(x, o, blockedLimits{})
			if err != nil {
				return nil, err
			}
			for _, p := range workers[0].(*blockedPart).parts {
				if p.made != nil && p.made.StoresGhosts(p.lastDepth(), p.owned(), p.sides) {
					found.Kernels++
				}
				if p.overlap != nil {
					found.overlapped++
				}
				if p.stores != nil {
					found.Stores++
				}
			}
			return workers, nil
		}
		return d
	})
	t.Cleanup(func() { schemes = before })
	return found
}

// passStep is a step that scheme blocked makes, over a variable of some levels and a coefficient.
func passStep(t *testing.T, set *testdevices.Set, levels int, stagger [3]bool) (step *Step, u, c *Variable) {
	t.Helper()
	place := placed(t, set.Devices, []int{20, 17, 13}, [3]bool{}, domain.Vec{1, 1, 1})
	width := domain.UniformRadius(3, 2)
	u = newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: width, Stagger: stagger}, levels)
	c = newVariable(t, place, halo.Spec{Name: "c", Element: halo.Float64, Width: width}, 1)
	for _, v := range []*Variable{u, c} {
		v.Boundary = boundary.All(boundary.Condition{Kind: boundary.Neumann})
		for _, f := range v.levels {
			succeeds(t, halo.FillPoints(f, func(at domain.Vec) float64 { return float64(at[0]%3 + at[1]%5 + at[2]%7) }))
		}
	}
	return &Step{Name: "passes", Stages: []Stage{{
		Name: "spread", Reads: []Access{u.At(0, stencil.Star(3, 1)), c.At(0, nil)}, Writes: []Access{u.At(1, nil).Named("next")}, Point: spreading(),
	}}}, u, c
}

// spreading reads a variable around a point, times a coefficient.
func spreading() *sweep.Point {
	return &sweep.Point{
		Name: "spreading", Dims: 3,
		CUDA: `template <typename P> __device__ __forceinline__ void spreading(P &p) {
	p.set(next, p.at(u) + 0.01 * p.at(c) * (p.at(u, 1, 0, 0) + p.at(u, 0, 1, 0) + p.at(u, 0, 0, 1) - 3 * p.at(u)));
}`,
		Go: func(r *sweep.Row) {
			u, c, next := sweep.At[float64](r, "u", 0, 0, 0), sweep.At[float64](r, "c", 0, 0, 0), sweep.At[float64](r, "next", 0, 0, 0)
			x, y, z := sweep.At[float64](r, "u", 1, 0, 0), sweep.At[float64](r, "u", 0, 1, 0), sweep.At[float64](r, "u", 0, 0, 1)
			for i := range next {
				next[i] = u[i] + float64(float64(0.01*c[i])*(x[i]+y[i]+z[i]-float64(3*u[i])))
			}
		},
	}
}

// Scheme blocked says what of a step it cannot make.
func TestStepsThatNoPassMakes(t *testing.T) {
	set := testdevices.Host(t, 1)
	for name, c := range map[string]struct {
		levels  int
		stagger [3]bool
		change  func(s *Step, u, c *Variable)
		says    string
	}{
		"all is there":         {2, [3]bool{}, func(*Step, *Variable, *Variable) {}, ""},
		"two stages":           {2, [3]bool{}, func(s *Step, _, _ *Variable) { s.Stages = append(s.Stages, s.Stages[0]) }, "runs steps of one stage, not of 2"},
		"three levels":         {3, [3]bool{}, func(*Step, *Variable, *Variable) {}, `"u" has 3 levels`},
		"a staggered variable": {2, [3]bool{true}, func(*Step, *Variable, *Variable) {}, `"u" is staggered`},
		"written and not read": {2, [3]bool{}, func(s *Step, u, c *Variable) { s.Stages[0].Reads = []Access{c.At(0, nil).Named("u"), c.At(0, nil)} }, "without reading it"},
		"the level before":     {2, [3]bool{}, func(s *Step, u, c *Variable) { s.Stages[0].Reads[1] = u.At(-1, nil).Named("next") }, `reads level -1 of "u"`},
		"in place":             {2, [3]bool{}, func(s *Step, u, c *Variable) { s.Stages[0].Writes = append(s.Stages[0].Writes, c.At(0, nil)) }, `"c" has one level, which is updated in place`},
		"a boundary of its own": {2, [3]bool{}, func(_ *Step, u, _ *Variable) {
			u.Boundary[0] = boundary.Condition{Kind: boundary.Custom, Kernel: noKernel}
		}, `blocked runs steps between boundaries that halox sets, and one of "u" has a user kernel`},
		"parameters that change":  {2, [3]bool{}, func(s *Step, _, _ *Variable) { s.Stages[0].Parameters = func(int64) any { return nil } }, "changes from step to step"},
		"a coefficient of levels": {2, [3]bool{}, func(s *Step, u, c *Variable) { c.levels = append(c.levels, c.levels[0]) }, "levels read in turn"},
	} {
		t.Run(name, func(t *testing.T) {
			step, u, v := passStep(t, set, c.levels, c.stagger)
			c.change(step, u, v)
			_, err := runnerBy(t, set, step, p2p.Staged).Run(t.Context(), Options{Scheme: Blocked, Steps: 1, Limit: testLimit})
			wants(t, name, err, map[bool]error{true: ErrUnsuited}[c.says != ""], c.says)
		})
	}
}

func noKernel(boundary.Slab) (*streams.Kernel, error) { return nil, nil }
