package solvers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// conformance is a problem with decompositions to test.
type conformance struct {
	name    string
	problem *Problem
	cuts    []domain.Vec
}

func conformances(t testing.TB, real domain.Element) []conformance {
	steep := problem(t, []int{13, 10, 9}, real, "ddnndd")
	steep.Initial = parse(t, "sin(1.3*i+0.7)*exp(1.9*k-0.8*j)")
	return []conformance{
		{"plane", problem(t, []int{11, 7}, real, "dddd"), []domain.Vec{{1, 1, 1}, {1, 2, 1}, {3, 1, 1}, {2, 2, 1}}},
		{"plane with equal spacing", equalSpacing(problem(t, []int{11, 7}, real, "ndpp")), []domain.Vec{{1, 1, 1}, {1, 3, 1}, {2, 2, 1}}},
		{"cuboid", problem(t, []int{9, 6, 5}, real, "dddddd"), []domain.Vec{{1, 1, 1}, {1, 1, 4}, {1, 2, 2}, {2, 1, 1}}},
		{"cuboid with equal spacing", equalSpacing(problem(t, []int{9, 6, 5}, real, "dddddd")), []domain.Vec{{1, 1, 3}, {3, 1, 1}}},
		{"ring in z", problem(t, []int{5, 6, 7}, real, "dnddpp"), []domain.Vec{{1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 1, 4}}},
		{"time-dependent boundaries", problem(t, []int{6, 5, 7}, real, "tdntdt"), []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 1, 2}}},
		{"time-dependent boundaries of a plane", problem(t, []int{6, 5}, real, "tttt"), []domain.Vec{{1, 1, 1}, {1, 3, 1}, {2, 2, 1}}},
		{"all periodic", problem(t, []int{5, 6, 7}, real, "pppppp"), []domain.Vec{{1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {1, 3, 1}}},
		{"all insulated", problem(t, []int{5, 6, 7}, real, "nnnnnn"), []domain.Vec{{1, 1, 1}, {1, 2, 2}, {1, 1, 4}}},
		{"values half a spacing out", problem(t, []int{9, 6, 7}, real, "frgodn"), []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 2, 1}}},
		{"cells", problem(t, []int{11, 7}, real, "hrfh"), []domain.Vec{{1, 1, 1}, {1, 3, 1}, {2, 2, 1}}},
		{"moving values half a spacing out", problem(t, []int{6, 5, 7}, real, "RFGHpp"), []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 2, 1}}},
		{"tiny", problem(t, []int{3, 1, 2}, real, "dnppdn"), []domain.Vec{{1, 1, 1}, {3, 1, 1}, {2, 1, 2}, {1, 1, 2}}},
		{"norms of a steep field", steep, []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 2, 1}, {3, 1, 1}}},
	}
}

// Every scheme, order, path, type and decomposition is bitwise identical to the reference, including its
// norms.
func TestBitwiseIdentical(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, real := range testdevices.Again(1, testdevices.Some(2, []domain.Element{domain.Float64, domain.Float32})) {
			for i, c := range conformances(t, real) {
				for j, cut := range c.cuts {
					for k, h := range ways() {
						if !testdevices.Turn(i+j+k, 2, 5) {
							continue
						}
						h.parts = cut
						t.Run(fmt.Sprintf("problem=%s/type=%s/%v", c.name, real, h), func(t *testing.T) {
							if unsuited(set, h.scheme, c.problem) {
								_, err := prepare(t, set, c.problem, h).Run(t.Context(), h.options(scheme.Options{Steps: 1}))
								wants(t, err, scheme.ErrUnsuited, "")
								return
							}
							solved(t, set, c.problem, h, scheme.Options{Steps: 7, CheckEvery: 3})
						})
					}
				}
			}
		}
	})
}

