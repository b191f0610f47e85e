package scheme

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Scheme blocked is bitwise identical to plain loops for point functions, which it sweeps: stages that read
// some variables around points and step them all, with coefficients, in groups over several devices and on a
// single one.
func TestBlockedStagesAreBitwiseIdentical(t *testing.T) {
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

// newBlockedStep returns a step of one stage that reads variables and computes their next levels, on a grid
// with boundaries (alone), or in groups.
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

// The launch within which a run ends is repeated, with fewer steps: the trace has the passes up to there, the
// one that continued, and sweeps or passes of the steps before the end, and nothing else.
func TestRepeatedPassIsShorter(t *testing.T) {
	set := testdevices.CPU(t, 1)
	addUntuned(t)
	step := newStep(t, set, 1, 16)
	u := step.Measured[0]
	run := checkedRun{u, runnerFor(t, set, step, untuned), untuned}
	run.begin(t)
	long := run.steps(t, Options{Steps: 30, CheckEvery: 1, History: true}).History
	for end := int64(7); end <= 9; end++ { // passes of 3 steps take the norms of each
		run.begin(t)
		tracer := must(streams.NewTracer(set.Devices, streams.Window{First: 1, Last: 100}))(t)
		res := run.steps(t, Options{Steps: 100, CheckEvery: 1, Tolerance: long[end-1].Norms[0].MaxChange})
		passes := sweptBy(t, tracer.Trace())
		succeeds(t, tracer.Close())
		want := []traced{{1, 3}, {4, 3}, {7, 3}}
		if again := end - 6; again < 3 {
			want = append(want, traced{7, again})
		}
		if res.Steps != end || !slices.Equal(joined(passes, 3), want) {
			t.Errorf("%d steps, of %d, by launches %v, not %v", res.Steps, end, passes, want)
		}
	}
}

// traced is a launch that runs steps.
type traced struct{ first, steps int64 }

// sweptBy returns the launches that run steps.
func sweptBy(t *testing.T, trace *streams.Trace) (all []traced) {
	t.Helper()
	for _, s := range trace.Devices[0].Streams {
		for _, o := range s.Operations {
			if o.Work == streams.Sweep {
				steps := int64(1)
				if depth, ok := strings.CutPrefix(o.Name, "pass of "); ok {
					steps = int64(depth[0] - '0')
				}
				all = append(all, traced{o.Step, steps})
			}
		}
	}
	return all
}

// joined returns the launches with consecutive ones from an index on joined.
func joined(all []traced, from int) []traced {
	for len(all) > from+1 && all[from].first+all[from].steps == all[from+1].first {
		all[from].steps += all[from+1].steps
		all = slices.Delete(all, from+1, from+2)
	}
	return all
}

// Rounds have every step once, and end with norms if they are requested. For any costs of passes, none
// extends beyond the end of a group, norms are taken only within the last pass, and while norms are in flight
// the next round is one pass.
func TestRoundsOfPasses(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	set := testdevices.Host(t, 1)
	for range 60 {
		c := newCheckedCase(t, r, 1, 0.05)
		made, ok := c.ready(t, set, Blocked)
		if !ok {
			continue
		}
		every := int64(r.IntN(6))
		x := &run{Runner: made.runner, threads: streams.NewWorkerGroup(1, testLimit)}
		workers := must(newBlocked(x, Options{CheckEvery: every}))(t)
		b := workers[0].(*blockedPart).blocked
		for _, d := range []int{2, 3, 4, 6, 8} { // pretends that there are passes, which are not launched
			for n := range b.costs.By {
				b.costs.By[n][d] = 1
			}
		}
		drawCosts(&b.costs, r)
		end, done, one := int64(1+r.IntN(200)), int64(0), false
		for done < end {
			a := planRequest{after: done, to: end, pace: int64(1 + r.IntN(40)), final: true, one: one, checked: checkedSteps{every: every}, norms: true}
			d := b.plan(a)
			checkRound(t, b, a, d)
			done, one = d.last, len(d.checks) > 0 && !d.isEarly()
		}
		succeeds(t, x.Close())
	}
}

func checkRound(t *testing.T, b *blocked, a planRequest, d passPlan) {
	t.Helper()
	n := a.after
	for i, depth := range b.round.depths {
		if b.connected && b.groupEnd(n+1) < n+int64(depth) {
			t.Errorf("%+v: a pass of %d after step %d, in groups of %d", a, depth, n, b.step.group())
		}
		if n += int64(depth); i == len(b.round.depths)-2 && a.nextCheck(a.after) <= n {
			t.Errorf("%+v: norms are requested before the last of passes %v", a, b.round.depths)
		}
	}
	var checks []int64
	for check := a.nextCheck(d.from); check <= d.last; check = a.nextCheck(check) {
		checks = append(checks, check)
	}
	switch {
	case n != d.last || d.last > a.to || d.from != n-int64(b.round.depths[len(b.round.depths)-1]):
		t.Errorf("%+v: passes %v, the last from %d to %d", a, b.round.depths, d.from, d.last)
	case a.one && len(b.round.depths) != 1:
		t.Errorf("%+v: passes %v", a, b.round.depths)
	case !slices.Equal(d.checks, checks) || d.last == a.to && len(checks) == 0:
		t.Errorf("%+v: norms of %v, not %v", a, d.checks, checks)
	case b.holds[b.slotOf(d.last)] != d.last || b.slotOf(d.last) != b.round.slot^len(b.round.depths)&1:
		t.Errorf("%+v: fields hold %v after passes %v of field %d", a, b.holds, b.round.depths, b.round.slot)
	}
}

// An exchange that overlaps the interior of a pass gives bitwise the same fields and norms as one after the
// pass, over any path, for any checked steps.
func TestExchangesOverlapTheInterior(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	found := addUntuned(t)
	testdevices.EachKernel(t, 3, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: a single device has no exchange")
		}
		cases := len(testdevices.Again(3, testdevices.Numbers(12)))
		if testdevices.OnCPU(set.Devices[0]) {
			cases = 3 // each compiles several programs
		}
		*found = overlaps{}
		r, ranks, runs := rand.New(rand.NewPCG(3, 19)), 0, 0
		for i := range cases {
			c := newOverlapCase(t, r, min(3, len(set.Devices)), false)
			c.path = []p2p.Path{p2p.Peer, p2p.Staged}[i%2]
			ranks += int(c.parts.Product())
			runs = sameInGroups(t, set, set, c)
		}
		if !t.Failed() && found.overlapped != runs*ranks {
			t.Errorf("exchanges overlapped the interior in %d runs of %d subdomains", found.overlapped, ranks)
		}
	})
}

