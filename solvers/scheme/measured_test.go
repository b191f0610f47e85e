package scheme

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// measuredRun runs steps of a variable under a scheme, and returns the checks.
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

// moves is one of one component.
var moves = sweep.Point{
	Name: "moves", Dims: 2,
	CUDA: "template <typename P> __device__ __forceinline__ void moves(P &p) { p.set(next, p.at(u, 1, 0, 0)); }",
	Go:   func(r *sweep.Row) { copy(sweep.At[float64](r, "next", 0, 0, 0), sweep.At[float64](r, "u", 1, 0, 0)) },
}

// The norms of a variable of several components, and of a staggered one, are the same under every scheme, or the scheme says that the step does not suit it.
func TestNormsOfComponentsAndOfStaggeredPoints(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  halo.Spec
		point *sweep.Point
		wall  boundary.Condition
	}{
		{"two components", halo.Spec{Name: "u", Element: halo.Float64, Components: 2, SoA: true}, &shifts, boundary.Condition{Kind: boundary.Neumann}},
		{"staggered", halo.Spec{Name: "u", Element: halo.Float64, Stagger: [3]bool{true, false, false}}, &moves, boundary.Condition{}},
	} {
		for devices := 1; devices <= 2; devices++ {
			for group := 1; group <= 2 && (group == 1 || c.spec.Stagger == [3]bool{}); group++ {
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
						t.Errorf("%d schemes make the steps", made)
					}
				})
			}
		}
	}
}

// Schemes that store what they sweep refuse points that no stage writes and neighbours have.
func TestStaggeredPointsThatNoStageWrites(t *testing.T) {
	set := testdevices.Host(t, 2)
	spec := halo.Spec{Name: "u", Element: halo.Float64, Stagger: [3]bool{true, false, false}}
	for _, name := range []Scheme{Fused, Resident, Ranks} {
		_, err := measuredRun(t, set, spec, 1, &moves, boundary.Condition{}, name)
		wants(t, string(name), err, ErrUnsuited, `the last points of "u", which is staggered`)
	}
}
