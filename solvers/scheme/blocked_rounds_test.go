package scheme

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/streams"
)

// The launch within which a run ends is made again, and makes fewer steps: what is traced are the passes up to there,
// the one that went on, and sweeps or passes of as many steps as lie before the end. Nothing else is swept.
func TestAPassIsMadeAgainShorter(t *testing.T) {
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

// joined returns the launches with those from one on as one, where each follows the one before.
func joined(all []traced, from int) []traced {
	for len(all) > from+1 && all[from].first+all[from].steps == all[from+1].first {
		all[from].steps += all[from+1].steps
		all = slices.Delete(all, from+1, from+2)
	}
	return all
}

// Rounds have all steps, each once, and end with norms where they are asked for; whatever passes cost, none reaches
// beyond the end of a group, norms are of steps within the last pass alone, and where they are under way the next
// round is one pass.
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
		for _, d := range []int{2, 3, 4, 6, 8} { // as if there were passes, which are not launched
			for n := range b.costs.By {
				b.costs.By[n][d] = 1
			}
		}
		drawCosts(&b.costs, r)
		end, done, one := int64(1+r.IntN(200)), int64(0), false
		for done < end {
			a := planRequest{after: done, to: end, pace: int64(1 + r.IntN(40)), final: true, one: one, every: every, norms: true}
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
			t.Errorf("%+v: norms are asked for before the last of passes %v", a, b.round.depths)
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
