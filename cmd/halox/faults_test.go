//go:build linux && cgo

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/results"
)

// faultVariable says which fault a child process of halox has once there is a checkpoint: a word of spoil, the UUID of the
// second GPU, and a folder of checkpoints.
const faultVariable = "HALOX_TEST_FAULT"

// noTest takes the place of a test in a process of halox.
type noTest struct{ testing.TB }

func (noTest) Helper() {}

// spoil gives a child process of halox the fault of faultVariable. Faults of devices and links last, also in later
// children, of those that see the device.
func spoil() {
	what, rest, _ := strings.Cut(os.Getenv(faultVariable), " ")
	uuid, folder, _ := strings.Cut(rest, " ")
	if folder == "" || os.Getenv("HALOX_CHILD") == "" {
		return
	}
	saved := func() bool {
		all, _ := filepath.Glob(filepath.Join(folder, "step-*"))
		return len(all) > 0
	}
	fake := func() *cudafake.Fake { return cudafake.Inspect(noTest{}, os.Getenv("HALOX_CUDA")) }
	lose := func() { fake().Kill(1, 719) }
	if what == "trap" {
		lose = trapOn(noTest{}, uuid)
	}
	first := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	later := func() {}
	switch what {
	case "link":
		later = func() { fake().SetLink(0, 1, cudafake.LinkLying) }
	case "trap":
		first, later = lose, lose
	case "device", "driver": // a GPU that fails takes the context of its peer with it
		first, later = func() { fake().Kill(0, 719); lose() }, lose
		if what == "driver" {
			later = func() { fake().Fail("cuInit", int(cuda.CodeUnknown), 0, -1) }
		}
	case "opening":
		first = lose
	case "start":
		first = func() { fake().Fail("cuInit", int(cuda.CodeUnknown), 0, -1) }
	}
	visible := strings.Split(os.Getenv("CUDA_VISIBLE_DEVICES"), ",")
	switch {
	case visible[0] != "" && !slices.Contains(visible, uuid) && !slices.Contains(visible, "1"): // this child does not see it
	case saved():
		later()
	case what == "opening", what == "start":
		first()
	default:
		go func() {
			for !saved() {
				time.Sleep(time.Millisecond)
			}
			first()
		}()
	}
}

// trapOn returns a function that makes a GPU fail in this process, if the process sees the GPU: a kernel traps in the
// context that halox uses.
func trapOn(t testing.TB, uuid string) (fail func()) {
	driver := test.Must(cuda.Open(os.Getenv("HALOX_CUDA")))(t)
	for i := range test.Must(driver.DeviceCount())(t) {
		d := test.Must(driver.Device(i))(t)
		if test.Must(d.UUID())(t) != uuid {
			continue
		}
		c := test.Must(d.RetainPrimary(cuda.SchedBlocking))(t)
		m := test.Must(c.ModuleLoad([]byte(".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry fail()\n{\n\ttrap;\n\tret;\n}\n")))(t)
		one := cuda.Dim3{X: 1, Y: 1, Z: 1}
		l := test.Must(cuda.NewLaunch(test.Must(c.ModuleFunction(m, "fail"))(t), one, one, 0, nil))(t)
		s := test.Must(c.StreamCreate(0))(t)
		return func() {
			test.Check(t, c.Launch(l, s))
			_ = c.StreamSynchronize(s) // it fails
		}
	}
	return func() {}
}

// secondGPU returns the UUID of the second GPU, and skips the test if there is none.
func secondGPU(t *testing.T) string {
	driver, err := cuda.Open(os.Getenv("HALOX_CUDA"))
	if errors.Is(err, cuda.ErrNoDriver) {
		t.Skip("SKIPPED: ", err)
	}
	test.Check(t, err)
	defer driver.Close()
	if n := test.Must(driver.DeviceCount())(t); n < 2 {
		t.Skipf("SKIPPED: needs two GPUs, got %d", n)
	}
	return test.Must(test.Must(driver.Device(1))(t).UUID())(t)
}

