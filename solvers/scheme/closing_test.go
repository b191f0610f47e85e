package scheme

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/guard"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// closing is a runner with a scheme, whose variable and session are closed.
type closing struct {
	session *halo.Session
	place   *halo.Placement
	u       *Variable
	runner  *Runner
	another *Runner // for the same variable
}

// newClosing makes one on three devices. A point of u is the number of its column; a step moves columns by
// one.
func newClosing(t *testing.T, name Scheme) *closing {
	t.Helper()
	session, _ := openHost(t, 3)
	cutting := halo.Cutting{Size: []int{8, 12}, Periodic: []bool{true, true}, Parts: []int{1, 3}}
	c := &closing{session: session, place: must(session.Cut(t.Context(), cutting))(t)}
	c.u = newVariable(t, c.place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 2)
	succeeds(t, halo.FillPoints(c.u.Level(0), func(p domain.Vec) float64 { return float64(p[0]) }))
	succeeds(t, c.u.SetAll())
	step := stepOf("closing", c.u)
	for _, x := range []**Runner{&c.runner, &c.another} {
		*x = must(New(t.Context(), session, step, Options{Scheme: name}))(t)
	}
	return c
}

// During a run, objects that it uses cannot be closed or stepped by another run, and the run continues.
func TestClosingDuringARun(t *testing.T) {
	for _, name := range All() {
		c := newClosing(t, name)
		plan := must(halo.NewPlan(c.place, c.session.Links, p2p.Auto, c.u.Spec))(t)
		exchange := must(halo.NewExchanger(plan, c.session.Compiler, c.u.Level(0)))(t)
		at := must(c.place.NewStreams())(t)
		begun := false
		r, err := c.runner.Run(t.Context(), Options{Scheme: name, Steps: 64, Interval: func(int64, time.Duration) int64 {
			for what, err := range map[string]error{
				"close the runner":                c.runner.Close(),
				"close the variable":              c.u.Close(),
				"close a level":                   c.u.Level(1).Close(),
				"close the session":               c.session.Close(),
				"close a device":                  c.session.Devices[1].Close(),
				"run the runner":                  errOf(c.runner.Steps(t.Context(), 1)),
				"run another runner":              errOf(c.another.Steps(t.Context(), 1)),
				"set the newest level":            c.u.SetNewest(0),
				"set all levels":                  c.u.SetAll(),
				"start an exchange of a level":    exchange.Start(at),
				"queue an exchange of a level":    exchange.Exchange(at),
				"hold a level as a run does":      errOf(c.u.Level(0).Hold(true)),
				"hold a level as reading it does": errOf(c.u.Level(0).Hold(false)),
			} {
				wants(t, fmt.Sprintf("%s: %s", name, what), err, guard.ErrBusy, "in use")
			}
			begun = true
			return 16
		}})
		if err != nil || !begun || r.Steps != 64 || c.runner.Done() != 64 || c.u.Newest() != 64 {
			t.Fatalf("%s: %+v, %v: at level %d", name, r, err, c.u.Newest())
		}
		for i, v := range must(halo.ReadAll[float64](c.u.Level(64)))(t) { // 64 is a multiple of 8 columns
			if v != float64(i%8) {
				t.Fatalf("%s: point %d is %v", name, i, v)
			}
		}
		succeeds(t, errOf(c.another.Steps(t.Context(), 1)))
		succeeds(t, errors.Join(exchange.Close(), at.Close(), c.runner.Close(), c.runner.Close(), c.u.Close(), c.session.Close()))
		wants(t, "a closed runner", errOf(c.runner.Steps(t.Context(), 1)), nil, "the runner is closed")
		wants(t, "a closed variable", errOf(c.another.Steps(t.Context(), 1)), nil, `field "u" is closed`)
		wants(t, "a closed session", errOf(c.session.Cut(t.Context(), halo.Cutting{Size: []int{8, 8}})), guard.ErrClosed, "session is closed")
		succeeds(t, errors.Join(c.another.Close(), c.session.Close()))
	}
}

