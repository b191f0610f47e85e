package scheme

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
)

// countingPoint adds 1 to every value, and reduces its results by sum and min.
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

// reducedAlone is stages that add 1 to a variable; the second, which writes nothing, takes the reductions
// from neighbors of each point.
func reducedAlone(u *Variable) []Stage {
	count, look := countingPoint(), countingPoint()
	count.Name, count.Reductions = "count", nil
	count.CUDA = `template <typename P> __device__ __forceinline__ void count(P &p) { p.set(next, p.at(u) + 1); }`
	count.Go = func(r *sweep.Row) {
		u, next := sweep.At[float64](r, "u", 0, 0, 0), sweep.At[float64](r, "next", 0, 0, 0)
		for i := range next {
			next[i] = u[i] + 1
		}
	}
	look.Name = "look"
	look.CUDA = `template <typename P> __device__ __forceinline__ void look(P &p) {
	p.reduce(mass, (p.at(next, 0, 0, -1) + p.at(next, 0, 0, 1)) / 2);
	p.reduce(least, p.at(next, 0, 0, 1));
}`
	look.Go = func(r *sweep.Row) {
		below, above := sweep.At[float64](r, "next", 0, 0, -1), sweep.At[float64](r, "next", 0, 0, 1)
		mass, least := r.Reduced("mass"), r.Reduced("least")
		for i := range above {
			mass[i], least[i] = (below[i]+above[i])/2, above[i]
		}
	}
	next := u.At(1, nil).Named("next")
	around := u.At(1, stencil.Footprint{{0, 0, -1}, {0, 0, 1}}).Named("next")
	return []Stage{
		{Point: count, Reads: []Access{u.At(0, nil)}, Writes: []Access{next}},
		{Point: look, Reads: []Access{around}},
	}
}

// Every scheme except ranks, which rejects them, takes the reductions of point functions, at every check,
// also of stages that write nothing. Blocked supports steps of one stage that writes.
func TestReductionsOfEveryScheme(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	every := func(t *testing.T, set *testdevices.Set) {
		for i, name := range All() {
			for j, variant := range []string{"reduced", "measured", "alone", "only"} {
				if !testdevices.Turn(i+j, 2, 4) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s", name, variant), func(t *testing.T) {
					step := countingStep(t, set, min(2, len(set.Devices)))
					switch variant {
					case "reduced":
						step.Measured = nil
					case "alone":
						step.Stages = reducedAlone(step.Measured[0])
					case "only":
						u := step.Measured[0]
						step.Stages, step.Measured = reducedAlone(u)[1:], nil
						step.Stages[0].Reads[0].Level = 0
						fillLevels(t, u, 7)
					}
					o := Options{Scheme: name, Steps: 2*graphSteps + 3, CheckEvery: 5, History: true, Limit: testLimit}
					r, err := runnerFor(t, set, step, name).Run(t.Context(), o)
					if name == Ranks || name == Blocked && (variant == "alone" || variant == "only") {
						wants(t, "the step", err, ErrUnsuited, string(name))
						return
					}
					succeeds(t, err)
					if variant == "only" {
						if want := []float64{7 * 12 * 10 * 16, 7}; !slices.Equal(r.Reduced, want) {
							t.Errorf("got %v, want %v", r.Reduced, want)
						}
						return
					}
					counts(t, r, o, 12*10*16)
				})
			}
		}
	}
	testdevices.Each(t, 2, every)
	t.Run("backend=cuda-on-cpu", func(t *testing.T) { every(t, testdevices.CPUBesideThreads(t, 2)) })
}

// counts fails the test unless the reductions of steps that add 1 to the given number of points are right at
// every check.
func counts(t testing.TB, r Result, o Options, points int64) {
	t.Helper()
	for _, check := range append(r.History, r.Check) {
		if want := []float64{float64(check.Step * points), float64(check.Step)}; !slices.Equal(check.Reduced, want) {
			t.Errorf("after step %d: %v, not %v", check.Step, check.Reduced, want)
		}
	}
	if want := (o.Steps + o.CheckEvery - 1) / o.CheckEvery; int64(len(r.History)) != want {
		t.Errorf("%d checks, not %d", len(r.History), want)
	}
}

// Reductions and norms of any step of a group cover owned points, each once, for any swept ghosts. Fused
// sweeps both together, and rejects reductions.
func TestReductionsOfGroups(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: one GPU has no neighbor")
		}
		for _, name := range []Scheme{Baseline, TwoStream, Assisted, Graph, Blocked, Fused} {
			t.Run(string(name), func(t *testing.T) { reducesOwnedPoints(t, set, name) })
		}
	})
}

func reducesOwnedPoints(t *testing.T, set *testdevices.Set, name Scheme) {
	step := groupStep(t, set, true, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: countingPoint()}} })
	u := step.Stages[0].Reads[0].Variable
	step.Measured = []*Variable{u}
	succeeds(t, errors.Join(halo.FillPoints(u.Level(0), func(domain.Vec) float64 { return 0 }), u.SetAll()))
	o := Options{Scheme: name, Steps: graphSteps + 5, CheckEvery: 2, History: true, Limit: testLimit}
	r, err := runnerFor(t, set, step, name).Run(t.Context(), o)
	if name == Fused {
		wants(t, "fused", err, ErrUnsuited, "must have no reductions")
		return
	}
	succeeds(t, err)
	counts(t, r, o, u.Level(0).Placement.Grid.Points())
	for _, check := range r.History {
		if n, at := check.Norms[0], float64(check.Step); n.Max != at || n.MaxChange != 1 || n.L2 != at {
			t.Errorf("after step %d: norms %+v", check.Step, n)
		}
	}
}