// A run that loses its process or a device is started again on what is left, and ends with the bits and the output of a
// run that lost nothing. With HALOX_TEST_BACKEND=cuda, real GPUs fail.
func TestFaults(t *testing.T) {
	const text = "solver: heat\ngrid: {size: [20, 18, 16]}\ninitial: x*y + z\nexchange: {scheme: two-stream, path: staged}\n"
	real, steps := os.Getenv("HALOX_TEST_BACKEND") == "cuda", 2000
	if real {
		steps = 100_000
	}
	want := fieldAfter(t, write(t, "c.yaml", text+"devices: {backend: host, count: 1}\n"), steps)
	for _, tc := range testdevices.Some(4, []struct {
		name, fault string
		emulated    bool  // GPUs; otherwise CPU devices, or real GPUs
		left        []int // devices after each fault
		codes       []int
		checks      []string // by device, of the last fault
	}{
		{"killed", "kill", false, []int{2}, []int{-1}, nil},
		{"device", "device", true, []int{1}, []int{6}, []string{"ok", "cuCtxGetStreamPriorityRange"}},
		{"device without which the driver starts", "driver", true, []int{1}, []int{6}, []string{"ok", "cuInit"}},
		{"device that cannot be opened", "opening", true, []int{0}, []int{6}, nil},
		{"device without which the driver starts first", "start", true, []int{1}, []int{1}, []string{"ok", "cuInit"}},
		{"link", "link", true, []int{2, 1}, []int{-1, 5}, nil},
		{"real device", "trap", false, []int{1}, []int{6}, []string{"ok", "cuda 0: "}},
	}) {
		t.Run(tc.name, func(t *testing.T) {
			backend, uuid := "host", "-"
			switch {
			case real && tc.emulated || !real && tc.fault == "trap":
				t.Skip("SKIPPED: HALOX_TEST_BACKEND names another backend")
			case tc.emulated:
				t.Setenv("CUDA_VISIBLE_DEVICES", "")
				var flags []string
				if tc.fault == "start" {
					flags = []string{cudafake.MIG}
				}
				for _, v := range testdevices.Environment(t, 2, flags...) {
					name, value, _ := strings.Cut(v, "=")
					t.Setenv(name, value)
				}
				backend, uuid = "cuda", secondGPU(t)
			case real:
				backend, uuid = "cuda", secondGPU(t)
			}
			dir := t.TempDir()
			folder, record, field := filepath.Join(dir, "saved"), filepath.Join(dir, "r.json"), filepath.Join(dir, "u.npy")
			t.Setenv(faultVariable, tc.fault+" "+uuid+" "+folder)
			p := start(t, "", "", "run", write(t, "c.yaml", text+"decomposition: [1, 1, 2]\n"), "--json", "--set", "devices.backend="+backend,
				"--set", "devices.count=2", "--set", fmt.Sprint("stop.iterations=", steps), "--set", "checkpoint.folder="+folder,
				"--set", "checkpoint.every.steps=100", "--set", "faults.restarts=1", "--record", record, "--set", "output.field="+field)
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
			if !slices.Equal(left, tc.left) || !slices.Equal(codes, tc.codes) || len(r.Devices) != max(1, left[len(left)-1]) {
				t.Errorf("%+v on %d devices", r.Run.Faults, len(r.Devices))
			}
			last := r.Run.Faults[len(r.Run.Faults)-1]
			for i, says := range tc.checks {
				if found := last.Checks[fmt.Sprint("cuda ", i)]; len(last.Checks) != 2 || last.Left[0] != "cuda 0" || !strings.Contains(found, says) {
					t.Errorf("%+v", last)
				}
			}
			if from := r.Run.RestartStep; tc.fault != "opening" && tc.fault != "start" && (from == nil || *from < 100) {
				t.Errorf("restarted from step %v", from)
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
	testdevices.InTurn(t, 1, 4)
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
			if n := strings.Count(r.Out, "use a loop as in docs/how-to/run-for-days.md"); n != 1 {
				t.Errorf("job %d: %d warnings:\n%s", job, n, r.Out)
			}
			if lost := r.Err != nil; lost != (job == 1) || job > 0 && !strings.Contains(r.Out, "continuing from step 500") {
				t.Fatalf("job %d: %v:\n%s", job, r.Err, r.Out)
			}
		}
		if !bytes.Equal(content(t, field), want) {
			t.Error("other bits")
		}
	})
}
