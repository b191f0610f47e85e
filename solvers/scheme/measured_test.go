package scheme

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// measuredRun runs steps of a variable with a scheme, and returns the checks.
func measuredRun(t *testing.T, set *testdevices.Set, spec halo.Spec, group int, point *sweep.Point, wall boundary.Condition, name Scheme) ([]Check, error) {
	t.Helper()
	place := placed(t, set.Devices, []int{12, 10}, [3]bool{}, domain.Vec{1, len(set.Devices), 1})
	wide := must(halo.NewWideHalo(place.Decomposition, domain.UniformRadius(2, 1), group))(t)
	u := newVariable(t, place, wide.Spec(spec), 2)
	u.Boundary = boundary.All(wall)
	arrays, _ := spec.Arrays()
	for c := range arrays {
		f := u.Level(0)
		if arrays > 1 {
			f = must(f.Component(c))(t)
			defer f.Close()
		}
		succeeds(t, halo.FillPoints(f, func(p domain.Vec) float64 { return float64(3*p[0]*p[0] - 5*p[1] + 7*c) }))
	}
	succeeds(t, u.SetAll())
	step := &Step{Name: "measured", Group: group, Measured: []*Variable{u}, Stages: []Stage{{
		Reads: []Access{u.At(0, stencil.Star(2, 1))}, Writes: []Access{u.At(1, nil).Named("next")}, Point: point,
	}}}
	plan := must(step.Plan(set.Links, cmp.Or(name.Needs().Path, p2p.Peer)))(t)
	x, err := NewRunner(t.Context(), step, plan, set.Compiler)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	res, err := x.Run(t.Context(), Options{Scheme: name, Steps: 6, CheckEvery: 2, History: true})
	return res.History, err
}

// shifts is a point function of two components.
var shifts = sweep.Point{
	Name: "shifts", Dims: 2,
	CUDA: "template <typename P> __device__ __forceinline__ void shifts(P &p) { p.set(next[0], p.at(u[0], 1, 0, 0)); p.set(next[1], p.at(u[1], 0, 1, 0)); }",
	Go: func(r *sweep.Row) {
		copy(sweep.AtComponent[float64](r, "next", 0, 0, 0, 0), sweep.AtComponent[float64](r, "u", 0, 1, 0, 0))
		copy(sweep.AtComponent[float64](r, "next", 1, 0, 0, 0), sweep.AtComponent[float64](r, "u", 1, 0, 1, 0))
	},
}

// moves is a point function of one component.
var moves = sweep.Point{
	Name: "moves", Dims: 2,
	CUDA: "template <typename P> __device__ __forceinline__ void moves(P &p) { p.set(next, p.at(u, 1, 0, 0)); }",
	Go:   func(r *sweep.Row) { copy(sweep.At[float64](r, "next", 0, 0, 0), sweep.At[float64](r, "u", 1, 0, 0)) },
}

// The norms of a variable of several components, and of a staggered one, are equal with every scheme that
// suits the step.
func TestNormsOfComponentsAndOfStaggeredPoints(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  halo.Spec
		point *sweep.Point
		wall  boundary.Condition
	}{
		{"two components", halo.Spec{Name: "u", Element: halo.Float64, Components: 2, SoA: true}, &shifts, boundary.Condition{Kind: boundary.Neumann}},
		{"staggered", halo.Spec{Name: "u", Element: halo.Float64, Stagger: []bool{true, false}}, &moves, boundary.Condition{}},
	} {
		for devices := 1; devices <= 2; devices++ {
			for group := 1; group <= 2 && (group == 1 || c.spec.Stagger == nil); group++ {
				t.Run(fmt.Sprintf("%s/devices=%d/group=%d", c.name, devices, group), func(t *testing.T) {
					set := testdevices.Host(t, devices)
					want, err := measuredRun(t, set, c.spec, group, c.point, c.wall, TwoStream)
					if err != nil || len(want) == 0 {
						t.Fatal(want, err)
					}
					made := 0
					for _, name := range All() {
						got, err := measuredRun(t, set, c.spec, group, c.point, c.wall, name)
						switch {
						case errors.Is(err, ErrUnsuited):
							continue
						case err != nil:
							t.Errorf("%s: %v", name, err)
						case !slices.EqualFunc(got, want, func(a, b Check) bool { return a.Step == b.Step && slices.Equal(a.Norms, b.Norms) }):
							t.Errorf("%s: %+v, want %+v", name, got, want)
						}
						made++
					}
					if made < 4 {
						t.Errorf("%d schemes run the steps", made)
					}
				})
			}
		}
	}
}

