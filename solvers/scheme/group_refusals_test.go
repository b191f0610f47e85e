package scheme

import (
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
	place := placed(t, set.Devices, []int{12, 10, 16}, [3]bool{periodic}, domain.Vec{1, 1, 2})
	wide := must(halo.NewWideHalo(place.Decomposition, domain.UniformRadius(3, 1), 3))(t)
	spec := wide.Spec(halo.Spec{Name: "u", Element: halo.Float64})
	step := &Step{Group: 3}
	change(&spec, step)
	u := newVariable(t, place, spec, 2)
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
		}, "components with different ghosts"},
		"a place between walls":         {false, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &placed}} }, ""},
		"a place across a periodic end": {true, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &placed}} }, `stage 0 "placed" asks where a point lies along x, which is periodic`},
		"a place along other axes":      {true, func(_ *halo.Spec, s *Step) { s.Stages = []Stage{{Point: &beside}} }, ""},
	} {
		err := groupStep(t, set, c.periodic, c.change).Check()
		wants(t, name, err, nil, c.says)
	}
}

// Schemes that exchange after each step say so, and faces with kernels of their own cannot follow ghosts.
func TestGroupsThatDoNotSuit(t *testing.T) {
	set := testdevices.Host(t, 2)
	step := groupStep(t, set, false, func(*halo.Spec, *Step) {})
	_, err := runnerBy(t, set, step, p2p.Direct).Run(t.Context(), Options{Scheme: Ranks, Steps: 1})
	wants(t, "ranks", err, ErrUnsuited, "exchanges after each step")
	step.variables()[0].Boundary[0] = boundary.Condition{Kind: boundary.Custom, Kernel: func(boundary.Slab) (*streams.Kernel, error) { return nil, nil }}
	_, err = NewRunner(t.Context(), step, must(step.Plan(set.Links, p2p.Direct))(t), set.Compiler)
	wants(t, "a boundary with a user kernel", err, nil, "no ghosts beyond those of neighbours")
}
