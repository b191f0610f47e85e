//go:build linux && cgo

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/results"
)

// faultVariable says which fault a child process of halox has once there is a checkpoint: a word of spoil and a folder of
// checkpoints.
const faultVariable = "HALOX_TEST_FAULT"

// noTest takes the place of a test in a process of halox.
type noTest struct{ testing.TB }

func (noTest) Helper() {}

// spoil gives a child process of halox the fault of faultVariable. Faults of devices and links last, also in later
// children.
func spoil() {
	what, folder, _ := strings.Cut(os.Getenv(faultVariable), " ")
	if folder == "" || os.Getenv("HALOX_CHILD") == "" {
		return
	}
	saved := func() bool {
		all, _ := filepath.Glob(filepath.Join(folder, "step-*"))
		return len(all) > 0
	}
	fake := func() *cudafake.Fake { return cudafake.Inspect(noTest{}, os.Getenv("HALOX_CUDA")) }
	if again := saved(); again && what == "link" {
		fake().SetLink(0, 1, cudafake.LinkLying)
		return
	} else if again && what != "device" {
		return
	}
	go func() {
		for !saved() {
			time.Sleep(time.Millisecond)
		}
		if what == "device" {
			fake().Kill(1, 719)
			return
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
}

// A run that loses its process or a device is started again on what is left, and ends with the bits and the output of a
// run that lost nothing.
func TestFaults(t *testing.T) {
	const text = "solver: heat\ngrid: {size: [20, 18, 16]}\ninitial: x*y + z\nstop: {iterations: 2000}\n" +
		"exchange: {scheme: two-stream, path: staged}\n"
	want := fieldAfter(t, write(t, "c.yaml", text+"devices: {backend: host, count: 1}\n"), 2000)
	for _, tc := range []struct {
		name, fault, backend string
		left                 []int // devices after each fault
		codes                []int
	}{
		{"killed", "kill", "host", []int{2}, []int{-1}},
		{"device", "device", "cuda", []int{1}, []int{6}},
		{"link", "link", "cuda", []int{2, 1}, []int{-1, 5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.backend == "cuda" {
				for _, v := range testdevices.Environment(t, 2) {
					name, value, _ := strings.Cut(v, "=")
					t.Setenv(name, value)
				}
			}
			dir := t.TempDir()
			folder, record, field := filepath.Join(dir, "saved"), filepath.Join(dir, "r.json"), filepath.Join(dir, "u.npy")
			t.Setenv(faultVariable, tc.fault+" "+folder)
			p := start(t, "", "", "run", write(t, "c.yaml", text+"decomposition: [1, 1, 2]\n"), "--json", "--set", "devices.backend="+tc.backend,
				"--set", "checkpoint.folder="+folder, "--set", "checkpoint.every.steps=100", "--set", "faults.restarts=1",
				"--record", record, "--set", "output.field="+field)
			<-p.ended
			if code := p.cmd.ProcessState.ExitCode(); code != 0 {
				t.Fatalf("exit code %d:\n%s", code, &p.out)
			}
			if !bytes.Equal(content(t, field), want) {
				t.Error("other bits")
			}
			r := test.Must(results.Read(record))(t)
			var left, codes []int
			for _, f := range r.Run.Faults {
				left, codes = append(left, len(f.Left)), append(codes, f.Code)
			}
			if !slices.Equal(left, tc.left) || !slices.Equal(codes, tc.codes) || len(r.Devices) != left[len(left)-1] || *r.Run.RestartStep < 100 {
				t.Errorf("%+v on %d devices", r.Run.Faults, len(r.Devices))
			}
			if i := strings.Index(p.out.String(), "{\n"); i < 0 || !json.Valid([]byte(p.out.String()[i:])) {
				t.Errorf("the output must have one record:\n%s", &p.out)
			}
		})
	}
}

// A solution that really diverges does so twice.
func TestFaultsOfTheProblem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	p := start(t, "", "", "run", write(t, "c.yaml", "solver: heat\ngrid: {size: [20, 20]}\ninitial: x*y\nheat: {dt: 0.01, force: true}\n"),
		"--set", "stop.iterations=100000", "--set", "devices.backend=host", "--set", "faults.restarts=5", "--set", "checkpoint.every.steps=1000",
		"--set", "checkpoint.folder="+filepath.Join(t.TempDir(), "saved"), "--record", file)
	<-p.ended
	r := test.Must(results.Read(file))(t)
	if code := p.cmd.ProcessState.ExitCode(); code != int(command.Diverged) || len(r.Run.Faults) != 1 || r.Run.Stopped != results.StopDiverged ||
		!strings.Contains(p.out.String(), "it diverged before a restart too") {
		t.Errorf("exit code %d, %+v:\n%s", code, r.Run.Faults, &p.out)
	}
}

// SIGTERM ends a child as it would end the run: with outputs and a last checkpoint, and without a restart.
func TestFaultsAndSignals(t *testing.T) {
	dir := t.TempDir()
	record, field := filepath.Join(dir, "r.json"), filepath.Join(dir, "u.npy")
	p := start(t, "", "scheme.(*Runner).RunEvents(", "run", write(t, "c.yaml", small), "--set", "stop.iterations=1000000000", "--set", "exact=null",
		"--set", "faults.restarts=3", "--set", "checkpoint.folder="+filepath.Join(dir, "saved"), "--record", record, "--set", "output.field="+field)
	p.listens(t)
	p.stopped(t, syscall.SIGTERM)
	r := test.Must(results.Read(record))(t)
	if r.Run.Stopped != results.StopInterrupted || *r.Run.Checkpoints.Step != int64(r.Run.Iterations) || len(content(t, field)) == 0 ||
		!strings.Contains(p.out.String(), "wrote "+field) {
		t.Errorf("%+v:\n%s", r.Run, &p.out)
	}
}

// Under a launcher a job ends when one of its processes is killed, and the next job continues from its checkpoint.
func TestFaultsUnderALauncher(t *testing.T) {
	config := write(t, "c.yaml", small)
	want := fieldAfter(t, config, 3000)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		dir := t.TempDir()
		folder, field := filepath.Join(dir, "saved"), filepath.Join(dir, "u.npy")
		for job, steps := range []int{500, 1_000_000_000, 3000} {
			var env []string
			if job == 1 {
				env = []string{killVariable + "=" + filepath.Join(dir, "kill")}
			}
			r := launchHalox(t, in, 2, env, "run", config, "--restart", "--set", "exact=null", "--set", "faults.restarts=3",
				"--set", "checkpoint.folder="+folder, "--set", fmt.Sprint("stop.iterations=", steps), "--set", "output.field="+field)
			if lost := r.Err != nil; lost != (job == 1) || job > 0 && !strings.Contains(r.Out, "continuing from step 500") {
				t.Fatalf("job %d: %v:\n%s", job, r.Err, r.Out)
			}
		}
		if !bytes.Equal(content(t, field), want) {
			t.Error("other bits")
		}
	})
}
