package configs_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
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

func TestStabilityLimitIsAllowed(t *testing.T) {
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

func TestSamples(t *testing.T) {
	for _, name := range configs.Samples() {
		text := test.Must(configs.Sample(name))(t)
		run := test.Must(configs.Parse(name+".yaml", text, configs.Options{}))(t)
		if work := run.Grid.Points() * int64(run.Stop.Iterations); work > 2e9 {
			t.Errorf("%s may take %d updates: too slow for a sample", name, work)
		}
		if run.Output.Picture[0].Path != "out/"+name+".png" {
			t.Errorf("%s draws %q", name, run.Output.Picture)
		}
	}
	if _, err := configs.Sample("heat4d"); err == nil ||
		!strings.Contains(err.Error(), "grayscott, heat2d, heat3d, laplace2d, laplace3d, wave") {
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

// A picture knows the time and the walls of its field: their distance, and their values at a time.
func TestView(t *testing.T) {
	const heat = "solver: heat\ngrid: {size: [4, 3]%s}\nheat: {dt: 0.01}\nboundary: {x-: {dirichlet: y + t}, x+: neumann, y+: {dirichlet: 7}}\n"
	for _, tc := range []struct {
		name, text string
		field      int
		step       int64
		subject    string
		walls      [4]string // x-, x+, y-, y+: distance and value next to point (0, 1)
	}{
		{"nodes", fmt.Sprintf(heat, ""), 0, 10, "heat, t = 0.1 (step 10), u", [4]string{"1: 0.6", "", "1: 0", "1: 7"}},
		{"no step", fmt.Sprintf(heat, ""), 0, -1, "heat, , u", [4]string{"", "", "1: 0", "1: 7"}},
		{"cells", fmt.Sprintf(heat, ", points: cells"), 0, 0, "heat, t = 0 (step 0), u", [4]string{"0.5: 0.5", "", "0.5: 0", "0.5: 7"}},
		{"equation", "solver: equation\ngrid: {size: [4, 3], start: [0, 1], end: [1, 2]}\nfields: {u: {initial: 1}, v: {initial: 1, boundary: {x: {dirichlet: y}, y: {dirichlet: x}}}}\n" +
			"equations: {u: lap(u), v: lap(v)}\ntime: {integrator: euler, dt: 1e-3}\nstop: {iterations: 3}\noutput: {label: {v: speed (m/s)}}\n",
			1, 2, "v, t = 0.002 (step 2), speed (m/s)", [4]string{"1: 1.5", "1: 1.5", "1: 0.2", "1: 0.2"}},
		{"laplace", "solver: laplace\ngrid: {size: [4, 3]}\nboundary: {y: periodic}\noutput: {label: T}\n", 0, 5, "laplace, step 5, T", [4]string{"1: 0", "1: 0", "", ""}},
	} {
		run := load(t, tc.text, configs.Options{})
		v := run.View(test.Must(run.Problem())(t), tc.field, tc.step, nil)
		if got := v.Subject + ", " + v.Moment + ", " + v.Label; got != tc.subject {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.subject)
		}
		for i, want := range tc.walls {
			got := ""
			if value, distance := v.Wall(i/2, i%2); value != nil {
				got = fmt.Sprintf("%v: %.4g", distance, value(domain.Vec{0, 1}))
			}
			if got != want {
				t.Errorf("%s: wall %d is %q, want %q", tc.name, i, got, want)
			}
		}
	}
}
