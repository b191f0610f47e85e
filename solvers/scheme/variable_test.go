package scheme

import (
	"errors"
	"math"
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

// Values of a datatype are only for user kernels; sweeps reject them by name.
func TestSweepsOfTypes(t *testing.T) {
	gap := must(datatype.Resized(datatype.Float64, 0, 24))(t)
	v := variableOf(t, halo.Spec{Name: "cells", Type: gap, Width: domain.UniformRadius(2, 1)})
	stage := Stage{Reads: []Access{v.At(0, stencil.Footprint{{1, 0, 0}})}, Writes: []Access{v.At(1, nil)}, Point: &sweep.Point{}}
	wants(t, "a point function over values of a type", stage.check(), nil, `variable "cells" has values of type`)
	stage.Point, stage.Kernels = nil, func(Region) (Launch, error) { return nil, nil }
	if err := stage.check(); err != nil {
		t.Errorf("kernels over values of a type: %v", err)
	}
}

// A variable whose components have different widths can be read as far as each width allows.
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
		"both beyond the point":                   {v.At(0, right), false},
		"the first beyond the point":              {v.At(0, nil).ByComponent([]stencil.Footprint{right, nil}), false},
		"only the second, which has ghosts there": {v.At(0, nil).ByComponent([]stencil.Footprint{stencil.Point(), right}), true},
	} {
		stage := Stage{Reads: []Access{c.read}, Writes: []Access{v.At(1, nil)}, Point: point}
		if err := stage.check(); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), `component 0 of "f" is read`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Copies for trials have the values of the variables.
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

// doubled is a point function whose Go counterpart is up units in the last place above its source.
func doubled(element domain.Element, up int) *sweep.Point {
	return &sweep.Point{
		Name: "doubled", Dims: 2, CUDA: "template <typename P> __device__ __forceinline__ void doubled(P &p) { p.set(u, 2 * p.at(u)); }",
		Go: func(r *sweep.Row) {
			if element == halo.Float32 {
				u := sweep.At[float32](r, "u", 0, 0, 0)
				for i := range u {
					u[i] = math.Float32frombits(math.Float32bits(2*u[i]) + uint32(up))
				}
				return
			}
			u := sweep.At[float64](r, "u", 0, 0, 0)
			for i := range u {
				u[i] = math.Float64frombits(math.Float64bits(2*u[i]) + uint64(up))
			}
		},
	}
}

// The sources of all stages are compared with their Go counterparts; reals may differ by the given number of
// units in the last place.
func TestCheckPoints(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	testdevices.Once(t)
	set := testdevices.Host(t, 1)
	place := placed(t, set.Devices, []int{8, 8}, [3]bool{}, domain.Vec{1, 1, 1})
	for _, c := range []struct {
		element domain.Element
		ulps    uint64
		says    string
	}{
		{halo.Float64, 2, `stage 2 "far"`}, {halo.Float64, 3, ""}, {halo.Float32, 2, "differ by 3 ulps"},
	} {
		u := newVariable(t, place, halo.Spec{Name: "u", Element: c.element}, 1)
		stage := func(name string, up int) Stage {
			return Stage{Name: name, Reads: []Access{u.At(0, nil)}, Writes: []Access{u.At(1, nil)}, Point: doubled(c.element, up)}
		}
		kernels := Stage{Writes: []Access{u.At(1, nil)}, Kernels: func(Region) (Launch, error) { return nil, nil }}
		step := &Step{Stages: []Stage{stage("near", 2), kernels, stage("far", 3)}, Measured: []*Variable{u}}
		err := step.CheckPoints(set.Compiler, set.Devices[0], sweep.CheckOptions{ULPs: c.ulps})
		if errors.Is(err, sweep.ErrNoCompiler) {
			t.Skip("SKIPPED: ", err)
		}
		if errors.Is(err, sweep.ErrDiffer) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s within %d: %v", c.element, c.ulps, err)
		}
	}
	step := &Step{Stages: reducedAlone(newStep(t, set, 1, 16).Measured[0])}
	succeeds(t, step.CheckPoints(set.Compiler, set.Devices[0], sweep.CheckOptions{}))
	wants(t, "a range of no access", step.CheckPoints(set.Compiler, set.Devices[0],
		sweep.CheckOptions{Ranges: map[string][2]float64{"v": {}}}), nil, "a point function must have an access of this name")
	step.Stages[0].Point.Parameters = struct{ A float64 }{}
	step.Stages[0].Parameters = func(sweep.Moment, any) error { return errors.New("asked") }
	wants(t, "Stage.Parameters", step.CheckPoints(set.Compiler, set.Devices[0], sweep.CheckOptions{}), nil, "asked")
	step.Stages[0].Parameters = nil
	step.Stages[0].Point.CUDA = strings.Replace(step.Stages[0].Point.CUDA, "p.at(u)", "p.at(next)", 1)
	wants(t, "a read of a write-only access", step.CheckPoints(set.Compiler, set.Devices[0], sweep.CheckOptions{}), nil,
		`stage 0 "count": sweep: count.cu:1: at(next, ...) of an access that is only written`)
	if err := newStep(t, set, 1, 16).CheckPoints(set.Compiler, nil, sweep.CheckOptions{}); err == nil {
		t.Error("a check without a device")
	}
}