// Schemes that store swept points reject points that neighbors have and no stage writes.
func TestStaggeredPointsWithoutWrites(t *testing.T) {
	set := testdevices.Host(t, 2)
	spec := halo.Spec{Name: "u", Element: halo.Float64, Stagger: []bool{true, false}}
	for _, name := range []Scheme{Fused, Resident, Ranks} {
		_, err := measuredRun(t, set, spec, 1, &moves, boundary.Condition{}, name)
		wants(t, string(name), err, ErrUnsuited, `the last points of "u", which is staggered`)
	}
}

// The tuning of each stage is reported once, with the time of all devices and phases.
func TestTuning(t *testing.T) {
	tuned := func(name string, x, layers int, took time.Duration) stageLaunches {
		return stageLaunches{tuning: Tuning{name, [2]int{x, 4}, layers, took}}
	}
	x := &Runner{
		step: &Step{Stages: make([]Stage, 3)}, local: []int{0, 1},
		subdomains: []*subdomain{
			{stages: [][]stageLaunches{{{}, {}, tuned("reaction", 64, 2, 5)}, {{}, {}, tuned("reaction", 64, 2, 1)}}}, // an empty interior
			{stages: [][]stageLaunches{{tuned("diffusion", 32, 8, 7), {}, tuned("reaction", 16, 2, 3)}, {tuned("diffusion", 32, 8, 2), {}, tuned("reaction", 16, 2, 1)}}},
		},
	}
	want := []Tuning{{"diffusion", [2]int{32, 4}, 8, 9}, {"reaction", [2]int{64, 4}, 2, 10}}
	if got := x.Tuning(); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// A step whose sweeps may be tuned on the field that it writes does not read that field before.
func TestKeepsLevels(t *testing.T) {
	v, other := &Variable{levels: make([]*halo.Field, 2)}, &Variable{levels: make([]*halo.Field, 2)}
	three := &Variable{levels: make([]*halo.Field, 3)}
	at := func(v *Variable, level int) Access { return Access{Variable: v, Level: level} }
	stage := func(reads ...Access) Stage { return Stage{Reads: reads} }
	writing := func(v *Variable, reads ...Access) Stage { return Stage{Reads: reads, Writes: []Access{at(v, 1)}} }
	for name, c := range map[string]struct {
		of     *Variable
		stages []Stage
		keeps  bool
	}{
		"newest only":              {v, []Stage{writing(v, at(v, 0))}, true},
		"newest of another":        {v, []Stage{writing(v, at(other, 1))}, true},
		"after it is written":      {v, []Stage{writing(v, at(v, 0)), writing(other, at(v, 1))}, true},
		"before it is written":     {v, []Stage{writing(other, at(v, 1)), writing(v, at(v, 0))}, false},
		"where it is written":      {v, []Stage{writing(v, at(v, 1))}, false},
		"the level before, of two": {v, []Stage{writing(v, at(v, 0), at(v, -1))}, false},
		"the level before":         {three, []Stage{writing(three, at(three, 0), at(three, -1))}, true},
		"before, of three":         {three, []Stage{stage(at(three, 1)), writing(three, at(three, 0))}, false},
	} {
		if got := (&Step{Stages: c.stages}).keeps(c.of); got != c.keeps {
			t.Errorf("%s: %t", name, got)
		}
	}
}
