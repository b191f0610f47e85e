package scheme_test

import (
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
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// measuredRun makes steps of a variable under a scheme, and returns the checks.
func measuredRun(t *testing.T, set *testdevices.Set, spec halo.Spec, group int, point *sweep.Point, wall boundary.Condition, name scheme.Scheme) ([]scheme.Check, error) {
	t.Helper()
	grid := must(domain.NewGrid([]int{12, 10}, [3]bool{}))(t)
	cut := must(domain.Decompose(grid, domain.Vec{1, len(set.Devices), 1}))(t)
	place := must(halo.Place(cut, set.Devices))(t)
	wide := must(halo.NewWideHalo(cut, domain.UniformRadius(2, 1), group))(t)
	u := must(scheme.NewVariable(place, wide.Spec(spec), 2))(t)
	defer u.Close()
	u.Boundary = boundary.All(wall)
	arrays, _ := spec.Arrays()
	for c := range arrays {
		f := u.Level(0)
		if arrays > 1 {
			f = must(f.Component(c))(t)
			defer f.Close()
		}
		if err := halo.FillPoints(f, func(p domain.Vec) float64 { return float64(3*p[0]*p[0] - 5*p[1] + 7*c) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.SetAll(); err != nil {
		t.Fatal(err)
	}
	step := &scheme.Step{Name: "measured", Group: group, Measured: []*scheme.Variable{u}, Stages: []scheme.Stage{{
		Reads: []scheme.Access{u.At(0, stencil.Star(2, 1))}, Writes: []scheme.Access{u.At(1, nil).Named("next")}, Point: point,
	}}}
	path := p2p.Peer
	if needs, err := scheme.NeedsOf(name); err == nil && needs.Path != "" {
		path = needs.Path
	}
	plan := must(step.Plan(set.Links, path))(t)
	x, err := scheme.NewRunner(t.Context(), step, plan, set.Compiler)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	res, err := x.Run(t.Context(), scheme.Options{Scheme: name, Steps: 6, CheckEvery: 2, History: true})
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
					want, err := measuredRun(t, set, c.spec, group, c.point, c.wall, scheme.TwoStream)
					if err != nil || len(want) == 0 {
						t.Fatal(want, err)
					}
					made := 0
					for _, name := range scheme.All() {
						got, err := measuredRun(t, set, c.spec, group, c.point, c.wall, name)
						switch {
						case errors.Is(err, scheme.ErrUnsuited):
							continue
						case err != nil:
							t.Errorf("%s: %v", name, err)
						case !slices.EqualFunc(got, want, func(a, b scheme.Check) bool { return a.Step == b.Step && slices.Equal(a.Norms, b.Norms) }):
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
	for _, name := range []scheme.Scheme{scheme.Fused, scheme.Resident, scheme.Ranks} {
		_, err := measuredRun(t, set, spec, 1, &moves, boundary.Condition{}, name)
		if !errors.Is(err, scheme.ErrUnsuited) || !strings.Contains(err.Error(), `the last points of "u", which is staggered`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// must returns a value that was made without an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
