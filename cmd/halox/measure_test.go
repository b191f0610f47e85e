package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/results"
)

// Measures are reduced from the fields at the start, at the end and at each check, the same bits under every scheme and
// for any number of devices.
func TestMeasures(t *testing.T) {
	const text = `solver: equation
grid: {size: [12, 10], end: [3, 5]}
constants: {weight: x*y}
fields:
  u: {initial: 1 + 0.5*noise(3), boundary: {x: periodic, y: neumann}}
  v: {initial: 2 - 0.5*noise(4), boundary: {x: periodic, y: neumann}}
equations: {u: lap(u) + u*v, v: lap(v) - u*v}
measure: {mass: sum(u + v), weighted: mean(weight*u), most: max(u), least: "min(v + 0*dx(u))", norm: l2(u - v)}
stop: {iterations: 23, check_every: 10}
time: {dt: 1e-3}
devices: {backend: host, count: 4}
output: {history: true}
`
	var first map[string]*float64
	for _, args := range [][]string{
		{"exchange.scheme=baseline"}, {"exchange.scheme=fused"}, {"exchange.scheme=resident", "devices.count=1"},
		{"exchange.scheme=blocked", "exchange.steps=2"}, {"exchange.scheme=ranks"},
	} {
		var set []string
		for _, a := range args {
			set = append(set, "--set", a)
		}
		_, r := run(t, text, set...)
		if first == nil {
			first = r.Run.Measures
		}
		for name, v := range r.Run.Measures {
			if *v != *first[name] || *r.Run.History[2].Measures[name] != *v {
				t.Errorf("%v: %s is %v, not %v, in the history %v", args, name, *v, *first[name], *r.Run.History[2].Measures[name])
			}
		}
		if len(r.Run.History) != 3 || r.Run.History[1].Iteration != 20 || len(r.Run.Measures) != 5 || r.Run.Iterations != 23 {
			t.Errorf("%v: %+v", args, r.Run.History)
		}
		if drift := *r.Run.Measures["mass"] - *r.Run.StartMeasures["mass"]; math.Abs(drift) > 1e-11 || drift == *r.Run.Measures["mass"] {
			t.Errorf("%v: the mass changes by %v", args, drift)
		}
	}
	same := func(t *testing.T, got map[string]*float64) {
		for name, v := range first {
			if got[name] == nil || *got[name] != *v {
				t.Errorf("%s is %v, not %v", name, got[name], *v)
			}
		}
	}
	t.Run("gpus", func(t *testing.T) {
		testdevices.InTurn(t, 6, 8)
		for _, set := range testdevices.Environment(t, 2) {
			name, value, _ := strings.Cut(set, "=")
			t.Setenv(name, value)
		}
		_, r := run(t, text, "--set", "devices={backend: cuda, count: 2}", "--set", "exchange.scheme=fused")
		same(t, r.Run.Measures)
	})
	t.Run("processes", func(t *testing.T) {
		testdevices.InTurn(t, 7, 8)
		testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
			record := filepath.Join(t.TempDir(), "r.json")
			launchHalox(t, in, 2, nil, "run", write(t, "c.yaml", text), "--record", record, "--set", "devices.count=2").Succeeds(t)
			same(t, test.Must(results.Read(record))(t).Run.Measures)
		})
	})
	_, r := run(t, small, "--set", "measure={volume: sum(0*u + 1), most: max(u)}")
	if *r.Run.Measures["volume"] != 11*8*9 || math.Abs(*r.Run.Measures["most"]-*r.Run.MaxNorm) > 1e-15 {
		t.Errorf("heat: %v, %v", *r.Run.Measures["volume"], *r.Run.Measures["most"])
	}
	for formula, says := range map[string]string{
		"u + v":            "measure.m: must be sum, mean, max, min, l2 of one formula, as sum(u)",
		"max(u, v)":        "measure.m: must be sum, mean, max, min, l2 of one formula",
		"sum(q)":           `measure.m: column 5: unknown name "q"`,
		"sum(u < v)":       "measure.m: column 7: what sum takes must be a number",
		"sum(u*t)":         "measure.m: must not depend on t, which changes",
		"sum(1)":           "measures must use a field",
		"sum(lap(lap(u)))": "measures must not read farther from a point than the equations do",
	} {
		code, _, errs := cli("run", write(t, "c.yaml", text), "--set", "measure={m: '"+formula+"'}")
		if code == 0 {
			t.Errorf("%s is taken", formula)
		}
		if !strings.Contains(errs, says) {
			t.Errorf("%s: %s", formula, errs)
		}
	}
}

