package configs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/halox/halox/configs"
)

const equation = `solver: equation
grid:
  size: [8, 8]
parameters:
  D: 0.5
fields:
  u:
    initial: x
    boundary:
      x: periodic
  v: {}
equations:
  u: D*lap(u)
  v: D*lap(v) + u
`

// Each change to a good file gives one message, with the line of the part.
func TestEquationsThatAreWrong(t *testing.T) {
	good := strings.Replace(equation, "v: {}", "v: {boundary: {x: periodic}}", 1)
	if run, err := configs.Parse("c.yaml", []byte(good), configs.Options{}); err != nil || run.TimeStep() <= 0 {
		t.Fatalf("%+v: %v", run, err)
	}
	for _, c := range []struct{ old, new, says string }{
		{"D*lap(u)", "D*lap(u) + q", `13: equations.u: column 12: unknown name "q": the variables are D, dt, step, u, v, x`},
		{"D*lap(u)", "D*lap(u) +", "13: equations.u: column 11: the expression ends too early"},
		{"D*lap(u)", "t*lap(u)", "13: equations.u: has differences for which no stable step is known"},
		{"D*lap(u)", "D*lap(u) + noise(t)", "13: equations.u: column 12: noise takes one argument, its seed"},
		{"  D: 0.5", "  D: 0.5\nconstants: {c: x + t}", "6: constants.c: must not depend on t, which changes"},
		{"D*lap(u)", "dz(u)", "13: equations.u: column 1: dz cannot be used on a grid of 2 dimensions"},
		{"D*lap(u)", "[1, 2]", "13: equations.u: must be a number, an expression, or {file: NAME.npy}"},
		{"D*lap(u)", "lap(v^2)", "13: equations.u: has differences for which no stable step is known"},
		{"D*lap(u)", "dx(u)", "13: equations.u: is unstable with centered differences"},
		{"D*lap(u)", "D*lap(u) + 1/0", "13: equations.u: must not contain a non-finite number"},
		{"  u: D*lap(u)\n", "", "12: equations: must have one for field u"},
		{"  u: D*lap(u)\n", "  u: D*lap(u)\n  w: 1\n", "14: equations.w: must be the name of one of fields"},
		{"  u: D*lap(u)\n", "  u: 1\n  u: D*lap(u)\n", "14: equations.u: must be given once"},
		{"initial: x", "initial: u", "8: fields.u.initial: column 1: u depends on fields"},
		{"initial: x", "initial: lap(x)", "8: fields.u.initial: column 1: the operator lap can be used in equations only"},
		{"initial: x", "initial: noise(-1)", "8: fields.u.initial: column 1: noise takes one argument, its seed"},
		{"initial: x", "initial: z", "8: fields.u.initial: column 1: z cannot be used on a grid of 2 dimensions"},
		{"initial: x", "intial: x", "8: fields.u.intial: unknown key, must be one of initial, rate, previous, boundary"},
		{"x: periodic\n", "w: periodic\n", "10: fields.u.boundary.w: unknown face, must be one of x, x+, x-, y, y+ or y-"},
		{"x: periodic\n", "x: robin\n", "10: fields.u.boundary.x: must be periodic, {dirichlet:"},
		{"x: periodic\n", "x: periodic\n      y: {flux: {value: 1, D: -1}}\n", "11: fields.u.boundary.y: must have a positive number or an expression as its D"},
		{"x: periodic\n", "x: periodic\n      y: {flux: {value: 1, k: 1}}\n", "11: fields.u.boundary.y: must be periodic, {dirichlet:"},
		{"x: periodic\n", "x: periodic\n      y: {flux: {value: 1, D: q}}\n", `11: fields.u.boundary.y: in D: column 1: unknown name "q"`},
		{"x: periodic\n", "x: periodic\n      y: {robin: {h: 1, ambient: 1, D: 0}}\n", "11: fields.u.boundary.y: must have a positive number or an expression as its D"},
		{"x: periodic\n", "x-: periodic\n", "fields.u.boundary.x-: must not be periodic unless x+ is"},
		{"x: periodic\n", "x: periodic\n      y: {dirichlet: q}\n", `11: fields.u.boundary.y: column 1: unknown name "q"`},
		{"x: periodic\n", "x: neumann\n", "fields.v.boundary: must have the periodic faces of the other fields, and x- is periodic, not neumann"},
		{"  D: 0.5", "  D: half", "5: parameters.D: must be a finite number"},
		{"  D: 0.5", "  D: .inf", "5: parameters.D: must be a finite number"},
		{"  D: 0.5", "  D: 0.5\n  x: 1", "6: parameters.x: must not be named x, which has a meaning in formulas"},
		{"  D: 0.5", "  D: 0.5\n  u: 1", "fields.u: must not be named u, which is the name of something else"},
		{"  D: 0.5", "  D: 0.5\nlet: {f: 1 + u*y, f2: g}", `6: let.f2: column 1: unknown name "g"`},
		{"  D: 0.5", "  D: 0.5\nconstants: {c: u}", `6: constants.c: column 1: unknown name "u"`},
		{"  D: 0.5", "  D: 0.5\nconstants: 1", "6: constants: must have names with values, got 1"},
		{"  D: 0.5", "  D: 0.5\ntime: {dt: 1}", "6: time.dt: must be at most 0.00"},
		{"  D: 0.5", "  D: 0.5\nexact: x", "6: exact: must have one per field, as {u: ...}, got \"x\""},
		{"  D: 0.5", "  D: 0.5\nexact: {u: D + q}", `6: exact.u: column 5: unknown name "q"`},
		{"  D: 0.5", "  D: 0.5\nexact: {u: u}", "6: exact.u: column 1: u depends on fields"},
		{"  D: 0.5", "  D: 0.5\nexact: {u: [1]}", "6: exact: must be a number or an expression"},
		{"  D: 0.5", "  D: 0.5\nexact:\n  w: 1", "7: exact.w: must be the name of one of the fields u, v"},
		{"  D: 0.5", "  D: 0.5\nunit: {u: K, w: m}", "6: unit.w: must be the name of one of the fields u, v"},
		{"  D: 0.5", "  D: 0.5\nunit: {u: 1}", "6: unit: must be a text, or one per field, as {u: K}"},
		{"  D: 0.5", "  D: 0.5\ntime: {dt: {cfl: 0.4}}", "6: time.dt: must be auto, a positive number, or {cfl: 0.4, speed: FORMULA}, got {cfl: 0.4}"},
		{"  D: 0.5", "  D: 0.5\ntime: {dt: {cfl: 0, speed: u}}", "6: time.dt: must be auto, a positive number, or"},
		{"  D: 0.5", "  D: 0.5\ntime: {dt: {cfl: 1, speed: D}}", `6: time.dt.speed: must use a field, got "D"`},
		{"  D: 0.5", "  D: 0.5\ntime: {dt: {cfl: 1, speed: u + w}}", `6: time.dt.speed: column 5: unknown name "w"`},
		{"  D: 0.5", "  D: 0.5\ntime: {dt: {cfl: 1, speed: u + t}}", `6: time.dt.speed: must not depend on t, which changes`},
		{"  D: 0.5", "  D: 0.5\ntime: {dt: {cfl: 1, speed: u*dt}}", `6: time.dt.speed: must not depend on dt, which changes`},
		{"  D: 0.5", "  D: 0.5\ndefine: {w: u^2}\ntime: {dt: {cfl: 1, speed: w}}", `7: time.dt.speed: must not use previous or a formula of define`},
		{"  D: 0.5", "  D: 0.5\ntime: {dt: {cfl: 1, speed: u}}\nstop: {tolerance: 1, norm: residual}", `7: stop.norm: must not be residual with a speed in time.dt`},
		{"equations:\n  u: D*lap(u)", "time: {dt: {cfl: 1, speed: u}}\naccelerations:\n  u: D*lap(u)", `12: time.dt: must be a number with accelerations`},
		{"  D: 0.5", "  D: 0.5\ntime: {integrator: rk9}", "6: time.integrator: must be euler, rk2, ssprk3, rk4 or leapfrog"},
		{"  D: 0.5", "  D: 0.5\ninitial: x", "6: initial: must not be set with solver equation"},
		{"  D: 0.5", "  D: 0.5\nboundary: {z: periodic}", "6: boundary.z: must not be set on a grid of 2 dimensions"},
		{"  D: 0.5", "  D: 0.5\nheat: {dt: 1}", "6: heat.dt: must not be set with solver equation"},
		{"  D: 0.5", "  D: 0.5\noutput: {field: u.npy}", "6: output.field: must have a file per field, as {u: FILE}"},
		{"  D: 0.5", "  D: 0.5\noutput: {field: {w: w.npy}}", "6: output.field: must name fields, which are u, v, got {w: \"w.npy\"}"},
		{"  D: 0.5", "  D: 0.5\noutput: {field: {u: u.txt}}", "6: output.field: must be a file that ends in .npy"},
		{"  D: 0.5", "  D: 0.5\nupdate: {u: u}", "6: update: must not be set with equations"},
		{"  D: 0.5", "  D: 0.5\naccelerations: {u: u}", "6: accelerations: must not be set with equations"},
		{"equations:\n  u: D*lap(u)", "accelerations:\n  u: D*dx(u)", "13: accelerations.u: is unstable with leapfrog"},
		{"equations:", "time: {integrator: rk4}\naccelerations:", "12: time.integrator: must be leapfrog with accelerations"},
		{"  D: 0.5", "  D: 0.5\ntime: {integrator: leapfrog}", "6: time.integrator: must not be leapfrog without accelerations"},
		{"initial: x", "initial: x\n    rate: 0", "9: fields.u.rate: must not be set without accelerations"},
		{"D*lap(u)", "previous(u)", "13: equations.u: column 1: previous can be used in update only"},
		{"initial: x", "initial: x\n    previous: 0", "9: fields.u.previous: must not be set without update"},
		{"  D: 0.5", "  D: 0.5\nstages: []", "6: stages: must not be set with equations"},
		{"  D: 0.5", "  D: 0.5\nstages: u", "6: stages: must be a list of stages"},
		{"equations:\n  u: D*lap(u)\n  v:", "stages:\n - u: u + q\n   v:", `13: stages.1.u: column 5: unknown name "q"`},
		{"equations:\n  u: D*lap(u)\n  v:", "stages:\n - w: u\n   v:", "13: stages.1.w: must be the name of one of fields"},
		{"equations:\n  u: D*lap(u)\n  v:", "stages:\n - v:", "12: stages: must have a formula for field u"},
		{"  D: 0.5", "  D: 0.5\ndefine: {mu: q}", `6: define.mu: column 1: unknown name "q"`},
		{"  D: 0.5", "  D: 0.5\ndefine: {mu: {}}", "6: define.mu: must be a formula"},
		{"  D: 0.5", "  D: 0.5\ndefine: {mu: {formulas: u}}", "6: define.mu.formulas: unknown key, must be one of formula, boundary"},
		{"  D: 0.5", "  D: 0.5\ndefine: {mu: {formula: u, boundary: {y: {dirichlet: q}}}}", `6: define.mu.boundary.y: column 1: unknown name "q"`},
		{"  D: 0.5", "  D: 0.5\ndefine: {mu: nu, nu: u}", "6: define.mu: must not use nu, which is defined by it or after it"},
		{"size: [8, 8]", "size: [8, 8]\n  end: [1]", "4: grid.end: must have one number per axis of the grid, 2"},
		{"size: [8, 8]", "size: [8, 8]\n  end: [1, 1]\n  spacing: 1", "4: grid.end: must not be set with grid.spacing"},
		{"size: [8, 8]", "size: [8, 8]\n  start: [1, 1]\n  end: [1, 2]", "5: grid.end: must be beyond the start of each axis"},
		{"solver: equation", "solver: heat", "fields: must not be set with solver heat"},
	} {
		t.Run(c.new, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			_, err := configs.Parse("c.yaml", []byte(text), configs.Options{})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	if _, err := configs.Parse("c.yaml", []byte(equation), configs.Options{}); !strings.Contains(fmt.Sprint(err), "must have the periodic faces") {
		t.Errorf("got %v", err)
	}
}

// A flux over its diffusivity is a derivative, and so is the transfer coefficient of a Robin face.
func TestDiffusivitiesOfFaces(t *testing.T) {
	text := strings.Replace(equation, "x: periodic\n", "{x-: {flux: {value: 3*y, D: D + y}}, x+: {robin: {h: 3, ambient: y, D: 2}}}\n", 1)
	run, err := configs.Parse("c.yaml", []byte(text), configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	walls := run.Equation().Fields[0].Boundary
	if walls[0].Diffusivity != "D + y" || walls[1].Diffusivity != "2" || walls[1].Transfer != "3" || walls[1].Value != "y" {
		t.Errorf("%+v", walls)
	}
}
