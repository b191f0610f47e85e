package scheme

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/stencil"
)

// counting returns a step over all devices that counts, with its variable.
func counting(t testing.TB, s *halo.Session, walls boundary.Faces) (*Step, *Variable) {
	spec := halo.Spec{Name: "u", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}
	place := must(s.Cut(t.Context(), halo.Cutting{Size: []int{12, 10, 9}, Fields: []halo.Spec{spec}}))(t)
	u := must(NewVariable(place, spec, 2))(t)
	u.Boundary = walls
	fillLevels(t, u, 0)
	return countingOn(u), u
}

// countingOn is a step that adds 1 to a variable.
func countingOn(u *Variable) *Step {
	return &Step{Stages: []Stage{{
		Name: "count", Point: countingPoint(),
		Reads: []Access{u.At(0, stencil.Star(3, 1)).Named("u")}, Writes: []Access{u.At(1, nil).Named("next")},
	}}}
}

// fails returns an error unless a collective call fails with an error that says why, and on all processes that it was
// rank 1's: not that another has sent no heartbeat for the limit.
func fails(p *mpi.Processes, name, why string, call func() error) error {
	err := call()
	if err == nil || !strings.Contains(err.Error(), why) || p.Rank != 1 && !strings.Contains(err.Error(), p.Name(1)) ||
		strings.Contains(err.Error(), "no heartbeat from") {
		return fmt.Errorf("%s: got %w, want %q of %s", name, err, why, p.Name(1))
	}
	return nil
}

// oneErrs makes a mistake on rank 1 in each collective call. All return its error, and continue.
func oneErrs(s *halo.Session, p *mpi.Processes) error {
	ctx := context.Background()
	t := &inProgram{}
	step, u := counting(t, s, boundary.Faces{})
	plan := must(step.Plan(s.Links, p2p.Auto))(t)
	x := must(NewRunner(ctx, step, plan, s.Compiler))(t)
	wrong := p.Rank == 1
	ended, end := context.WithCancel(ctx)
	defer end()
	options := map[bool]Options{false: {Steps: 3}, true: {Steps: -1}}
	contexts := map[bool]context.Context{false: ctx, true: ended}
	paths := map[bool]p2p.Path{false: p2p.Auto, true: p2p.MPI}
	plans := map[bool]*Plan{false: plan, true: nil}
	end()
	run := func() error { return errOf(x.Run(ctx, Options{Steps: 1})) }
	err := errors.Join(
		fails(p, "Run with wrong options", "must be at least 1, got -1", func() error { return errOf(x.Run(ctx, options[wrong])) }),
		fails(p, "New with a context that has ended", "context canceled", func() error { return errOf(New(contexts[wrong], s, step, options[false])) }),
		fails(p, "New with an unknown path", "", func() error { return errOf(New(ctx, s, step, Options{Path: paths[wrong]})) }),
		fails(p, "NewRunner without a plan", "the plan is nil", func() error { return errOf(NewRunner(ctx, step, plans[wrong], s.Compiler)) }),
		p.Err(), run(),
	)
	if err != nil {
		return err
	}
	other := must(NewVariable(u.Level(0).Placement, halo.Spec{Name: "w", Element: halo.Float64, Width: domain.UniformRadius(3, 1)}, 2))(t)
	step.Stages[0].Reads = append(step.Stages[0].Reads, other.At(0, nil).Named("other"))
	if wrong {
		succeeds(t, other.SetNewest(7))
	}
	return errors.Join(
		fails(p, "Run of variables at different levels", `"w" at 7`, run), p.Err(),
		other.SetNewest(1), run(), x.Close(),
	)
}

// oneFails makes rank 1 fail when it sets the ghosts of a run, while others wait for its messages.
func oneFails(s *halo.Session, p *mpi.Processes) error {
	var walls boundary.Faces
	for i := range walls {
		walls[i] = boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile {
			return func([]float64, domain.Vec, float64) {
				if p.Rank == 1 {
					panic("the disk is full")
				}
			}
		}}
	}
	t := &inProgram{}
	step, _ := counting(t, s, walls)
	x := must(NewRunner(t.Context(), step, must(step.Plan(s.Links, p2p.Auto))(t), s.Compiler))(t)
	return fails(p, "Run with a failing boundary", "the disk is full", func() error { return errOf(x.Run(context.Background(), Options{Steps: 3})) })
}

// The stages of a step may have their functions in one source, each with its own access names.
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