// Time-dependent boundary values may depend on any of the coordinates and indices.
func TestBoundaryValuesOfEachVariable(t *testing.T) {
	set := testdevices.Host(t, 4)
	for _, variable := range []string{"x", "y", "z", "i", "j", "k", "nx"} {
		t.Run(variable, func(t *testing.T) {
			p := problem(t, []int{6, 5, 7}, domain.Float64, "tttttt")
			for i := range p.Boundary {
				p.Boundary[i].Value = parse(t, "cos(900*t)*"+variable)
			}
			for _, cut := range []domain.Vec{{1, 1, 1}, {2, 1, 2}} {
				solved(t, set, p, how{scheme.Baseline, scheme.LeftRight, p2p.Staged, cut}, scheme.Options{Steps: 5})
			}
		})
	}
}

// Kernels are bitwise identical to the reference, including norms, on emulated GPUs: scheme ranks with
// several tiles per GPU, groups of steps and single points, and other schemes that sweep ghosts, and store
// several layers into those of neighbors.
func TestBitwiseIdenticalOnCPU(t *testing.T) {
	others := []how{
		{scheme: scheme.Fused, path: p2p.Direct}, {scheme: scheme.TwoStream, order: scheme.LeftRight, path: p2p.Peer},
		{scheme: scheme.Assisted, order: scheme.LeftRight, path: p2p.Direct}, {scheme: scheme.Graph, path: p2p.Staged},
		{scheme: scheme.Blocked, path: p2p.Peer}, {scheme: scheme.Resident, path: p2p.Direct},
	}
	ranks := []how{{scheme: scheme.Ranks, path: p2p.Direct}}
	stars, boxes := stencil.Kind{Points: 13, Shape: stencil.StarShape}, stencil.Kind{Points: 27, Shape: stencil.BoxShape}
	steep := conformances(t, domain.Float64)[13]
	for place, c := range []struct {
		conformance
		ways   []how
		groups bool
	}{
		{conformance{"plane", problem(t, []int{70, 9}, domain.Float64, "dnpp"), []domain.Vec{{1, 1, 1}, {2, 2, 1}}}, ranks, false},
		{conformance{"cuboid", problem(t, []int{66, 6, 7}, domain.Float32, "dddnpp"), []domain.Vec{{1, 1, 3}, {2, 1, 2}}}, ranks, false},
		{conformance{"all periodic", problem(t, []int{33, 6, 5}, domain.Float64, "pppppp"), []domain.Vec{{1, 1, 1}, {1, 2, 2}}}, ranks, false},
		{conformance{"more columns than threads", problem(t, []int{66, 40, 33}, domain.Float64, "dnppdn"), []domain.Vec{{1, 1, 1}, {1, 1, 2}}}, ranks, false},
		{conformance{"tiny", problem(t, []int{3, 1, 2}, domain.Float64, "dnppdn"), []domain.Vec{{3, 1, 1}, {1, 1, 2}}}, ranks, false},
		{conformance{"values half a spacing out", problem(t, []int{33, 9, 8}, domain.Float64, "frhgpp"), []domain.Vec{{2, 1, 2}}}, append(ranks, others...), false},
		{conformance{"values at a box", of(t, problem(t, []int{14, 12}, domain.Float64, "frgh"), stencil.Kind{Points: 9, Shape: stencil.BoxShape}), []domain.Vec{{2, 2, 1}}}, others, true},
		{conformance{"values at edges", of(t, problem(t, []int{14, 12, 9}, domain.Float64, "frngpp"), boxes), []domain.Vec{{2, 2, 1}}}, ranks, false},
		{conformance{"moving values at a box", of(t, problem(t, []int{14, 12, 6}, domain.Float64, "FrppGR"), boxes), []domain.Vec{{2, 1, 2}}}, others, false},
		{steep, append(ranks, others...), false},
		{conformance{"groups of a plane", problem(t, []int{40, 13}, domain.Float64, "dntt"), []domain.Vec{{2, 1, 1}}}, others, true},
		{conformance{"groups of fourth order", of(t, problem(t, []int{19, 16, 17}, domain.Float32, "dtnnpp"), stars), []domain.Vec{{2, 1, 2}}}, others, true},
		{conformance{"groups of a box", of(t, problem(t, []int{14, 12, 13}, domain.Float64, "ddnnpp"), boxes), []domain.Vec{{1, 2, 2}}}, others, true},
		{conformance{"groups of a row", problem(t, []int{61}, domain.Float64, "dn"), []domain.Vec{{2, 1, 1}, {1, 1, 1}}}, others[5:], true},
		{conformance{"groups of a ring", problem(t, []int{61}, domain.Float32, "pp"), []domain.Vec{{2, 1, 1}, {1, 1, 1}}}, others[5:], true},
	} {
		for i, h := range c.ways {
			h.parts = testdevices.Some(1, c.cuts)[0]
			p := c.problem
			if c.groups {
				p = inGroupsOf(p, max(2, 4-i))
			}
			if !testdevices.Turn(place+i, 5, 2) { // each seed includes ranks
				continue
			}
			t.Run(fmt.Sprintf("%s/group=%d/%v", c.name, p.Group, h), func(t *testing.T) {
				set := testdevices.CPU(t, int(h.parts.Product()))
				if unsuited(set, h.scheme, p) {
					t.Skip("SKIPPED: the scheme does not suit the problem")
				}
				solved(t, set, p, h, scheme.Options{Steps: 9, CheckEvery: 4})
			})
		}
	}
}

