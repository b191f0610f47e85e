package scheme

import (
	"errors"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// groupStep is a step in groups of three over two devices, with ghosts as it needs them but for what change does.
func groupStep(t *testing.T, set *testdevices.Set, periodic bool, change func(*halo.Spec, *Step)) *Step {
	t.Helper()
	grid, err := domain.NewGrid([]int{12, 10, 16}, [3]bool{periodic})
	if err != nil {
		t.Fatal(err)
	}
	cut, err1 := domain.Decompose(grid, domain.Vec{1, 1, 2})
	place, err2 := halo.Place(cut, set.Devices[:2])
	wide, err3 := halo.NewWideHalo(cut, domain.UniformRadius(3, 1), 3)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	spec := wide.Spec(halo.Spec{Name: "u", Element: halo.Float64})
	step := &Step{Group: 3}
	change(&spec, step)
	u, err := NewVariable(place, spec, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	u.Boundary = boundary.All(boundary.Condition{Kind: boundary.Neumann})
	if len(step.Stages) == 0 {
		step.Stages = []Stage{{Kernels: nothing}}
	}
	step.Stages[0].Reads, step.Stages[0].Writes = []Access{u.At(0, stencil.Star(3, 1))}, []Access{u.At(1, nil).Named("next")}
	return step
}

// A step whose ghosts cannot be swept is refused, with what it lacks.
func TestGroupsThatCannotBe(t *testing.T) {
	set := testdevices.Host(t, 2)
	placed := sweep.Point{
		Name: "placed", Dims: 3, CUDA: "template <typename P> __device__ __forceinline__ void placed(P &p) { p.set(next, p.at(u) + p.i()); }", Go: func(*sweep.Row) {},
	}
	beside := placed
	beside.CUDA = strings.ReplaceAll(placed.CUDA, "p.i()", "p.j() + p.z()")
	for name, c := range map[string]struct {
		periodic bool
		change   func(*halo.Spec, *Step)
		says     string
	}{
		"all is there":        {false, func(*halo.Spec, *Step) {}, ""},
		"a negative number":   {false, func(_ *halo.Spec, s *Step) { s.Group = -1 }, "must be 0 or more, got -1"},
		"more than are ready": {false, func(_ *halo.Spec, s *Step) { s.Group = 34 }, "must be at most 32, got 34"},
		"narrow ghosts":       {false, func(s *halo.Spec, _ *Step) { s.Width.Plus[2] = 2 }, "2 layers of ghosts in z+, and 3 times what a step reaches is 3"},
		"no edges":            {false, func(s *halo.Spec, _ *Step) { s.Connectivity = halo.Faces }, "no ghosts in edges and corners"},
		"staggered":           {false, func(s *halo.Spec, _ *Step) { s.Stagger[1] = true }, "staggered"},
		"ghosts by component": {false, func(s *halo.Spec, _ *Step) {
			s.Components, s.SoA, s.Widths = 2, true, []domain.Radius{s.Width, s.Width}
		}, "components with ghosts of their own"},
		"a place between walls":         {false, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &placed}} }, ""},
		"a place across a periodic end": {true, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &placed}} }, `stage 0 "placed" asks where a point lies along x, which is periodic`},
		"a place along other axes":      {true, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &beside}} }, ""},
	} {
		err := groupStep(t, set, c.periodic, c.change).Check()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}

// Schemes that exchange after each step say so, and faces with kernels of their own cannot follow ghosts.
func TestGroupsThatDoNotSuit(t *testing.T) {
	set := testdevices.Host(t, 2)
	step := groupStep(t, set, false, func(*halo.Spec, *Step) {})
	plan, err := step.Plan(set.Links, p2p.Direct)
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewRunner(t.Context(), step, plan, set.Compiler)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, err := x.Run(t.Context(), Options{Scheme: Ranks, Steps: 1}); !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "exchanges after each step") {
		t.Errorf("got %v", err)
	}
	step.variables()[0].Boundary[0] = boundary.Condition{Kind: boundary.Custom, Kernel: func(boundary.Slab) (*streams.Kernel, error) { return nil, nil }}
	if _, err := NewRunner(t.Context(), step, plan, set.Compiler); err == nil || !strings.Contains(err.Error(), "no ghosts beyond those of neighbours") {
		t.Errorf("a face with a kernel of its own: %v", err)
	}
}
