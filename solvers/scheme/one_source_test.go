package scheme

import (
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
)

// The stages of a step may have their functions in one source, each with accesses of its own names.
func TestFunctionsOfOneSource(t *testing.T) {
	const source = `
template <typename P> __device__ __forceinline__ void first(P &p) { p.set(next, p.at(u) + 1); }
template <typename P> __device__ __forceinline__ void second(P &p) {
	p.set(w, p.at(w) + p.at(newest));
	p.reduce(sum, p.at(newest));
}`
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		step := countingStep(t, set, 1)
		u := step.Measured[0]
		w := newVariable(t, step.placement(), halo.Spec{Name: "w", Element: halo.Float64, Width: domain.Radius{}}, 1)
		fillLevels(t, w, 0)
		step.Measured = nil
		step.Stages = []Stage{{
			Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(1, nil).Named("next")},
			Point: &sweep.Point{Name: "first", Dims: 3, CUDA: source, Go: func(r *sweep.Row) {
				u, next := sweep.At[float64](r, "u", 0, 0, 0), sweep.At[float64](r, "next", 0, 0, 0)
				for i := range next {
					next[i] = u[i] + 1
				}
			}},
		}, {
			Reads: []Access{u.At(1, nil).Named("newest"), w.At(0, nil)}, Writes: []Access{w.At(0, nil)},
			Point: &sweep.Point{
				Name: "second", Dims: 3, CUDA: source, Reductions: []sweep.Reduction{{Name: "sum", Op: sweep.Sum}},
				Go: func(r *sweep.Row) {
					newest, w, sum := sweep.At[float64](r, "newest", 0, 0, 0), sweep.At[float64](r, "w", 0, 0, 0), r.Reduced("sum")
					for i := range w {
						w[i] += newest[i]
						sum[i] = newest[i]
					}
				},
			},
		}}
		must(runnerFor(t, set, step, TwoStream).Run(t.Context(), Options{Scheme: TwoStream, Steps: 3, Limit: testLimit}))(t)
		if got, err := halo.ReadAll[float64](w.Level(0)); err != nil || slices.Min(got) != 6 || slices.Max(got) != 6 {
			t.Errorf("%v to %v, not 1 + 2 + 3: %v", slices.Min(got), slices.Max(got), err)
		}
	})
}