// Random problems, of any kind of stencil, size, type, boundary and decomposition, are bitwise identical to
// the reference, including norms: for every scheme, order and path; with several steps between two exchanges;
// for resident in consecutive runs of any number of steps; and on one device for passes of scheme blocked
// over all steps between two norms.
func TestRandomProblems(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	smallStars := func(dims int) []stencil.Kind { return stencil.Kinds(dims)[:1] }
	inGroups, resident, blocked := inGroups(), []how{{scheme: scheme.Resident, path: p2p.Direct}}, []how{{scheme: scheme.Blocked, path: p2p.Staged}}
	for _, c := range []struct {
		name                string
		ways                []how
		kinds               func(dims int) []stencil.Kind
		devices             int
		groups, parts, runs int // groups and parts: maximum
		cases, again, onCPU int // onCPU: each compiles several programs
	}{
		{"steps", ways(), stencil.Kinds, 8, 1, 3, 1, 400, 120, 0},
		{"groups", inGroups, stencil.Kinds, 8, 7, 3, 1, 120, 60, 0},
		{"resident", resident, smallStars, 4, 4, 3, 2, 40, 20, 4},
		{"passes", blocked, stencil.Kinds, 1, 1, 1, 1, 16, 4, 3},
	} {
		each := testdevices.EachKernel
		if c.onCPU == 0 {
			each = testdevices.Each
		}
		t.Run(c.name, func(t *testing.T) {
			each(t, c.devices, func(t *testing.T, set *testdevices.Set) {
				cases, most := len(testdevices.Again(c.again, testdevices.Numbers(c.cases))), 22
				if testdevices.OnCPU(set.Devices[0]) {
					cases, most = c.onCPU, 14
				}
				r, made := rand.New(rand.NewPCG(4, 2+uint64(testdevices.Seed()))), 0
				for try := 0; try < 40*cases && made < cases; try++ {
					p, h := randomProblem(t, r, c.kinds, most, c.name != "resident"), c.ways[r.IntN(len(c.ways))]
					if c.groups > 1 {
						p = inGroupsOf(p, 2+r.IntN(c.groups-1))
					}
					h.parts = domain.Vec{1, 1, 1}
					for a := range p.Grid.Dims {
						h.parts[a] += r.IntN(c.parts)
					}
					unwanted := c.name == "passes" && p.Grid.Periodic != [3]bool{} || h.parts.Product() == 1 && c.parts > 1 && r.IntN(3) > 0
					if !fits(set, p, h.parts) || unsuited(set, h.scheme, p) || unwanted {
						continue
					}
					made++
					var runs []scheme.Options
					for range c.runs {
						runs = append(runs, scheme.Options{Steps: int64(1 + r.IntN(30/c.runs)), CheckEvery: int64(1 + r.IntN(30/c.runs))})
					}
					name := fmt.Sprintf("%d/%v of %d points/type=%s/group=%d/%v/%v", try, p.Grid.Size, p.Stencil.Points(), p.Element, p.Group, h, runs)
					t.Run(name, func(t *testing.T) { solved(t, set, p, h, runs...) })
				}
				if len(set.Devices) > 1 && made < cases/2 {
					t.Errorf("only %d cases", made)
				}
			})
		})
	}
}

