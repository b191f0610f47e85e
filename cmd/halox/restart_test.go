//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/internal/vtk"
	"github.com/halox/halox/results"
)

// resumable are configs of all kinds of state that a checkpoint has, with the names of their fields.
var resumable = []struct {
	name, text string
	fields     []string
}{
	{"walls in time", `solver: heat
grid: {size: [13, 11, 12]}
boundary: {x-: {dirichlet: "t + y"}, x+: {neumann: "sin(9*t)"}, y: periodic, z+: {robin: {h: 2, ambient: t}}}
initial: x*y + z
`, []string{""}},
	{"laplace", "solver: laplace\ngrid: {size: [31, 30]}\nboundary: {x-: {dirichlet: \"y*(1-y)\"}}\nprecision: float32\n", []string{""}},
	{"one dimension", "solver: heat\ngrid: {size: [200]}\ninitial: \"x < 0.5 ? 1 : 0\"\nboundary: {x: neumann}\n", []string{""}},
	{"wave", `solver: equation
grid: {size: [24, 20], end: [1, 1]}
fields: {u: {initial: "sin(3*x)*y", rate: "x", boundary: {x: {dirichlet: 0}, y: neumann}}}
accelerations: {u: lap(u) + 0.1*noise(3)}
time: {dt: auto}
`, []string{"u"}},
	{"two levels", `solver: equation
grid: {size: [24, 20], end: [1, 1]}
fields:
  u: {initial: "x", previous: "y", boundary: {x: periodic, y: periodic}}
  w: {initial: 0, boundary: {x: periodic, y: periodic}}
update: {u: "0.25*(at(u,1,0) + at(u,-1,0)) + 0.5*previous(u)", w: "w + u + 0.01*t"}
`, []string{"u", "w"}},
	{"stored and constant", `solver: equation
grid: {size: [24, 20], end: [1, 1]}
parameters: {D: 1e-3}
constants: {q: "1 + x"}
fields:
  c: {initial: "noise(1)", boundary: {x: periodic, y: periodic}}
define: {mu: "c^3 - c - D*lap(c)"}
equations: {c: "1e-3*div(q, mu)"}
time: {integrator: ssprk3, dt: 1e-3, force: true}
measure: {mass: sum(c)}
`, []string{"c"}},
	{"lengths of steps that vary", `solver: equation
grid: {size: [30, 20]}
fields: {u: {initial: "1 + 0.5*sin(2*pi*x)", boundary: {x: periodic, y: {dirichlet: "1 + t"}}}}
equations: {u: "-upwind(u, 0, u) + sin(t)"}
time: {dt: {cfl: 0.4, speed: abs(u)}}
`, []string{"u"}},
}

// whole runs a config to a step and returns its fields and its record.
func whole(t *testing.T, text string, fields []string, args ...string) (values [][]byte, record *results.Record) {
	t.Helper()
	dir := t.TempDir()
	backend, _ := tested(t)
	args = append([]string{"run", write(t, "c.yaml", text), "-q", "--history", "--record", filepath.Join(dir, "r.json"),
		"--set", "devices.backend=" + string(backend), "--set", "stop.check_every=4"}, args...)
	for _, f := range fields {
		args = append(args, "--set", strings.TrimSuffix("output.field."+f, ".")+"="+filepath.Join(dir, f+".npy"))
	}
	if code, _, stderr := cli(args...); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr)
	}
	for _, f := range fields {
		values = append(values, content(t, filepath.Join(dir, f+".npy")))
	}
	return values, test.Must(results.Read(filepath.Join(dir, "r.json")))(t)
}

