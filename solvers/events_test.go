package solvers

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/solvers/scheme"
)

// Events change neither fields, norms, checks nor the end of a run, and are called at the steps at which they are due
// with the fields of that step.
func TestEvents(t *testing.T) {
	testdevices.InTurn(t, 3, 4)
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		for i, name := range scheme.All() {
			for j, every := range []int64{1, 4, 7, 1 << 30} {
				for k, between := range [][]int64{{5}, {4, 6}, {7}, {40}, {1}} {
					if testdevices.Turn(i+2*j+3*k, 1, 7) {
						t.Run(fmt.Sprintf("scheme=%s/every=%d/events=%v", name, every, between), func(t *testing.T) {
							p := problem(t, []int{7, 6, 8}, domain.Float64, "ddnndd")
							if groups(name) && (i+j)%2 > 0 {
								p = inGroupsOf(p, 2)
							}
							s := prepare(t, set, p, how{path: pathOf(name), parts: domain.Vec{1, 1, min(2, len(set.Devices))}})
							checkEvents(t, p, s, name, every, between)
						})
					}
				}
			}
		}
	})
}

// checkEvents runs three times, with events so many steps apart; the last run ends by its tolerance.
func checkEvents(t testing.TB, p *Problem, s *Solver, name scheme.Scheme, every int64, between []int64) {
	t.Helper()
	all, at := newOracle(p), newOracle(p)
	var events []*scheme.Event
	called, reached, stop := map[int64][]int64{}, int64(0), int64(0)
	for _, n := range between {
		events = append(events, &scheme.Event{Name: "look", First: n == 7, Next: scheme.Every(n), Do: func(_ context.Context, so scheme.Result) error {
			for called[n] = append(called[n], so.Step); reached < so.Step; reached++ {
				at.step()
			}
			compare(t, p.Grid, read(t, s), at.values())
			return nil
		}})
	}
	var history []scheme.Check
	for _, o := range []scheme.Options{{Steps: 23}, {Steps: 18}, {Steps: 60, Tolerance: toleranceAt(p, 60, scheme.MaxNorm)}} {
		begun := s.Done()
		o = how{scheme: name, order: scheme.LeftRight}.options(o)
		o.CheckEvery, o.History, o.Keep = every, true, every == 4
		res := must(s.RunEvents(context.Background(), o, events...))(t)
		var want []scheme.Check
		want, stop = all.checked(o, begun)
		history = append(history, want...)
		if last := want[len(want)-1]; !same(res.Check, last) || begun+res.Steps != last.Step ||
			(res.Stopped == scheme.StoppedTolerance) != (stop > 0) || !slices.EqualFunc(res.History, want, same) {
			t.Errorf("stopped by %s at %+v, not %+v, with %d checks, not %d", res.Stopped, res.Check, last, len(res.History), len(want))
		}
		compare(t, p.Grid, read(t, s), all.values())
	}
	last := history[len(history)-1].Step
	for _, n := range between {
		var want []int64
		if n == 7 {
			want = append(want, 0)
		}
		for step := n; step <= last; step += n {
			want = append(want, step)
		}
		if !slices.Equal(called[n], want) {
			t.Errorf("events every %d steps at %v, not %v", n, called[n], want)
		}
	}
}

// checked is run for options whose checks are at steps that CheckEvery divides, counted from the start.
func (r *oracle) checked(o scheme.Options, begun int64) (history []scheme.Check, stopped int64) {
	for n := begun + 1; n <= begun+o.Steps; n++ {
		one := scheme.Options{Steps: 1, Norm: o.Norm, Tolerance: o.Tolerance}
		if n%o.CheckEvery != 0 && n < begun+o.Steps {
			one.Tolerance = 0
		}
		check, reason := r.run(one)
		if check[0].Step = n; n%o.CheckEvery == 0 || n == begun+o.Steps {
			history = append(history, check[0])
		}
		if reason == scheme.StoppedTolerance && one.Tolerance > 0 {
			return history, n
		}
	}
	return history, 0
}

// A request makes an event due between two steps, and the run goes on.
func TestRequests(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		for _, name := range testdevices.Some(3, scheme.All()) {
			t.Run(string(name), func(t *testing.T) {
				p := problem(t, []int{7, 6, 8}, domain.Float64, "dddddd")
				requested(t, p, prepare(t, set, p, how{path: pathOf(name), parts: domain.Vec{1, 1, 2}}), name, true)
			})
		}
	})
}

// requested ends a run by its second request, at the step at which the event was called.
func requested(t testing.TB, p *Problem, s *Solver, name scheme.Scheme, mine bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var called []int64
	e := &scheme.Event{Name: "look"}
	e.Do = func(_ context.Context, so scheme.Result) error {
		called = append(called, so.Step)
		if mine && len(called) == 2 {
			cancel()
		}
		return nil
	}
	e.Request()
	o := scheme.Options{Scheme: name, Steps: 1 << 40, CheckEvery: 1 << 30, History: true}
	o.Progress = func(step int64) {
		if step > 50 && len(called) == 1 && mine {
			e.Request()
		}
	}
	res := must(s.RunEvents(ctx, o, e))(t)
	if len(called) != 2 || called[0] > 50 || called[1] <= called[0] || res.Stopped != scheme.StoppedInterrupted ||
		len(res.History) != 1 || res.History[0].Step != res.Step {
		t.Fatalf("%s: called at %v, stopped by %s at %d", name, called, res.Stopped, res.Step)
	}
	newOracle(p).stoppedAt(t, s, scheme.Result{Steps: res.Steps, Check: scheme.Check{Step: res.Steps, Norms: res.Norms}})
}