// Close at any time finally succeeds, and has no other effects.
func TestClosingAtAnyMoment(t *testing.T) {
	testdevices.InTurn(t, 3, 4)
	for _, name := range []Scheme{TwoStream, Assisted, Fused, Ranks} {
		c := newClosing(t, name)
		var group sync.WaitGroup
		var ran, cut atomic.Int64
		until := func(what string, do func() error, count *atomic.Int64) { // until it is closed
			group.Go(func() {
				for {
					switch err := do(); {
					case err == nil:
						count.Add(1)
					case errors.Is(err, guard.ErrClosed) || strings.Contains(err.Error(), "is closed"):
						return
					case !errors.Is(err, guard.ErrBusy):
						t.Errorf("%s: %s: %v", name, what, err)
						return
					}
				}
			})
		}
		for _, x := range []*Runner{c.runner, c.another} {
			until("steps", func() error { return errOf(x.Steps(t.Context(), 8)) }, &ran)
		}
		until("cut", func() error { return errOf(c.session.Cut(t.Context(), halo.Cutting{Size: []int{8, 12}})) }, &cut)
		until("exchange", func() error {
			x, err := c.session.NewExchanger(t.Context(), c.u.Level(c.runner.Done()))
			return errors.Join(err, x.Close())
		}, &cut)
		for ran.Load() < 8 || cut.Load() < 8 {
			time.Sleep(time.Millisecond)
		}
		for _, closed := range []func() error{c.runner.Close, c.u.Close, c.session.Close} {
			for err := closed(); err != nil; err = closed() {
				if !errors.Is(err, guard.ErrBusy) {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		group.Wait()
		succeeds(t, c.another.Close())
	}
}

// Concurrent runs may read variables that neither of them writes.
func TestConcurrentRuns(t *testing.T) {
	set := testdevices.Host(t, 2)
	place := placed(t, set.Devices, []int{8, 8}, [3]bool{true, true}, domain.Vec{1, 2, 1})
	variable := func(name string) *Variable {
		v := newVariable(t, place, halo.Spec{Name: name, Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 1)
		succeeds(t, halo.FillPoints(v.Level(0), func(domain.Vec) float64 { return 1 }))
		return v
	}
	adds := sweep.Point{Name: "adds", Dims: 2, CUDA: "template <typename P> __device__ __forceinline__ void adds(P &p) { p.set(v, p.at(c, 0, 0, 0)); }",
		Go: func(r *sweep.Row) { copy(sweep.At[float64](r, "v", 0, 0, 0), sweep.At[float64](r, "c", 0, 0, 0)) }}
	c := variable("c")
	runner := func(reads stencil.Footprint) *Runner {
		v := variable("v")
		return runnerBy(t, set, &Step{Name: "concurrent", Stages: []Stage{{
			Reads: []Access{c.At(0, reads)}, Writes: []Access{v.At(1, nil)}, Point: &adds,
		}}}, p2p.Auto)
	}
	first, second, around := runner(nil), runner(nil), runner(stencil.Star(2, 1))
	r, err := first.Run(t.Context(), Options{Scheme: TwoStream, Steps: 8, Interval: func(int64, time.Duration) int64 {
		succeeds(t, errOf(second.Run(t.Context(), Options{Scheme: TwoStream, Steps: 4})))
		wants(t, "one that sets ghosts", errOf(around.Run(t.Context(), Options{Scheme: TwoStream, Steps: 4})), guard.ErrBusy, `field "c"`)
		return 4
	}})
	if err != nil || r.Steps != 8 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A point function that panics ends a run with every scheme long before any limit, and the error has its
// position, without a whole stack trace.
func TestPanicEndsRun(t *testing.T) {
	for _, name := range All() {
		set := testdevices.Host(t, 3)
		place := placed(t, set.Devices, []int{8, 12}, [3]bool{true, true}, domain.Vec{1, 3, 1})
		u := newVariable(t, place, halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(2, 1)}, 2)
		succeeds(t, halo.FillPoints(u.Level(0), func(domain.Vec) float64 { return 1 }))
		var calls atomic.Int64
		point := moves
		point.Go = func(r *sweep.Row) {
			if r.J == 5 && calls.Add(1) == 40 {
				panic("enough")
			}
			moves.Go(r)
		}
		step := stepOf("panics", u)
		step.Stages[0].Point = &point
		x := runnerBy(t, set, step, cmp.Or(name.Needs().Path, p2p.Auto))
		_, err := x.Run(t.Context(), Options{Scheme: name, Steps: 1 << 40, Limit: time.Hour})
		if wants(t, string(name), err, nil, "panicked: enough (in scheme.TestPanicEndsRun"); err != nil {
			if errors.Is(err, streams.ErrPanicked) && !strings.HasPrefix(err.Error(), `kernel "`) {
				t.Errorf("%s: the error does not begin with its cause: %v", name, err)
			}
			if text := err.Error(); !strings.Contains(text, "closing_test.go:") || strings.Contains(text, "goroutine") || len(text) > 400 {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}