// A run that is continued from a checkpoint, on other devices and by another scheme, ends with the bits and the history
// of one that was not interrupted.
func TestRestart(t *testing.T) {
	_, devices := tested(t)
	for i, c := range resumable {
		t.Run(c.name, func(t *testing.T) {
			want, unbroken := whole(t, c.text, c.fields, "--set", "stop.iterations=41")
			folder := "checkpoint.folder=" + filepath.Join(t.TempDir(), "saved")
			schemes := []string{"baseline", "fused", "two-stream", "assisted", "auto"}
			for part, steps := range []int{7, 20, 41, 41} {
				got, r := whole(t, c.text, c.fields, "--restart", "--set", folder, "--set", "checkpoint.every.steps=6",
					"--set", fmt.Sprint("stop.iterations=", steps), "--set", fmt.Sprint("devices.count=", 1+(part+i)%devices),
					"--set", "exchange.scheme="+schemes[(part+i)%len(schemes)])
				if from := r.Run.RestartStep; part == 0 && from != nil || part > 0 && *from != []int64{0, 7, 20, 41}[part] {
					t.Errorf("part %d continues from %v", part, from)
				}
				if *r.Run.Checkpoints.Step != int64(steps) || steps == 41 && !reflect.DeepEqual(got, want) {
					t.Errorf("part %d: other bits, or a last checkpoint at step %d", part, *r.Run.Checkpoints.Step)
				}
				if steps < 41 || part == 3 {
					continue
				}
				if h := r.Run.History; !reflect.DeepEqual(h, unbroken.Run.History) {
					t.Errorf("history %+v\nnot %+v", h, unbroken.Run.History)
				}
			}
		})
	}
}

// A later stop.time does not change the length of steps.
func TestRestartToALaterTime(t *testing.T) {
	for i, c := range []struct{ text, field string }{
		{"solver: heat\ngrid: {size: [12, 11]}\ninitial: x\n", ""},
		{"solver: equation\ngrid: {size: [12, 11]}\nfields: {u: {initial: x, boundary: {x: neumann, y: neumann}}}\n" +
			"equations: {u: 0.1*lap(u)}\n", "u"},
		{resumable[len(resumable)-1].text, "u"},
	} {
		saved := "checkpoint.folder=" + filepath.Join(t.TempDir(), "saved")
		want, one := whole(t, c.text, []string{c.field}, "--set", "stop.time=0.32")
		whole(t, c.text, []string{c.field}, "--set", "stop.time=0.16", "--set", saved)
		got, two := whole(t, c.text, []string{c.field}, "--set", "stop.time=0.32", "--set", saved, "--restart")
		if two.Run.Iterations < one.Run.Iterations || *two.Run.Time != *one.Run.Time {
			t.Errorf("%s: %d steps to %v, not %d to %v", c.text, two.Run.Iterations, *two.Run.Time, one.Run.Iterations, *one.Run.Time)
		}
		if i < 2 && *two.Run.DT == *one.Run.DT && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: other bits", c.text)
		}
	}
}

// Only what may change between the parts of a run is taken.
func TestRestartRejects(t *testing.T) {
	text := resumable[0].text + "devices: {backend: host}\nstop: {iterations: 5}\n"
	folder := filepath.Join(t.TempDir(), "saved")
	saved := "checkpoint.folder=" + folder
	whole(t, resumable[0].text, nil, "--set", saved, "--set", "stop.iterations=5")
	for _, c := range []struct {
		args []string
		code command.Code
		says string
	}{
		{[]string{"--restart", "--set", saved, "--set", "initial=2*x", "--set", "grid.size=[13,11,13]"}, command.Config,
			"grid.size, grid.spacing, heat.dt, initial: must be as in the checkpoint: only stop, output, "},
		{[]string{"--restart"}, command.Usage, "--restart: must name a folder, or the config must have checkpoint.folder"},
		{[]string{"--restart", filepath.Join(folder, "none")}, command.Config, "there is no complete checkpoint"},
		{[]string{"--restart=" + t.TempDir()}, command.Config, "there is no complete checkpoint"},
		{[]string{"--set", saved}, command.Config, "checkpoints of another run"},
		{[]string{"--set", "checkpoint.folder=" + write(t, "file", "") + "/saved"}, command.Config, "/saved: mkdir "},
		{[]string{"--restart", folder, "--set", "devices.count=2", "--set", "stop.iterations=9"}, 0, "continuing from step 5"},
		{[]string{"--restart", folder, "--set", "stop.iterations=3"}, 0, "stop.iterations: must be more than 5 to run further steps, got 3"},
	} {
		args := append([]string{"run", write(t, "c.yaml", text)}, c.args...)
		if code, _, stderr := cli(args...); code != int(c.code) || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit code %d: %s", c.args, code, stderr)
		}
	}
	// a damaged checkpoint is named, and the one before is taken
	whole(t, resumable[0].text, nil, "--set", saved, "--restart", "--set", "stop.iterations=11")
	name := filepath.Join(folder, "step-000000000011", "u", "c", "0", "0", "0")
	data := content(t, name)
	data[len(data)/2] ^= 1
	test.Check(t, os.WriteFile(name, data, 0o644))
	code, _, stderr := cli("run", write(t, "c.yaml", text), "--restart", folder)
	if code != 0 || !strings.Contains(stderr, filepath.Join("u", "c", "0", "0", "0")) || !strings.Contains(stderr, "from step 5") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// SIGUSR1 requests a checkpoint, and SIGTERM and stop.wall_time end a run with one.
