package temporal

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/nvrtc"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

var generations = []string{"sm_80", "sm_90", "sm_100"}

// mostShared is the largest shared memory of a block.
var mostShared = map[string]int{"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10}

// programs returns all kernels of a target for stars of radius 1, and the largest ones for other stencils.
func programs(t *testing.T, target string) (all []kernels.Program) {
	seen := map[string]bool{}
	for _, s := range stencils(t) {
		for _, real := range []domain.Element{domain.Float32, domain.Float64} {
			l := test.Must(domain.NewLayout(domain.Box{Hi: domain.Vec{1, 1, 1}}, s.Radius(), real.Size()))(t)
			for _, one := range shapesWith(s, real, l, target, mostShared[target], Options{}) {
				if kind := kindOf(s, one); !seen[kind+string(real)] {
					seen[kind+string(real)] = true
					all = append(all, one.program)
					if one.storesGhosts() {
						all = append(all, withGhostStores(one.program))
					}
				}
			}
			most := Options{Norms: 1, Moving: true} // with the most registers
			for _, one := range shapesWith(s, real, l, target, mostShared[target], most) {
				if kind := one.String(); one.name != "pass" && !seen[kind] {
					seen[kind] = true
					all = append(all, one.program)
				}
			}
			for norms := 2; norms <= MaxNorms; norms++ { // of every step
				for _, one := range shapesWith(s, real, l, target, mostShared[target], Options{Norms: norms, Deepest: norms}) {
					if kind := one.String(); one.name != "pass" && one.depth == norms && !seen[kind] {
						seen[kind] = true
						all = append(all, one.program)
					}
				}
			}
			for _, o := range []Options{{Norms: 1}, {Norms: 3}, {Norms: 1, Sums: sums.Fast}, {Moving: true}, {Norms: 1, Moving: true}} {
				of := shapesWith(s, real, l, target, 160<<10, o)
				if kind := fmt.Sprint(s.Footprint(), real, o); len(of) > 0 && !seen[kind] {
					seen[kind] = true
					all = append(all, of[len(of)-1].program)
				}
			}
		}
	}
	return all
}

// kindOf groups programs: pass.cu by stencil, others by program.
func kindOf(s stencil.Stencil, one shape) string {
	if one.name == "pass" {
		return fmt.Sprint(s.Footprint())
	}
	return one.String()
}

func TestEveryArgumentIsMirrored(t *testing.T) {
	kerneltest.MirrorArguments(t, programs(t, "sm_90")...)
}

func TestLayouts(t *testing.T) { kerneltest.CompileAsCPP(t, programs(t, "sm_90")...) }

// No kernel spills registers. If a target has too few registers for a kernel, it has other kernels of that depth.
func TestEveryProgramCompilesWithoutSpills(t *testing.T) {
	testdevices.InTurn(t, 0, 8)
	testdevices.Once(t)
	c := test.Must(nvrtc.Open(testdevices.NVRTC(t)))(t)
	for k, target := range generations {
		for i, p := range programs(t, target) {
			if testdevices.Turn(i+120*k, 360, 360) { // some for each generation
				kerneltest.WithoutSpills(t, c, p.String(), p, target)
			}
		}
	}
}

func TestEveryTargetHasAllDepths(t *testing.T) {
	want := map[string][]int{}
	for _, target := range generations {
		for _, s := range stencils(t) {
			for _, real := range []domain.Element{domain.Float32, domain.Float64} {
				l := test.Must(domain.NewLayout(domain.Box{Hi: domain.Vec{1, 1, 1}}, s.Radius(), real.Size()))(t)
				var depths []int
				for _, one := range shapesWith(s, real, l, target, 160<<10, Options{}) {
					depths = append(depths, one.depth)
				}
				slices.Sort(depths)
				key := fmt.Sprint(s, real)
				if depths = slices.Compact(depths); want[key] == nil {
					want[key] = depths
				} else if !slices.Equal(depths, want[key]) {
					t.Errorf("%s on %s: got passes of %v steps, want %v", key, target, depths, want[key])
				}
			}
		}
	}
}

// Cut is optimal, compared with an exhaustive search, for random costs and any number of steps.
func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		steps, deepest := 1+r.IntN(9), 1+r.IntN(5)
		table := map[[2]int]float64{}
		for after := range steps {
			for depth := 1; depth <= deepest; depth++ {
				table[[2]int{after, depth}] = float64(depth) * (0.5 + r.Float64())
				if depth > 1 && r.IntN(3) == 0 {
					table[[2]int{after, depth}] = math.Inf(1)
				}
			}
		}
		cost := func(after, depth int) float64 { return table[[2]int{after, depth}] }
		end := [2]float64{r.Float64() * float64(r.IntN(2)), r.Float64() * float64(r.IntN(2))}
		least := 1 + r.IntN(steps)
		depths := Cut(steps, least, deepest, cost, end)
		made, took := 0, 0.0
		for _, d := range depths {
			took += cost(made, d)
			made += d
		}
		took = (took + end[len(depths)%2]) / float64(made)
		if want := cheapest(0, 0, steps, least, deepest, 0, cost, end); made < least || made > steps || math.Abs(took-want) > 1e-9 {
			t.Fatalf("%d to %d steps: passes %v cost %v per step, want %v", least, steps, depths, took, want)
		}
	}
}

