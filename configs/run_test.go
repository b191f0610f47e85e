package configs_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/test"
)

func TestTimeStep(t *testing.T) {
	const h = 1. / 65
	for _, c := range []struct {
		name, text string
		want       float64
	}{
		{"three dimensions", "grid: {size: [64, 64, 64]}", h * h / 6},
		{"two dimensions", "grid: {size: [64, 64]}", h * h / 4},
		{"diffusivity", "grid: {size: [64, 64]}\nheat: {diffusivity: 3}", h * h / (4 * 3)},
		{"unequal", "grid: {size: [4, 4], spacing: [0.5, 0.25]}", 1 / (2 * (1/0.25 + 1/0.0625))},
		{"unequal by periodicity", "grid: {size: [64, 64]}\nboundary: {x: periodic}", 1 / (2. * (64*64 + 65*65))},
		{"a box", "grid: {size: [64, 64, 64]}\nstencil: {points: 27}", 2 * h * h / (92. / 15)},
		{"a star of fourth order", "grid: {size: [64, 64, 64]}\nstencil: {points: 13}", h * h / 8},
		{"set", "grid: {size: [64, 64]}\nheat: {dt: 1e-5}", 1e-5},
		{"forced", "grid: {size: [64, 64]}\nheat: {dt: 1, force: true}", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := load(t, "solver: heat\n"+c.text, configs.Options{})
			if got := run.TimeStep(); math.Abs(got-c.want) > 1e-15*c.want {
				t.Errorf("TimeStep is %v, not %v", got, c.want)
			}
			if stable := run.StableStep(); run.TimeStep() > stable && !run.Heat.Force {
				t.Errorf("TimeStep %v is above StableStep %v", run.TimeStep(), stable)
			}
		})
	}
	laplace := load(t, small, configs.Options{})
	if laplace.TimeStep() != 0 || laplace.StableStep() != 0 {
		t.Error("laplace has a time step")
	}
}

func TestTheStabilityLimitItselfIsAllowed(t *testing.T) {
	for n := 1; n <= 200; n++ {
		h := 1 / float64(n+1)
		dt := fmt.Sprintf("heat.dt=%v", h*h/6)
		load(t, "solver: heat", configs.Options{Set: []string{fmt.Sprintf("grid.size=[%d, %d, %d]", n, n, n), dt}})
	}
}

func TestGeometry(t *testing.T) {
	run := load(t, "solver: laplace\ngrid: {size: [4, 8, 2]}\nboundary: {y: periodic, z-: neumann}", configs.Options{})
	if got := fmt.Sprint(run.Dims(), run.Spacing(), run.Periodic(), run.Grid.Points()); got != "3 [0.2 0.125 0.4] [false true false] 64" {
		t.Errorf("got %s", got)
	}
}

func TestPlane(t *testing.T) {
	for _, c := range []struct {
		size, slice string
		axis, index int
	}{
		{"[8, 8]", "auto", 2, 0}, {"[8, 8, 8]", "auto", 2, 4}, {"[8, 8, 1]", "auto", 2, 0}, {"[8, 8, 8]", "y=7", 1, 7},
	} {
		run := load(
			t,
			"solver: laplace",
			configs.Options{Set: []string{"grid.size=" + c.size, "output.slice=" + c.slice}},
		)
		if axis, index := run.Plane(); axis != c.axis || index != c.index {
			t.Errorf("%s of %s is plane %d of axis %d", c.slice, c.size, index, axis)
		}
	}
}

func TestSamples(t *testing.T) {
	for _, name := range configs.Samples() {
		text := test.Must(configs.Sample(name))(t)
		run := test.Must(configs.Parse(name+".yaml", text, configs.Options{}))(t)
		if work := run.Grid.Points() * int64(run.Stop.Iterations); work > 2e9 {
			t.Errorf("%s may take %d updates: too long for a sample", name, work)
		}
		if run.Output.Picture != "out/"+name+".png" {
			t.Errorf("%s draws %q", name, run.Output.Picture)
		}
	}
	if _, err := configs.Sample("heat4d"); err == nil ||
		!strings.Contains(err.Error(), "heat2d, heat3d, laplace2d, laplace3d") {
		t.Errorf("got %v", err)
	}
}

func ExampleParse() {
	const file = `solver: heat
grid:
  size: [64, 64, 64]
precision: half
heat:
  dt: 0.1
`
	o := configs.Options{Set: []string{"stop.norm=l1"}}
	_, err := configs.Parse("heat3d.yaml", []byte(file), o)
	fmt.Println(err)
	// Output:
	// heat3d.yaml:4: precision: must be float64 or float32, got "half"
	// heat3d.yaml:6: heat.dt: must be at most 3.944773175542407e-05 to be stable on this grid, unless heat.force is set, got 0.1
	// --set: stop.norm: must be max, l2 or residual, got "l1"
}