func TestCheckpointsOnRequest(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "saved")
	args := []string{"run", write(t, "c.yaml", small), "--restart", "--set", "checkpoint.folder=" + folder,
		"--set", "checkpoint.keep=100", "--set", "stop.iterations=1000000000", "--set", "exact=null"}
	steps := func() (all []int64) {
		entries, _ := checkpoint.List(folder)
		for _, e := range entries {
			if e.Err == nil {
				all = append(all, e.Step)
			}
		}
		return all
	}
	for round := range 3 {
		before := len(steps())
		p := start(t, "", "scheme.(*Runner).RunEvents(", args...)
		p.listens(t)
		if round == 0 {
			test.Check(t, p.cmd.Process.Signal(syscall.SIGUSR1))
			await(t, func() bool { return len(steps()) > 0 })
			before++
		}
		p.stopped(t, syscall.SIGTERM)
		if n := len(steps()); n != before+1 {
			t.Fatalf("%d checkpoints after round %d, not %d:\n%s", n, round, before+1, &p.out)
		}
	}
	_, r := run(t, small, slices.Concat(args[2:], []string{"--set", "stop.wall_time=50ms"})...)
	if *r.Run.Checkpoints.Step != int64(r.Run.Iterations) || steps()[0] != int64(r.Run.Iterations) {
		t.Errorf("at the wall time: %+v, steps %v", r.Run.Checkpoints, steps())
	}
	before := len(steps())
	p := start(t, "", "", slices.Concat(args, []string{"--set", "checkpoint.every.minutes=0.001"})...)
	await(t, func() bool { return len(steps()) >= before+3 })
	p.stopped(t, syscall.SIGTERM)
	p = start(t, "", "", slices.Concat(args, []string{"--set", "stop.wall_time=50ms", "--set", "checkpoint.grace=1ns"})...)
	<-p.ended // with the checkpoint that it has given up
	if code := p.cmd.ProcessState.ExitCode(); code != int(command.NotSaved) || !strings.Contains(p.out.String(), "was not written within 1ns") {
		t.Errorf("exit code %d: %s", code, &p.out)
	}
}

// Runs of several processes continue on another number of them, with the outputs of an unbroken run.
func TestRestartOfProcesses(t *testing.T) {
	testdevices.InTurn(t, 1, 2)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		c, dir := resumable[3], t.TempDir()
		c.text += "output: {probes: [{at: [0.5, 0.5], every: 2, file: " + filepath.Join(dir, "p.csv") + "}], series: [{every: 4, folder: " + dir + "}]}\n"
		want, _ := whole(t, c.text, c.fields, "--set", "stop.iterations=41")
		probes, config := content(t, filepath.Join(dir, "p.csv")), write(t, "c.yaml", c.text)
		for part, ranks := range []int{2, 1, 3} {
			launchHalox(t, in, ranks, nil, "run", config, "--restart", "--set", "checkpoint.folder="+filepath.Join(dir, "saved"),
				"--set", "checkpoint.every.steps=6", "--set", fmt.Sprint("stop.iterations=", []int{8, 22, 41}[part]),
				"--set", "devices.backend=host", "--set", "output.field.u="+filepath.Join(dir, "u.npy")).Succeeds(t)
		}
		if !bytes.Equal(content(t, filepath.Join(dir, "u.npy")), want[0]) || !bytes.Equal(content(t, filepath.Join(dir, "p.csv")), probes) {
			t.Error("other bits")
		}
		series := test.Must(filepath.Glob(filepath.Join(dir, "*.pvd")))(t)[0]
		frames := test.Must(vtk.ReadCollection(series))(t)
		for _, f := range frames {
			test.Must(vtk.Open(filepath.Join(dir, f.File)))(t)
		}
		if len(frames) != 11 {
			t.Errorf("%s has %d frames: %v", series, len(frames), frames)
		}
	})
}