// Passes that store into the ghosts of neighbors give bitwise the same fields and norms as exchanges after
// passes, for any checked steps, while the first GPU pauses at random.
func TestPassesThatStoreGhosts(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	found := addUntuned(t)
	testdevices.EachKernel(t, 3, func(t *testing.T, set *testdevices.Set) {
		if set.Devices[0].GoKernels || len(set.Devices) < 2 {
			t.Skip("SKIPPED: needs two GPUs")
		}
		cases := 8
		if testdevices.OnCPU(set.Devices[0]) {
			cases = len(testdevices.Again(2, testdevices.Numbers(4))) // each compiles several programs
		}
		late := must(set.Disturbed(func(d *streams.Device) []string {
			if d == set.Devices[0] {
				return []string{"PAUSES"}
			}
			return nil
		}))(t)
		*found = overlaps{}
		r := rand.New(rand.NewPCG(4, 20))
		for range cases {
			c := newOverlapCase(t, r, min(4, len(set.Devices)), true)
			c.path = p2p.Direct
			sameInGroups(t, set, late, c, Options{Steps: int64(100 * c.group)})
		}
		if !t.Failed() && (found.Stores == 0 || found.Stores != found.Kernels) {
			t.Errorf("passes have stored ghosts in %d runs of subdomains, where %d have kernels for it", found.Stores, found.Kernels)
		}
	})
}

// sameInGroups compares runs of blocked without tuning on some devices with those of TwoStream on others, and
// returns their number.
func sameInGroups(t *testing.T, set, devices *testdevices.Set, c checkedCase, more ...Options) (runs int) {
	t.Helper()
	plain, ok := c.ready(t, set, TwoStream)
	if !ok {
		t.Fatal("the case cannot be prepared")
	}
	group := int64(c.group)
	all := append([]Options{
		{Steps: 1}, {Steps: 4*group + 1}, {Steps: 13, CheckEvery: 5, History: true}, {Steps: group},
	}, more...)
	t.Run(c.String()+"/"+string(c.path), func(t *testing.T) {
		made, _ := c.ready(t, devices, untuned)
		made.begin(t)
		plain.begin(t)
		for _, o := range all {
			sameRuns(t, &made, &plain, o)
		}
	})
	return len(all)
}

// newOverlapCase is decomposed along an axis except the first, or along the last, with constant boundary
// values, or along a periodic axis. Subdomains are so thick that their boundary regions leave an interior,
// and passes over these stay within the grid.
func newOverlapCase(t *testing.T, r *rand.Rand, devices int, last bool) checkedCase {
	t.Helper()
	c := newCheckedCase(t, r, devices, 0.05)
	across := 1 + r.IntN(c.grid.Dims-1)
	if last {
		across = c.grid.Dims - 1
	}
	parts := 2 + r.IntN(devices-1)
	c.group, c.parts = 2+r.IntN(3), domain.Vec{1, 1, 1}
	c.parts[across] = parts
	for i := range c.faces {
		c.faces[i] = boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{r.Float64()}}
	}
	var periodic [3]bool
	periodic[across] = r.IntN(2) == 0
	var size []int
	for a := range c.grid.Dims {
		n := 5 + r.IntN(30)
		if a == across {
			n = parts*4*c.group*c.stencil.AxisRadius(a) + r.IntN(9)
		}
		size = append(size, n)
	}
	c.grid = must(domain.NewGrid(size, periodic[:len(size)]))(t)
	return c
}
