package solvers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// inGroups returns the ways to run in which several steps go between two exchanges.
func inGroups() (all []how) {
	for _, h := range ways() {
		if h.scheme != Ranks {
			all = append(all, h)
		}
	}
	return all
}

// Several steps between two exchanges give the bits and the norms of the reference: every kind of stencil, type, kind of
// wall, cut, scheme, order and path, chosen at random.
func TestGroupsGiveOneAnswer(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.Each(t, 8, func(t *testing.T, set *testdevices.Set) {
		r, made := rand.New(rand.NewPCG(1, 7)), 0
		for _, c := range testdevices.Again(40, testdevices.Some(60, testdevices.Numbers(240))) {
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
				if !fits(p, h) || unsuited(h.scheme, p) || untiled(set, h.scheme, p) || int(h.parts.Product()) > len(set.Devices) {
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

// untiled reports whether scheme resident refuses groups of steps of the problem: on GPUs it makes those of stars of radius 1.
func untiled(set *testdevices.Set, s Scheme, p *Problem) bool {
	_, star := p.Stencil.AsStar()
	return s == Resident && !star && set.Devices[0].Backend == streams.CUDA
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
	testdevices.InTurn(t, 2, 8)
	const steps = 7
	for place, c := range []conformance{
		{"plane", problem(t, []int{40, 13}, kernels.Float64, "dntt"), []domain.Vec{{2, 1, 1}}},
		{"fourth order", of(t, problem(t, []int{19, 16, 17}, kernels.Float32, "dtnnpp"), stencil.Kind{Points: 13, Shape: stencil.StarShape}), []domain.Vec{{2, 1, 2}}},
		{"box", of(t, problem(t, []int{14, 12, 13}, kernels.Float64, "ddnnpp"), stencil.Kind{Points: 27, Shape: stencil.BoxShape}), []domain.Vec{{1, 2, 2}}},
	} {
		want, norms := expected(c.problem, steps)
		for i, h := range []how{{scheme: Fused, path: p2p.Direct}, {scheme: TwoStream, order: LeftRight, path: p2p.Peer}, {scheme: Assisted, order: LeftRight, path: p2p.Direct}, {scheme: Graph, path: p2p.Staged}, {scheme: Blocked, path: p2p.Peer}, {scheme: Resident, path: p2p.Direct}} {
			h.parts = c.cuts[0]
			if unsuited(h.scheme, c.problem) || !testdevices.Turn(place+i, 2, 2) {
				continue
			}
			p := inGroupsOf(c.problem, max(2, 4-i))
			t.Run(fmt.Sprintf("%s/group=%d/%v", c.name, p.Group, h), func(t *testing.T) {
				set := testdevices.CPU(t, int(h.parts.Product()))
				if untiled(set, h.scheme, p) {
					t.Skip("SKIPPED: resident makes groups of stars of radius 1")
				}
				s, res := solve(t, set, p, h, Options{Steps: steps, CheckEvery: 4, History: true})
				compare(t, p.Grid, read(t, s), want)
				checkNorms(t, res, norms, p.Grid.Points(), steps)
			})
		}
	}
}

// Trials of the number of steps between two exchanges, on GPUs that the CPU plays, are of all numbers that fit, are remembered,
// and begin anew where one of them is not. A scheme that makes no groups is tried without.
func TestFastestGroup(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	t.Setenv("HALOX_CACHE", t.TempDir())
	set := testdevices.CPUBesideThreads(t, 2)
	p := problem(t, []int{12, 8, 13}, kernels.Float64, "dnddnn")
	cut, err := domain.Decompose(p.Grid, domain.Vec{1, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	place, err := halo.Place(cut, set.Devices)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[Scheme][]int{TwoStream: {1, 2, 4}, Resident: {1, 2, 4}, Ranks: {1}} {
		search := scheme.Search{Links: set.Links, Compiler: set.Compiler, Scheme: name, Path: p2p.Direct}
		if trials, err := recallGroup(t.Context(), p, place, search, Options{}); err != nil || len(trials) > 0 {
			t.Errorf("%s: remembered before it was tried: %v, %v", name, trials, err)
		}
		trials, known, err := fastestGroup(t.Context(), p, place, search, Options{})
		if err != nil || known {
			t.Fatalf("%s: %v, known %v", name, err, known)
		}
		var groups []int
		for i, one := range trials {
			if groups = append(groups, one.Group); one.Scheme != name || i > 0 && one.Step < trials[i-1].Step {
				t.Errorf("%s: trials %v", name, trials)
			}
		}
		if slices.Sort(groups); !slices.Equal(groups, want) {
			t.Errorf("%s: tried %v, not %v", name, groups, want)
		}
		again, err := recallGroup(t.Context(), p, place, search, Options{})
		if err != nil || !slices.Equal(again, trials) {
			t.Errorf("%s: remembered %v, not %v: %v", name, again, trials, err)
		}
	}
}

// A run ends by its tolerance at the step at which one without groups does, wherever in a group that is, and the next one goes on
// from there.
func TestGroupsEndAtAnyStep(t *testing.T) {
	set := testdevices.Host(t, 4)
	p := problem(t, []int{11, 12, 13}, kernels.Float64, "dndtpp")
	for _, h := range []how{{scheme: TwoStream, order: LeftRight, path: p2p.Staged}, {scheme: Assisted, order: LeftRight, path: p2p.Peer}, {scheme: Fused, path: p2p.Direct}} {
		h.parts = domain.Vec{1, 2, 2}
		for every := 1; every < 4; every++ {
			t.Run(fmt.Sprintf("%v/every=%d", h, every), func(t *testing.T) {
				alone, grouped := prepare(t, set, p, h), prepare(t, set, inGroupsOf(p, 4), h)
				for round, o := range []Options{{Steps: 100, Tolerance: 1.1, CheckEvery: int64(every)}, {Steps: 3}, {Steps: 100, Tolerance: 1, CheckEvery: int64(every)}, {Steps: 5}} {
					want, err1 := alone.Run(t.Context(), h.options(o))
					got, err2 := grouped.Run(t.Context(), h.options(o))
					if err := errors.Join(err1, err2); err != nil {
						t.Fatal(err)
					}
					if got.Steps != want.Steps || got.Stopped != want.Stopped || got.Norms != want.Norms {
						t.Errorf("round %d: %s after %d steps with %+v, not %s after %d with %+v", round, got.Stopped, got.Steps, got.Norms, want.Stopped, want.Steps, want.Norms)
					}
					t.Logf("round %d: %d steps, %s", round, got.Steps, got.Stopped)
					compare(t, p.Grid, read(t, grouped), read(t, alone))
				}
			})
		}
	}
}

// A dry run of groups of steps counts what a run holds, byte for byte.
func TestADryRunCountsGroups(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	testdevices.EachKernel(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, h := range testdevices.Again(2, testdevices.Some(4, inGroups())) {
			steps := 4
			if h.parts = (domain.Vec{1, 2, 2}); h.scheme == Resident {
				steps = 2 // for which GPUs that the CPU plays have the shared memory
			}
			p := inGroupsOf(problem(t, []int{17, 12, 11}, kernels.Float64, "dnddpp"), steps)
			t.Run(h.String(), func(t *testing.T) { countedAsHeld(t, set, p, h) })
		}
	})
}

// A large grid of odd sizes has the bits of plain sweeps.
func TestGroupsOfALargeGrid(t *testing.T) {
	testdevices.Once(t)
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		p := problem(t, []int{517, 259, 131}, kernels.Float32, "dtnnpp")
		if set.Devices[0].HostCores {
			p = problem(t, []int{131, 67, 61}, kernels.Float32, "dtnnpp")
		}
		parts := domain.Vec{1, 1, 1}
		for axis := 2; axis > 0 && int(parts.Product())*2 <= len(set.Devices); axis-- {
			parts[axis] = 2
		}
		const steps = 21
		plain, want := solve(t, set, p, how{scheme: TwoStream, order: LeftRight, path: p2p.Staged, parts: parts}, Options{Steps: steps, CheckEvery: 10})
		for i, h := range testdevices.Again(2, testdevices.Some(6, inGroups())) {
			if h.parts = parts; unsuited(h.scheme, p) {
				continue
			}
			of := inGroupsOf(p, 2+i%8)
			t.Run(fmt.Sprintf("group=%d/%v", of.Group, h), func(t *testing.T) {
				s, res := solve(t, set, of, h, Options{Steps: steps, CheckEvery: 10})
				compare(t, p.Grid, read(t, s), read(t, plain))
				if res.Norms != want.Norms {
					t.Errorf("norms %+v, not %+v", res.Norms, want.Norms)
				}
			})
		}
	})
}

// Without neighbours scheme blocked makes passes over as many steps as there are between two looks at norms, and gives the
// bits and the norms of the reference.
func TestPassesGiveOneAnswer(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		r := rand.New(rand.NewPCG(5, 9+uint64(testdevices.Seed())))
		cases := len(testdevices.Again(4, testdevices.Some(16, testdevices.Numbers(40))))
		if testdevices.OnCPU(set.Devices[0]) { // which compiles a program or two for each
			cases = len(testdevices.Some(3, testdevices.Numbers(12)))
		}
		for c := 0; c < cases; {
			p := randomProblem(t, r)
			p.Grid.Periodic = [3]bool{}
			for i := range p.Walls {
				if p.Walls[i].Kind == Periodic {
					p.Walls[i] = Wall{Kind: Neumann}
				}
			}
			if !fits(p, how{parts: domain.Vec{1, 1, 1}}) {
				continue
			}
			c++
			steps, every := 1+r.IntN(40), 1+r.IntN(30)
			want, norms := expected(p, steps)
			t.Run(fmt.Sprintf("%d/%v of %d points/type=%s/steps=%d/every=%d", c, p.Grid.Size, p.Stencil.Points(), p.Real, steps, every), func(t *testing.T) {
				h := how{scheme: Blocked, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}
				s, res := solve(t, set, p, h, Options{Steps: int64(steps), CheckEvery: int64(every), History: true})
				compare(t, p.Grid, read(t, s), want)
				checkNorms(t, res, norms, p.Grid.Points(), int64(steps))
			})
		}
	})
}

// Passes over grids of many tiles have the bits of plain sweeps: of the stars that have kernels of their own, between walls of both kinds.
func TestPassesOfALargeGrid(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testdevices.Once(t)
	t.Run("backend=cuda", func(t *testing.T) {
		set := testdevices.GPUs(t)
		for _, c := range []struct {
			size  []int
			walls string
		}{{[]int{517, 259, 131}, "ddnndn"}, {[]int{512, 256, 64}, "dddddd"}, {[]int{2047, 1025}, "ndnn"}, {[]int{4096, 512}, "dddd"}, {[]int{512, 256, 64}, "dtndtn"}} {
			for _, real := range []kernels.Real{kernels.Float32, kernels.Float64} {
				t.Run(fmt.Sprintf("size=%v/%s", c.size, real), func(t *testing.T) {
					p := problem(t, c.size, real, c.walls)
					plain, want := solve(t, set, p, how{scheme: TwoStream, order: LeftRight, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}, Options{Steps: 47, CheckEvery: 23})
					s, res := solve(t, set, p, how{scheme: Blocked, path: p2p.Staged, parts: domain.Vec{1, 1, 1}}, Options{Steps: 47, CheckEvery: 23})
					compare(t, p.Grid, read(t, s), read(t, plain))
					if res.Norms != want.Norms {
						t.Errorf("norms %+v, not %+v", res.Norms, want.Norms)
					}
				})
			}
		}
	})
}
