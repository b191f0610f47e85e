package solvers

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
)

// A timing of every scheme takes about its budget, leaves nothing behind and says what
// does not suit.
func TestAutotune(t *testing.T) {
	testdevices.Each(t, 2, func(t *testing.T, set *testdevices.Set) {
		n := min(2, len(set.Devices))
		p := problem(t, []int{12, 10, 16}, kernels.Float64, "ddnndd")
		d, err := domain.Decompose(p.Grid, domain.Vec{1, 1, n})
		if err != nil {
			t.Fatal(err)
		}
		place, err := halo.Place(d, set.Devices[:n])
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []p2p.Path{p2p.Direct, p2p.Staged} {
			plan, err := halo.NewPlan(place, set.Links, path, p.Field())
			if err != nil {
				t.Fatal(err)
			}
			for i, scheme := range Schemes() {
				begin := time.Now()
				o := Options{Scheme: scheme, Order: LeftRight, Limit: testLimit}
				if i%2 == 1 { // a tolerance that all steps meet
					o.Tolerance, o.CheckEvery = math.MaxFloat64, 3
				}
				step, err := Autotune(context.Background(), p, plan, set.Compiler, o, 20*time.Millisecond)
				unfit := n > 1 && (path == p2p.Staged && pathOf(scheme) == p2p.Direct || path == p2p.Direct && scheme == Baseline)
				if unfit != errors.Is(err, ErrUnsuited) || !unfit && (err != nil || step <= 0) {
					t.Errorf("%s by %s: %v, %v", scheme, path, step, err)
				}
				if took := time.Since(begin); took > 10*time.Second {
					t.Errorf("%s by %s: it took %v", scheme, path, took)
				}
			}
		}
	})
}

func TestAutotuneIsInterrupted(t *testing.T) {
	set := testdevices.Host(t, 1)
	p := problem(t, []int{12, 10, 16}, kernels.Float64, "dddddd")
	s := prepare(t, set, p, how{path: p2p.Auto, parts: domain.Vec{1, 1, 1}})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Autotune(ctx, p, s.Plan(), set.Compiler, Options{Scheme: TwoStream, Order: LeftRight, Limit: testLimit}, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
