package solvers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
)

// Norms have the same bits after every step, whatever the scheme, the cut and the backend: so runs stop at the
// same step by either norm.
func TestNormsDependOnTheProblemAlone(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	const steps = 6
	for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
		p := problem(t, []int{13, 10, 9}, real, "ddnndd")
		p.Initial = parse(t, "sin(1.3*i+0.7)*exp(1.9*k-0.8*j)")
		var want []Norms
		check := func(t *testing.T, set *testdevices.Set, h how) {
			s, res := solve(t, set, p, h, Options{Steps: steps, History: true})
			if want == nil {
				want = slices.Clone(res.History)
			}
			if !slices.Equal(res.History, want) {
				t.Fatalf("%+v\nnot %+v", res.History, want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, res = solve(t, set, p, h, Options{Steps: steps, Norm: L2Norm, Tolerance: want[3].L2Change})
			if res.Steps != 4 || res.Stopped != StoppedTolerance {
				t.Errorf("by the l2 norm it stopped by %s at %d, not at 4", res.Stopped, res.Steps)
			}
		}
		for k, parts := range []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 2, 1}, {3, 1, 1}, {1, 3, 2}} {
			for i, scheme := range Schemes() {
				if !testdevices.Turn(k+i, 2, 4) {
					continue
				}
				h := how{scheme, LeftRight, pathOf(scheme), parts}
				t.Run(fmt.Sprintf("type=%s/backend=host/%v", real, h), func(t *testing.T) { check(t, testdevices.Host(t, 6), h) })
				if n := parts[0] * parts[1] * parts[2]; (n == 3 || n == 4 && real == kernels.Float64) && testdevices.Turn(k+i, 4, 4) {
					t.Run(fmt.Sprintf("type=%s/backend=cuda-on-cpu/%v", real, h), func(t *testing.T) { check(t, testdevices.CPU(t, n), h) })
				}
			}
		}
	}
}

// Fast sums are right up to rounding.
func TestFastNorms(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	p := problem(t, []int{13, 10, 9}, kernels.Float64, "ddnndd")
	h := how{TwoStream, LeftRight, pathOf(TwoStream), domain.Vec{1, 1, 3}}
	every := Options{Steps: 7, History: true} // enough for what is found within a launch to be read there
	_, want := solve(t, testdevices.Host(t, 3), p, h, every)
	p.Sums = sums.Fast
	near := func(a, b float64) bool { return a != 0 && a-b <= 1e-13*b && b-a <= 1e-13*b }
	for backend, open := range map[string]func(testing.TB, int) *testdevices.Set{"host": testdevices.Host, "cuda-on-cpu": testdevices.CPU} {
		t.Run("backend="+backend, func(t *testing.T) {
			set := open(t, 3)
			for _, scheme := range Schemes() {
				h.scheme, h.path = scheme, pathOf(scheme)
				_, got := solve(t, set, p, h, every)
				if len(got.History) != len(want.History) || int64(len(got.History)) != every.Steps {
					t.Fatalf("%v: norms of %d steps, not %d", h, len(got.History), len(want.History))
				}
				for i, w := range want.History {
					if g := got.History[i]; g.MaxChange != w.MaxChange || !near(g.L2Change, w.L2Change) || !near(g.L2, w.L2) {
						t.Errorf("%v: %+v, not %+v", h, g, w)
					}
				}
			}
		})
	}
}