// Measures of points next to a face with changing values see those of their time: what flows in is what a field gains.
func TestMeasuresAtFaces(t *testing.T) {
	const text = `solver: equation
grid: {size: [8, 8]}
fields: {u: {initial: 0, boundary: {x-: {dirichlet: 1 + 50*t}, x+: neumann, y: neumann}}}
equations: {u: lap(u)}
measure: {mass: sum(u), rate: sum(lap(u))}
stop: {time: 0.02, check_every: 1}
devices: {backend: host, count: 2}
output: {history: true}
`
	for _, dt := range []string{"1e-3", "{cfl: 0.01, speed: 1 + abs(u)}"} {
		_, r := run(t, text, "--set", "time.dt="+dt)
		last, begun := r.Run.StartMeasures, 0.0
		for _, h := range r.Run.History {
			gain := *last["rate"] * (*h.Time - begun)
			if math.Abs(*h.Measures["mass"]-*last["mass"]-gain) > 1e-9*gain {
				t.Fatalf("dt %s: at %v the mass goes from %v to %v, not by %v", dt, *h.Time, *last["mass"], *h.Measures["mass"], gain)
			}
			last, begun = h.Measures, *h.Time
		}
	}
}

// Errors are those of each field, labels have its unit, and runs whose steps change have the time of each check, with
// measures or without.
func TestTextsByField(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "v.svg")
	text := `solver: equation
grid: {size: [16, 12]}
parameters: {w: 3}
fields:
  u: {initial: 1, boundary: {x: periodic, y: periodic}}
  v: {initial: 0, boundary: {x: periodic, y: periodic}}
equations: {u: -w*v + 0*lap(u), v: w*u + 0*lap(v)}
time: {integrator: rk4, dt: 0.01}
exact: {u: cos(w*t), v: 1 + sin(w*t)}
unit: {v: m/s}
stop: {time: 1, check_every: 10, tolerance: 1e-9, field: u}
output: {picture: {v: ` + picture + `}, history: true}
devices: {backend: host, count: 3}
`
	for _, set := range [][]string{
		{"time.dt=0.01"}, {"time.dt={cfl: 0.3, speed: 1 + abs(u)}"}, {"time.dt={cfl: 0.3, speed: 1 + abs(u)}", "measure={m: max(u)}"},
	} {
		var args []string
		for _, s := range set {
			args = append(args, "--set", s)
		}
		_, r := run(t, text, args...)
		var out strings.Builder
		test.Check(t, r.Summary(&out))
		if e := r.Run.Errors; len(e) != 2 || *e["u"].Max > 1e-5 || math.Abs(*e["v"].L2-1) > 1e-5 || *r.Run.Error.Max != *e["v"].Max {
			t.Errorf("%s: errors %+v", set, e)
		}
		h := r.Run.History
		paced := h[0].DT != nil
		if last := h[len(h)-1]; *last.Time != *r.Run.Time || math.Abs(*last.Time-1) > 1e-12 || paced != (len(set[0]) > 20) || *h[0].Time >= *h[1].Time {
			t.Errorf("%s: history %+v", set, h)
		}
		if paced && (*r.Run.Time != 1 || r.Run.Stopped != results.StopTime) {
			t.Errorf("%s: %s at %v", set, r.Run.Stopped, *r.Run.Time)
		}
		if drawn := test.Must(os.ReadFile(picture))(t); !strings.Contains(string(drawn), "(m/s)") || !strings.Contains(out.String(), "error      v: max 1") {
			t.Errorf("%s: %s", set, out.String())
		}
	}
	_, r := run(t, text, "--set", "equations.u=0.001*lap(u)")
	var out strings.Builder
	if test.Check(t, r.Summary(&out)); !strings.Contains(out.String(), "largest change in a step of u at most 1e-09") {
		t.Errorf("the summary does not name the field of the tolerance: %s", out.String())
	}
}
