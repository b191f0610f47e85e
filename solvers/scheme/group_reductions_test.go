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
	"github.com/halox/halox/p2p"
)

// Reductions and norms of any step of a group are of owned points, each once, whatever ghosts are swept. Fused sweeps both at once,
// and refuses reductions.
func TestReductionsOfGroups(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.EachKernel(t, 2, func(t *testing.T, set *testdevices.Set) {
		if len(set.Devices) < 2 {
			t.Skip("SKIPPED: one GPU has no neighbour")
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
	if err := errors.Join(halo.FillPoints(u.Level(0), func(domain.Vec) float64 { return 0 }), u.SetAll()); err != nil {
		t.Fatal(err)
	}
	needs, _ := NeedsOf(name)
	plan, err := step.Plan(set.Links, cmp.Or(needs.Path, p2p.Auto))
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewRunner(t.Context(), step, plan, set.Compiler)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	const steps, every = graphSteps + 5, 2
	r, err := x.Run(t.Context(), Options{Scheme: name, Steps: steps, CheckEvery: every, History: true, Limit: testLimit})
	if name == Fused {
		if !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "reductions are of owned points alone") {
			t.Errorf("got %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	points := float64(u.Level(0).Placement.Grid.Points())
	for _, check := range r.History {
		at := float64(check.Step)
		if want := []float64{at * points, at}; !slices.Equal(check.Reduced, want) {
			t.Errorf("after step %d: %v, not %v", check.Step, check.Reduced, want)
		}
		if n := check.Norms[0]; n.Max != at || n.MaxChange != 1 || n.L2 != at {
			t.Errorf("after step %d: norms %+v", check.Step, n)
		}
	}
	if len(r.History) != (steps+every-1)/every {
		t.Error(fmt.Sprint(len(r.History), " checks"))
	}
}
