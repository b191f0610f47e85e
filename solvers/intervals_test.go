package solvers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
)

// At the end of an interval the devices have made its steps, all and no more. The intervals change
// nothing about the run.
func TestIntervals(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		for i, scheme := range Schemes() {
			for j, every := range []int64{3, 1 << 30} {
				if !testdevices.Turn(i+j, 1, 2) {
					continue
				}
				t.Run(fmt.Sprintf("scheme=%s/every=%d", scheme, every), func(t *testing.T) { inIntervals(t, set, scheme, every) })
			}
		}
	})
}

func inIntervals(t *testing.T, set *testdevices.Set, scheme Scheme, every int64) {
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "ddnndd")
	h := how{scheme, LeftRight, pathOf(scheme), domain.Vec{1, 1, min(2, len(set.Devices))}}
	s := prepare(t, set, p, h)
	plan, done := []int64{5, 1, 64, 2, 0}, int64(0)
	o := h.options(Options{Steps: 1 << 40, CheckEvery: every, History: true})
	o.Interval = func(steps int64, took time.Duration) int64 {
		done += steps
		if done > 0 && took <= 0 {
			t.Errorf("%d steps took %v", steps, took)
		}
		got := make([]float64, p.Grid.Points())
		if err := halo.Read(got, s.u.Level(done), p.Grid.Box()); err != nil {
			t.Error(err)
		}
		want, _ := expected(p, int(done))
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("after %d steps point %d is %v, want %v", done, i, got[i], want[i])
				break
			}
		}
		next := plan[0]
		plan = plan[1:]
		return next
	}
	res, err := s.Run(context.Background(), o)
	const all = 5 + 1 + 64 + 2
	if err != nil || done != all || res.Steps != all+1 || res.Stopped != StoppedSteps || len(plan) > 0 {
		t.Fatalf("%d steps in intervals, %d in all, stopped by %s: %v", done, res.Steps, res.Stopped, err)
	}
	want, _ := expected(p, all+1)
	compare(t, p.Grid, read(t, s), want)
}

// A run ends where the options say, in the middle of an interval too, and with one step where no
// interval is wanted.
func TestIntervalsEndWithTheRun(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	h := how{Assisted, LeftRight, p2p.Peer, domain.Vec{1, 1, 2}}
	for _, tc := range []struct {
		interval, iterations, want int64
	}{{10, 25, 25}, {10, 20, 20}, {0, 20, 1}} {
		calls := int64(0)
		_, res := solve(t, set, p, h, Options{Steps: tc.iterations, Interval: func(int64, time.Duration) int64 {
			calls++
			return tc.interval
		}})
		if res.Steps != tc.want || res.Stopped != StoppedSteps {
			t.Errorf("%+v: %d steps, stopped by %s", tc, res.Steps, res.Stopped)
		}
		if tc.interval > 0 && calls != 1+tc.iterations/tc.interval {
			t.Errorf("%+v: %d calls", tc, calls)
		}
	}
}

// Told to stop, a run does not wait for the end of an interval.
func TestIntervalsAreInterrupted(t *testing.T) {
	set := testdevices.Host(t, 2)
	p := problem(t, []int{7, 6, 8}, kernels.Float64, "dddddd")
	h := how{TwoStream, LeftRight, p2p.Peer, domain.Vec{1, 1, 2}}
	ctx, cancel := context.WithCancel(context.Background())
	o := h.options(Options{Steps: 1 << 40, CheckEvery: 1 << 30})
	o.Interval = func(int64, time.Duration) int64 { return 1 << 39 }
	o.Progress = func(steps int64) {
		if steps > 50 {
			cancel()
		}
	}
	res, err := prepare(t, set, p, h).Run(ctx, o)
	if err != nil || res.Stopped != StoppedInterrupted {
		t.Errorf("stopped by %s: %v", res.Stopped, err)
	}
}
