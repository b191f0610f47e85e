package scheme

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
)

// countingStep adds 1 to every value of a variable of two levels, which is 0 at first.
func countingStep(t *testing.T, set *testdevices.Set, n int) *Step {
	t.Helper()
	u := newStep(t, set, n, 16).Measured[0]
	fillLevels(t, u, 0)
	step := countingOn(u)
	step.Measured = []*Variable{u}
	return step
}

// fillLevels sets all levels of a variable to a value.
func fillLevels(t testing.TB, v *Variable, value float64) {
	t.Helper()
	for _, f := range v.levels {
		succeeds(t, halo.FillPoints(f, func(domain.Vec) float64 { return value }))
	}
}

// A runner continues where another has left the variables, with every scheme, and so do two alternating
// runners.
func TestRunnersContinueFromNewestLevel(t *testing.T) {
	set := testdevices.Host(t, 2)
	for _, name := range All() {
		if name == Ranks { // does not support reductions
			continue
		}
		t.Run(string(name), func(t *testing.T) {
			step := countingStep(t, set, 2)
			u := step.Measured[0]
			made := int64(0)
			runners := []*Runner{runnerFor(t, set, step, name), runnerFor(t, set, step, name)}
			for i, steps := range []int64{1, 1, 3, 2, 1} {
				x := runners[i%2]
				r, err := x.Run(t.Context(), Options{Scheme: name, Steps: steps, Limit: testLimit})
				made += steps
				if err != nil || r.Reduced[1] != float64(made) || x.Done() != made || u.Newest() != made {
					t.Fatalf("after %d steps: the least value is %v, done %d, newest level %d: %v", made, r.Reduced, x.Done(), u.Newest(), err)
				}
			}
			last := runnerFor(t, set, step, name)
			if _, err := last.Run(t.Context(), Options{Scheme: name, Steps: 1, Limit: testLimit}); err != nil || last.Done() != made+1 {
				t.Fatalf("a runner made after %d steps is at %d: %v", made, last.Done(), err)
			}
			fillLevels(t, u, 0)
			succeeds(t, u.SetNewest(0))
			if r, err := last.Run(t.Context(), Options{Scheme: name, Steps: 1, Limit: testLimit}); err != nil || r.Reduced[1] != 1 || last.Done() != 1 {
				t.Errorf("restarted: %v, done %d: %v", r.Reduced, last.Done(), err)
			}
		})
	}
}

// Trials do not change the levels of the variables.
func TestTrialsKeepLevels(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := countingStep(t, set, 1)
	plan := must(step.Plan(set.Links, p2p.Auto))(t)
	o := Options{Scheme: TwoStream, Limit: testLimit}
	must(autotune(t.Context(), t.Context(), step, plan, set.Compiler, o, trialTime))(t)
	if u := step.Measured[0]; u.Newest() != 0 || u.computed.Load() {
		t.Errorf("the newest level is %d", u.Newest())
	}
}

// Variables at different levels are not stepped together, and levels that are not computed are not read.
func TestInvalidLevels(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := countingStep(t, set, 1)
	u := step.Measured[0]
	v := newVariable(t, step.placement(), u.Spec, 3)
	fillLevels(t, v, 0)
	if err := v.SetNewest(-1); err == nil {
		t.Error("level -1 is the newest")
	}
	other := *step
	other.Measured = nil
	other.Stages = []Stage{step.Stages[0]}
	other.Stages[0].Writes = []Access{v.At(1, nil).Named("next")}
	x, y := runnerFor(t, set, step, TwoStream), runnerFor(t, set, &other, TwoStream)
	run := func(x *Runner, steps int64) error {
		_, err := x.Run(t.Context(), Options{Scheme: TwoStream, Steps: steps, Limit: testLimit})
		return err
	}
	if err := errors.Join(run(y, 2), v.SetNewest(0), run(x, 1)); err != nil { // the levels of u alternate until a run computes it
		t.Fatal(err)
	}
	if err := run(y, 1); err == nil || !strings.Contains(err.Error(), `"u" is at level 1`) || !strings.Contains(err.Error(), "SetNewest") {
		t.Errorf("levels that differ: %v", err)
	}
	succeeds(t, v.SetNewest(1))
	wants(t, "two steps that read a variable which is not stepped", run(y, 2), nil, "one step at a time")
	succeeds(t, run(y, 1))
	got, err := halo.ReadAll[float64](v.Level(2))
	if err != nil || slices.Min(got) != 2 || slices.Max(got) != 2 {
		t.Errorf("level 2 is %v to %v, not 2: %v", slices.Min(got), slices.Max(got), err)
	}
}

// Sweeps are tuned on the fields that the next step writes, for any newest level.
func TestTuningDoesNotUseNewestLevel(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := countingStep(t, set, 1)
	u, st := step.Measured[0], &step.Stages[0]
	x := runnerFor(t, set, step, TwoStream)
	for newest := range int64(4) {
		succeeds(t, u.SetNewest(newest))
		arrays, ok := (&subdomain{}).nextArrays(x, st)
		if !ok {
			t.Fatal("the variable is at no level")
		}
		for i, a := range st.pointAccesses() {
			want := u.Level(newest)
			if a.write {
				want = u.Level(newest + 1)
			}
			if arrays[i][0] != want.Array(0, 0) {
				t.Errorf("level %d is the newest: access %q is of another one", newest, a.Name)
			}
		}
	}
}

// Profiles, reflections and mirrors set as many layers of ghosts as stages read, with every scheme: the field
// may have more.
func TestProfilesOfWideFields(t *testing.T) {
	set := testdevices.Host(t, 2)
	var want []float64
	for _, width := range []int{1, 3, 8} {
		for _, name := range All() {
			step := newStep(t, set, 2, 16)
			spec := step.Measured[0].Spec
			spec.Width, spec.Connectivity = domain.UniformRadius(3, width), halo.Corners
			u := newVariable(t, step.placement(), spec, 2)
			step.Measured[0] = u
			step.Stages[0].Reads[0].Variable, step.Stages[0].Writes[0].Variable = u, u
			u.Boundary = boundary.All(boundary.Condition{Kind: boundary.Neumann})
			u.Boundary[2], u.Boundary[5] = boundary.Condition{Kind: boundary.Dirichlet, Values: []float64{2}, Odd: true}, u.Boundary[3]
			u.Boundary[4] = boundary.Condition{Kind: boundary.Dirichlet, Profile: func() boundary.Profile {
				return func(values []float64, at domain.Vec, time float64) {
					for i := range values {
						values[i] = float64(at[0]+i+3*at[1]) + time
					}
				}
			}}
			fillLevels(t, u, 1)
			r, err := runnerFor(t, set, step, name).Run(t.Context(), Options{Scheme: name, Steps: 5, Limit: testLimit})
			if errors.Is(err, ErrUnsuited) {
				continue
			}
			succeeds(t, err)
			got := make([]float64, 12*10*16)
			succeeds(t, halo.Read(got, u.Level(5), u.Level(5).Cut.Grid.Box()))
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) || r.Norms[0].Max < 2 {
				t.Errorf("%s, width %d: other values, norms %+v", name, width, r.Norms)
			}
		}
	}
}