// Large grids of odd sizes are bitwise identical to plain sweeps: in groups, and for passes over many tiles
// with kernels for stars, with all kinds of boundaries.
func TestLargeGrids(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testdevices.Once(t)
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		size, parts := []int{517, 259, 131}, domain.Vec{1, 1, 1}
		if set.Devices[0].HostCores {
			size = []int{131, 67, 61}
		}
		for axis := 2; axis > 0 && int(parts.Product())*2 <= len(set.Devices); axis-- {
			parts[axis] = 2
		}
		var all []how
		for _, h := range testdevices.Again(2, testdevices.Some(6, inGroups())) {
			h.parts = parts
			all = append(all, h)
		}
		largeGrid(t, set, problem(t, size, domain.Float32, "dtnnpp"), all, func(i int) int { return 2 + i%8 })
		if set.Devices[0].GoKernels {
			return
		}
		passes := []how{{scheme: scheme.Blocked, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}}
		for _, c := range []struct {
			size  []int
			walls string
		}{
			{[]int{517, 259, 131}, "ddnndn"}, {[]int{512, 256, 64}, "dddddd"}, {[]int{2047, 1025}, "ndnn"},
			{[]int{4096, 512}, "dddd"}, {[]int{512, 256, 64}, "dtndtn"},
		} {
			for _, real := range []domain.Element{domain.Float32, domain.Float64} {
				largeGrid(t, set, problem(t, c.size, real, c.walls), passes, func(int) int { return 0 })
			}
		}
	})
}

// largeGrid compares ways to run a problem, in groups of steps, with TwoStream, since the reference would be
// too slow.
func largeGrid(t *testing.T, set *testdevices.Set, p *Problem, all []how, group func(i int) int) {
	o := scheme.Options{Steps: 47, CheckEvery: 23}
	plain, want := solve(t, set, p, how{scheme.TwoStream, scheme.LeftRight, p2p.Staged, all[0].parts}, o)
	for i, h := range all {
		of := inGroupsOf(p, group(i))
		if unsuited(set, h.scheme, of) {
			continue
		}
		t.Run(fmt.Sprintf("size=%v/%s/group=%d/%v", p.Grid.Size, p.Element, of.Group, h), func(t *testing.T) {
			s, res := solve(t, set, of, h, o)
			compare(t, p.Grid, read(t, s), read(t, plain))
			if !slices.Equal(res.Norms, want.Norms) {
				t.Errorf("norms %+v, not %+v", res.Norms, want.Norms)
			}
		})
	}
}

// toleranceAt returns the change of a step of the problem by a norm, which as a tolerance ends a run there.
func toleranceAt(p *Problem, step int, norm scheme.Norm) float64 {
	history, _ := newOracle(p).run(scheme.Options{Steps: int64(step)})
	if last := history[step-1].Norms[0]; norm == scheme.L2Norm {
		return last.L2Change
	} else {
		return last.MaxChange
	}
}

