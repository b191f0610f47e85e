package scheme

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// CountingPoint is countingPoint for the tests outside of the package.
var CountingPoint = countingPoint

// countingPoint adds 1 to every value, and sums up and compares what it writes.
func countingPoint() *sweep.Point {
	return &sweep.Point{
		Name: "counting", Dims: 3,
		Reductions: []sweep.Reduction{{Name: "mass", Op: sweep.Sum}, {Name: "least", Op: sweep.Min}},
		CUDA: `template <typename P> __device__ __forceinline__ void counting(P &p) {
	p.set(next, p.at(u) + 1);
	p.reduce(mass, p.at(u) + 1);
	p.reduce(least, p.at(u) + 1);
}`,
		Go: func(r *sweep.Row) {
			u, next := sweep.At[float64](r, "u", 0, 0, 0), sweep.At[float64](r, "next", 0, 0, 0)
			mass, least := r.Reduced("mass"), r.Reduced("least")
			for i := range next {
				next[i] = u[i] + 1
				mass[i], least[i] = next[i], next[i]
			}
		},
	}
}

// Every scheme but ranks, which refuses them, takes the reductions of point functions, at every step that is looked at.
func TestReductionsOfEveryScheme(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	every := func(t *testing.T, set *testdevices.Set) {
		for i, name := range All() {
			for j, measured := range []bool{false, true} {
				if !testdevices.Turn(i+j, 2, 4) {
					continue
				}
				t.Run(fmt.Sprintf("%s/measured=%t", name, measured), func(t *testing.T) {
					step := newStep(t, set, min(2, len(set.Devices)), 16)
					u := step.Measured[0]
					step.Stages[0].Point = countingPoint()
					step.Stages[0].Reads = []Access{u.At(0, stencil.Star(3, 1)).Named("u")}
					if !measured {
						step.Measured = nil
					}
					for _, f := range u.levels {
						if err := halo.FillPoints(f, func(domain.Vec) float64 { return 0 }); err != nil {
							t.Fatal(err)
						}
					}
					needs, err := NeedsOf(name)
					if err != nil {
						t.Fatal(err)
					}
					plan, err := step.Plan(set.Links, cmp.Or(needs.Path, p2p.Auto))
					if err != nil {
						t.Fatal(err)
					}
					x, err := NewRunner(t.Context(), step, plan, set.Compiler)
					if err != nil {
						t.Fatal(err)
					}
					defer x.Close()
					const steps = 2*graphSteps + 3
					r, err := x.Run(t.Context(), Options{Scheme: name, Steps: steps, CheckEvery: 5, History: true, Limit: testLimit})
					if refused := map[Scheme]string{Ranks: "ranks takes no reductions"}[name]; refused != "" {
						if !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), refused) {
							t.Errorf("got %v", err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					points := float64(12 * 10 * 16)
					for _, check := range append(r.History, r.Check) {
						if want := []float64{float64(check.Step) * points, float64(check.Step)}; !slices.Equal(check.Reduced, want) {
							t.Errorf("after step %d: %v, not %v", check.Step, check.Reduced, want)
						}
					}
					if len(r.History) != (steps+4)/5 {
						t.Errorf("%d checks", len(r.History))
					}
				})
			}
		}
	}
	testdevices.Each(t, 2, every)
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { every(t, testdevices.CPUBesideThreads(t, 2)) })
}
