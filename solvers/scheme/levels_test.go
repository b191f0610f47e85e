package scheme

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
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

// fillLevels gives all levels of a variable a value.
func fillLevels(t testing.TB, v *Variable, value float64) {
	t.Helper()
	for _, f := range v.levels {
		succeeds(t, halo.FillPoints(f, func(domain.Vec) float64 { return value }))
	}
}

// A runner goes on where another has left the variables, under every scheme, and so do two that take turns.
func TestRunnersGoOnFromTheLevelOfTheVariables(t *testing.T) {
	set := testdevices.Host(t, 2)
	for _, name := range All() {
		if name == Ranks { // takes no reductions
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
				t.Errorf("begun anew: %v, done %d: %v", r.Reduced, last.Done(), err)
			}
		})
	}
}

// Trials leave the levels of the variables as they were.
func TestTrialsKeepLevels(t *testing.T) {
	set := testdevices.Host(t, 1)
	step := countingStep(t, set, 1)
	plan := must(step.Plan(set.Links, p2p.Auto))(t)
	must(autotune(t.Context(), step, plan, set.Compiler, Options{Scheme: TwoStream, Limit: testLimit}, trialTime))(t)
	if u := step.Measured[0]; u.Newest() != 0 || u.computed.Load() {
		t.Errorf("the newest level is %d", u.Newest())
	}
}

// Variables that are at different levels are not stepped together, and levels that nobody computes are not read.
func TestLevelsThatDoNotFit(t *testing.T) {
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
	if err := errors.Join(run(y, 2), v.SetNewest(0), run(x, 1)); err != nil { // u is read in turn until a run computes it
		t.Fatal(err)
	}
	if err := run(y, 1); err == nil || !strings.Contains(err.Error(), `"u" is at level 1`) || !strings.Contains(err.Error(), "SetNewest") {
		t.Errorf("levels that differ: %v", err)
	}
	succeeds(t, v.SetNewest(1))
	wants(t, "two steps of a variable that nobody steps", run(y, 2), nil, "one step at a time")
	succeeds(t, run(y, 1))
	got, err := halo.ReadAll[float64](v.Level(2))
	if err != nil || slices.Min(got) != 2 || slices.Max(got) != 2 {
		t.Errorf("level 2 is %v to %v, not 2: %v", slices.Min(got), slices.Max(got), err)
	}
}

// Sweeps are tried where the next step stores, whichever level is the newest.
func TestSweepsAreTriedBesideTheNewestLevel(t *testing.T) {
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