// A run ends at the same step as the reference by its tolerance, for both norms, on one device and several,
// anywhere in a group of steps or a launch, although more steps were queued; and the next run continues from
// there.
func TestTolerance(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		onCPU := testdevices.OnCPU(set.Devices[0])
		for i, c := range []struct {
			size    []int
			walls   string
			parts   domain.Vec
			group   int
			schemes []scheme.Scheme
		}{
			{[]int{7, 6, 8}, "dddddd", domain.Vec{1, 1, 2}, 1, scheme.All()},
			{[]int{11, 12, 13}, "dndtpp", domain.Vec{1, 2, 2}, 4, []scheme.Scheme{scheme.TwoStream, scheme.Assisted, scheme.Fused}},
			{[]int{33, 47}, "dndd", domain.Vec{1, 1, 1}, 1, []scheme.Scheme{scheme.Resident}},
			{[]int{64, 48}, "pppp", domain.Vec{1, 3, 1}, 1, []scheme.Scheme{scheme.Resident}},
			{[]int{12, 10, 16}, "dndnpp", domain.Vec{1, 1, 2}, 1, []scheme.Scheme{scheme.Resident}},
			{[]int{33, 47}, "dndd", domain.Vec{1, 3, 1}, 3, []scheme.Scheme{scheme.Resident}},
			{[]int{12, 10, 16}, "dndnpp", domain.Vec{1, 1, 2}, 2, []scheme.Scheme{scheme.Resident}},
			{[]int{7, 9, 8}, "pppppp", domain.Vec{1, 1, 1}, 4, []scheme.Scheme{scheme.Resident}},
		} {
			p := inGroupsOf(problem(t, c.size, domain.Float64, c.walls), c.group)
			if int(c.parts.Product()) > len(set.Devices) {
				c.parts = domain.Vec{1, 1, 1}
			}
			for j, name := range c.schemes {
				if onCPU && name != scheme.Resident || unsuited(set, name, p) {
					continue
				}
				for k, every := range []int64{1, 2, 7, 20} {
					for l, norm := range []scheme.Norm{scheme.MaxNorm, scheme.L2Norm} {
						if onCPU && !testdevices.Turn(i+k+l, 4, 4) || !testdevices.Turn(i+j+k+l, 1, 4) {
							continue
						}
						h := how{name, "", pathOf(name), c.parts}
						t.Run(fmt.Sprintf("size=%v/group=%d/every=%d/norm=%s/%v", c.size, c.group, every, norm, h), func(t *testing.T) {
							o := scheme.Options{Norm: norm, CheckEvery: every}
							first, second, rest := o, o, o
							first.Steps, first.Tolerance = 100, toleranceAt(p, 13, norm)
							second.Steps, second.Tolerance = 100, toleranceAt(p, 27, norm)
							rest.Steps = 3
							solved(t, set, p, h, first, rest, second, rest)
						})
					}
				}
			}
		}
	})
}

// Consecutive runs, with any schemes, are bitwise identical to one run of all their steps.
func TestConsecutiveRuns(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{7, 6, 8}, domain.Float64, "ddnnpp")
		s := prepare(t, set, p, how{path: p2p.Direct, parts: domain.Vec{1, 1, min(2, len(set.Devices))}})
		r := newOracle(p)
		schemes := scheme.All()[1:] // baseline synchronizes with the host
		for i, name := range append(schemes, schemes...) {
			r.verify(t, s, how{scheme: name, order: scheme.Pairwise}, scheme.Options{Steps: int64(1 + i%3)})
		}
	})
}

// Graphs of many steps, after graphs of one and between norms, are bitwise identical to single steps, also if
// several subdomains share a device.
func TestGraphsOfManySteps(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{6, 7, 9}, domain.Float64, "dnddpp")
		crowded := *set // each device twice
		crowded.Devices = append(set.Devices[:len(set.Devices):len(set.Devices)], set.Devices...)
		for i, every := range []int64{1 << 30, 37, 36, 17, 5} {
			for j, path := range p2p.Paths() {
				if !testdevices.Turn(i+j, 1, 3) {
					continue
				}
				h := how{scheme: scheme.Graph, path: path, parts: domain.Vec{1, 2, 2}}
				t.Run(fmt.Sprintf("every=%d/%v", every, h), func(t *testing.T) {
					solved(t, &crowded, p, h, scheme.Options{Steps: 203, CheckEvery: every})
				})
			}
		}
	})
}

