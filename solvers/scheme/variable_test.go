package scheme

import (
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
)

// variableOf makes a variable of two levels on one device.
func variableOf(t *testing.T, s halo.Spec) *Variable {
	t.Helper()
	set := testdevices.Host(t, 1)
	place := placed(t, set.Devices, []int{4, 4}, [3]bool{true, true}, domain.Vec{1, 1, 1})
	v := newVariable(t, place, s, 2)
	return v
}

// Values of a type are for kernels of the caller's own; what sweeps numbers refuses them by name.
func TestSweepsOfTypesAreRefused(t *testing.T) {
	gap := must(datatype.Resized(datatype.Float64, 0, 24))(t)
	v := variableOf(t, halo.Spec{Name: "cells", Type: gap, Width: domain.UniformRadius(2, 1)})
	stage := Stage{Reads: []Access{v.At(0, stencil.Footprint{{1, 0, 0}})}, Writes: []Access{v.At(1, nil)}, Point: &sweep.Point{}}
	wants(t, "a point function over values of a type", stage.check(), nil, `sweep of variable "cells"`)
	stage.Point, stage.Kernels = nil, func(Region) (Launch, error) { return nil, nil }
	if err := stage.check(); err != nil {
		t.Errorf("kernels over values of a type: %v", err)
	}
}

// A variable whose components have widths of their own is read as far as the widest reaches.
func TestVariablesWithWidths(t *testing.T) {
	wide, none := domain.UniformRadius(2, 1), domain.Radius{}
	v := variableOf(t, halo.Spec{Name: "f", Element: halo.Float64, SoA: true, Components: 2, Widths: []domain.Radius{none, wide}})
	stage := Stage{Reads: []Access{v.At(0, stencil.Footprint{{1, 0, 0}})}, Writes: []Access{v.At(1, nil)}, Kernels: func(Region) (Launch, error) { return nil, nil }}
	if err := stage.check(); err != nil || v.Spec.Width != wide {
		t.Errorf("width %v: %v", v.Spec.Width, err)
	}
	right := stencil.Footprint{{1, 0, 0}}
	point := &sweep.Point{Name: "f", Dims: 2, Go: func(*sweep.Row) {}}
	for name, c := range map[string]struct {
		read Access
		ok   bool
	}{
		"both beyond the point":                     {v.At(0, right), false},
		"the first beyond the point":                {v.At(0, nil).ByComponent([]stencil.Footprint{right, nil}), false},
		"the second, which has ghosts there, alone": {v.At(0, nil).ByComponent([]stencil.Footprint{stencil.Point(), right}), true},
	} {
		stage := Stage{Reads: []Access{c.read}, Writes: []Access{v.At(1, nil)}, Point: point}
		if err := stage.check(); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), `component 0 of "f" is read`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Trials begin with the values of the variables.
func TestCopiesForTrials(t *testing.T) {
	step := newStep(t, testdevices.Host(t, 2), 2, 16)
	v := step.variables()[0]
	succeeds(t, halo.FillPoints(v.Level(1), func(p domain.Vec) float64 { return float64(p[0] + 100*p[2]) }))
	_, copies, err := step.copy(step.placement())
	succeeds(t, err)
	u := copies[v]
	succeeds(t, v.copyTo(u))
	got := must(halo.ReadAll[float64](u.Level(1)))(t)
	want := must(halo.ReadAll[float64](v.Level(1)))(t)
	if !slices.Equal(got, want) || got[len(got)-1] == 0 {
		t.Errorf("%v, not %v", got, want)
	}
	succeeds(t, u.Close())
}