// cheapest returns the least cost per step over all continuations after some passes.
func cheapest(made, passes, steps, least, deepest int, took float64, cost func(after, depth int) float64, end [2]float64) float64 {
	best := math.Inf(1)
	if made >= least {
		best = (took + end[passes%2]) / float64(made)
	}
	for d := 1; d <= min(deepest, steps-made); d++ {
		best = min(best, cheapest(made+d, passes+1, steps, least, deepest, took+cost(made, d), cost, end))
	}
	return best
}

// Of passes with equal cost the deepest come first, so that running the first one and dividing the rest again
// stays optimal.
func TestCutTakesDeepPassesFirst(t *testing.T) {
	costs := []float64{0, 1, 1.2, 1.4, 1.6}
	cost := func(_, depth int) float64 { return costs[depth] }
	for steps := 4; steps < 40; steps++ {
		for left := steps; left >= 4; left -= 4 {
			if depths := Cut(left, left, 4, cost, [2]float64{}); depths[0] != 4 {
				t.Fatalf("%d steps: got passes %v", left, depths)
			}
		}
	}
}

// Ladders lead away from a weight on both sides, whether it is a tested weight, between two, before the first or
// after the last.
func TestLadders(t *testing.T) {
	for weight := range weights[len(weights)-1] + 3 {
		l := ladders(weight)
		if !slices.IsSorted(l[0]) || len(l[0]) > 0 && l[0][0] <= weight {
			t.Errorf("above %d: got %d", weight, l[0])
		}
		down := slices.Clone(l[1])
		if slices.Reverse(down); !slices.IsSorted(down) || len(down) > 0 && l[1][0] >= weight {
			t.Errorf("below %d: got %d", weight, l[1])
		}
		if got := append(append(down, l[0]...), weight); len(got) < len(weights) {
			t.Errorf("around %d: got %d", weight, got)
		}
	}
}

// Passes that would read more ghosts than the arrays have are neither measured nor used afterwards.
func TestTuneKeepsToTheGhosts(t *testing.T) {
	eachGPU(t, 1, func(t *testing.T, set *testdevices.Set) {
		b := kerneltest.NewBench(t, set)
		s := test.Must(stencil.HeatOf(stencil.Kinds(2)[0], []float64{0.1, 0.1}, 1, 1e-3))(t)
		for ghosts := 1; ghosts <= 3; ghosts++ {
			t.Run(fmt.Sprintf("ghosts=%d", ghosts), func(t *testing.T) {
				box := domain.Box{Hi: domain.Vec{37, 41, 1}}
				width := domain.Radius{Minus: domain.Vec{ghosts, ghosts}, Plus: domain.Vec{ghosts, ghosts}}
				l := test.Must(domain.NewLayout(box, width, 8))(t)
				from, to := array(b, l, make([]float64, l.Length)), array(b, l, make([]float64, l.Length))
				fixed := Sides{Fixed, Fixed, Fixed, Fixed}
				slow, _, err := test.Must(New(b.Compiler, b.Device, s, domain.Float64, l, Options{}))(t).Pass("slow", from, to, box, fixed, 2, More{})
				test.Check(t, err)
				defer func() { b.Do(slow.Close()) }()
				passes := test.Must(New(b.Compiler, b.Device, s, domain.Float64, l, Options{}))(t)
				test.Check(t, passes.Tune(slow, from, to, box, Sides{}, More{}, time.Millisecond))
				for depth, cost := range passes.Costs() {
					if depth > ghosts && depth > 1 && !math.IsInf(cost, 1) {
						t.Errorf("passes of %d steps read %d of %d ghosts, so their cost must be infinite", depth, depth, ghosts)
					}
				}
				if _, _, err := passes.Pass("deep", from, to, box, Sides{}, ghosts+1, More{}); err == nil {
					t.Errorf("a pass of %d steps with %d ghosts: got no error", ghosts+1, ghosts)
				}
			})
		}
	})
}

// A box without a launch for a kernel is impossible for that kernel, not a failure: Tune and scheme auto try
// others.
func TestBoxesTooLongForPasses(t *testing.T) {
	for _, s := range stencils(t) {
		one, ok := generalShape(s, domain.Float64, 2, 227<<10, Options{})
		if s.Dims != 3 || !ok {
			continue
		}
		if _, _, err := one.grid(domain.Vec{8, 4300000, 8}, 0, 132); !errors.Is(err, ErrImpossible) {
			t.Errorf("%v: got %v", s, err)
		}
	}
	test.Is(t, checkLength(domain.Vec{maxAxis + 1, 4, 1}), ErrImpossible)
	test.Report(t, checkLength(domain.Vec{maxAxis, 4, 1}))
}