// Fast sums are correct up to rounding.
func TestFastNorms(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	p := problem(t, []int{13, 10, 9}, domain.Float64, "ddnndd")
	every := scheme.Options{Steps: 7, History: true} // enough steps for norms within a launch
	want, _ := newOracle(p).run(every)
	p.Sums = sums.Fast
	near := func(a, b float64) bool { return a != 0 && math.Abs(a-b) <= 1e-13*b }
	for backend, open := range map[string]func(testing.TB, int) *testdevices.Set{"host": testdevices.Host, "cuda-on-cpu": testdevices.CPU} {
		t.Run("backend="+backend, func(t *testing.T) {
			set := open(t, 3)
			for _, name := range scheme.All() {
				_, got := solve(t, set, p, how{name, scheme.LeftRight, pathOf(name), domain.Vec{1, 1, 3}}, every)
				if len(got.History) != len(want) {
					t.Fatalf("%s: norms of %d steps, not %d", name, len(got.History), len(want))
				}
				for i, w := range want {
					if g, w := got.History[i].Norms[0], w.Norms[0]; g.MaxChange != w.MaxChange || !near(g.L2Change, w.L2Change) || !near(g.L2, w.L2) {
						t.Errorf("%s: %+v, not %+v", name, g, w)
					}
				}
			}
		})
	}
}

// At the end of an interval the devices have finished exactly its steps. Intervals do not change the run.
func TestIntervals(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		for i, name := range scheme.All() {
			if name == scheme.Blocked && !set.Devices[0].GoKernels {
				continue // passes may leave a level in either field until the run ends
			}
			for j, every := range []int64{3, 1 << 30} {
				if testdevices.Turn(i+j, 1, 2) || name == scheme.Resident && every == 3 { // whose launches take norms of several steps
					t.Run(fmt.Sprintf("scheme=%s/every=%d", name, every), func(t *testing.T) { inIntervals(t, set, name, every) })
				}
			}
		}
	})
}

func inIntervals(t *testing.T, set *testdevices.Set, name scheme.Scheme, every int64) {
	p := problem(t, []int{7, 6, 8}, domain.Float64, "ddnndd")
	h := how{name, scheme.LeftRight, pathOf(name), domain.Vec{1, 1, min(2, len(set.Devices))}}
	s, r := prepare(t, set, p, h), newOracle(p)
	plan, done := []int64{5, 1, 64, 2, 0}, int64(0)
	o := h.options(scheme.Options{Steps: 1 << 40, CheckEvery: every, History: true})
	o.Interval = func(steps int64, took time.Duration) int64 {
		if done += steps; done > 0 && took <= 0 {
			t.Errorf("%d steps took %v", steps, took)
		}
		r.run(scheme.Options{Steps: steps})
		got := make([]float64, p.Grid.Points())
		test.Report(t, halo.Read(got, s.variables[0].Level(done), p.Grid.Box()))
		for i, want := range r.values() {
			if got[i] != want {
				t.Errorf("after %d steps point %d is %v, want %v", done, i, got[i], want)
				break
			}
		}
		next := plan[0]
		plan = plan[1:]
		return next
	}
	res, err := s.Run(t.Context(), o)
	const all = 5 + 1 + 64 + 2
	if err != nil || done != all || res.Steps != all+1 || res.Stopped != scheme.StoppedSteps || len(plan) > 0 {
		t.Fatalf("%d steps in intervals, %d in total, stopped by %s: %v", done, res.Steps, res.Stopped, err)
	}
	if want := int(res.Steps / every); len(res.History) != want+1 {
		t.Errorf("norms of %d steps", len(res.History))
	}
	r.step()
	compare(t, p.Grid, read(t, s), r.values())
	// A run can also end within an interval.
	calls := 0
	o.Steps, o.Interval = 25, func(int64, time.Duration) int64 { calls++; return 10 }
	if res, err := s.Run(t.Context(), o); err != nil || res.Steps != 25 || res.Stopped != scheme.StoppedSteps || calls != 3 {
		t.Errorf("%d steps, stopped by %s, %d calls: %v", res.Steps, res.Stopped, calls, err)
	}
}
