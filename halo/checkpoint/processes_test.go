//go:build linux

package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

const testLimit = 5 * time.Minute

func TestMain(m *testing.M) {
	testmpi.Main(m, map[string]func() error{
		"other":    inProcesses(testLimit, otherOwners),
		"one full": inProcesses(testLimit, oneFull),
		"apart":    inProcesses(testLimit, apart),
		"dies":     inProcesses(testmpi.Limit(), dies),
		"killed":   inProcesses(testmpi.Limit(), untilKilled),
		"alone":    func() error { return run(mpi.Alone(), untilKilled) },
	})
}

// Variables of programs.
const (
	folderVariable = "HALOX_TEST_FOLDER"
	seedVariable   = "HALOX_TEST_ROUND"
)

// job is one process of a program, with two devices.
type job struct {
	*mpi.Processes
	devices []*streams.Device
	folder  string
	seed    uint64 // the same in all processes
}

func inProcesses(limit time.Duration, program func(job)) func() error {
	return testmpi.AsOne(mpi.Options{Limit: limit, Piece: 1000}, func(p *mpi.Processes) error { return run(p, program) })
}

// run runs a program up to the first failure.
func run(p *mpi.Processes, program func(job)) (err error) {
	seed, _ := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	platform, err := testdevices.Launched(2)
	if err != nil {
		return err
	}
	devices, err := platform.Open()
	if err != nil {
		return err
	}
	defer func() {
		if f, failed := recover().(failure); failed {
			err = f.error
		}
	}()
	program(job{p, devices, os.Getenv(folderVariable), seed})
	return errors.Join(streams.CloseAll(devices), platform.Close())
}

// failure is the panic value that ends a program.
type failure struct{ error }

// here replaces the test in programs.
var here test.TB = programTB{}

type programTB struct{}

func (programTB) Helper()           {}
func (programTB) Error(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }
func (programTB) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }

// arrays makes fields on a decomposition whose subdomains belong to the processes in turn, from a first one.
func (j job) arrays(size []int, parts domain.Vec, first int, specs ...halo.Spec) (all []checkpoint.Array) {
	cut := test.Must(domain.Decompose(test.Must(domain.NewGrid(size, nil))(here), parts))(here)
	owners, devices := make([]int, len(cut.Subdomains)), make([]*streams.Device, len(cut.Subdomains))
	for rank := range owners {
		if owners[rank] = (rank + first) % j.Size(); owners[rank] == j.Rank {
			devices[rank] = j.devices[rank/j.Size()%len(j.devices)]
		}
	}
	place := test.Must(halo.PlaceShared(j.Processes, cut, owners, devices))(here)
	for _, s := range specs {
		all = append(all, checkpoint.Array{Name: s.Name + "@-1", Field: test.Must(halo.NewField(place, s))(here)})
	}
	return all
}

// write fills the arrays, and writes a checkpoint of a step.
func (j job) write(w *checkpoint.Writer, step int64, arrays []checkpoint.Array) {
	for _, a := range arrays {
		fill(here, a, step)
	}
	test.Check(here, w.Write(context.Background(), step, attributesOf(step), arrays...), w.Wait(context.Background()))
}

// otherOwners writes and reads checkpoints, with shards that several processes have parts of.
func otherOwners(j job) {
	ctx, n := context.Background(), j.Size()
	arrays := j.arrays([]int{17, 19, 23}, domain.Vec{2, 1, n + 1}, 0, specs(3)...)
	o := checkpoint.Small(checkpoint.Options{Folder: j.folder, Compress: checkpoint.Zstd})
	w := test.Must(checkpoint.NewWriter(ctx, o, arrays...))(here)
	j.write(w, 1, arrays)
	j.write(w, 2, arrays)
	if s := w.Status(); s.Step != 2 || s.Err != nil || s.Written != 2 {
		here.Fatal(fmt.Sprintf("status %+v", s))
	}
	test.Check(here, w.Close(ctx))
	c, rejected, err := checkpoint.Find(ctx, j.Processes, j.folder)
	if test.Check(here, err); c.Step != 2 || len(rejected) > 0 {
		here.Fatal("found", c.Step, rejected)
	}
	for _, a := range j.arrays([]int{17, 19, 23}, domain.Vec{1, n, 2}, 1, specs(3)...) {
		test.Check(here, c.Read(ctx, a.Name, a.Field))
		compare(here, a, 2)
	}
	// a field that does not fit on one process is an error on all
	wrong := specs(3)[0]
	if err := c.Read(ctx, "p@-1", j.arrays([]int{17, 19, 23}, domain.Vec{1, 1, n}, 0, wrong)[0].Field); err == nil {
		here.Fatal("read into another element: got no error")
	}
	_, _, err = checkpoint.Find(ctx, j.Processes, filepath.Join(j.folder, "nowhere"))
	test.Is(here, err, checkpoint.ErrNone)
}

// oneFull lets the last process write small files only for a while. All processes learn of it.
func oneFull(j job) {
	ctx, last := context.Background(), j.Size()-1
	signal.Ignore(syscall.SIGXFSZ)
	limit := func(bytes uint64) {
		if j.Rank == last {
			test.Check(here, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: 1 << 40}))
		}
	}
	arrays := j.arrays([]int{17, 19, 23}, domain.Vec{1, 1, j.Size()}, 0, specs(3)...)
	w := test.Must(checkpoint.NewWriter(ctx, checkpoint.Small(checkpoint.Options{Folder: j.folder}), arrays...))(here)
	j.write(w, 1, arrays)
	limit(1000)
	for step := int64(2); step <= 3; step++ {
		j.write(w, step, arrays)
		s := w.Status()
		if s.Step != 1 || s.Failed != int(step-1) {
			here.Fatal(fmt.Sprintf("status %+v", s))
		}
		test.Says(here, s.Err, fmt.Sprintf("checkpoint of step %d: rank %d on host ", step, last))
		test.Says(here, s.Err, "file too large")
	}
	limit(1 << 40)
	j.write(w, 4, arrays)
	if s := w.Status(); s.Step != 4 || s.Err != nil {
		here.Fatal(fmt.Sprintf("status %+v", s))
	}
	test.Check(here, w.Close(ctx))
}

// apart gives each process a folder of its own under the same name. It is an error on all that names the reason.
func apart(j job) {
	ctx := context.Background()
	test.Check(here, os.Chdir(test.Must(os.MkdirTemp(j.folder, "*"))(here)))
	arrays := j.arrays([]int{17, 19, 23}, domain.Vec{1, 1, j.Size()}, 0, specs(3)...)
	w := test.Must(checkpoint.NewWriter(ctx, checkpoint.Small(checkpoint.Options{Folder: "own"}), arrays...))(here)
	j.write(w, 1, arrays)
	test.Says(here, w.Status().Err, "no such file or directory: the folder must be on a file system that all processes share")
	test.Check(here, w.Close(ctx))
	if left, err := filepath.Glob("own/.step-*"); err != nil || len(left) > 0 {
		here.Fatal("left", left, err)
	}
}

// dies ends the last process while a checkpoint is written. The others, whose steps wait for it, end too.
func dies(j job) {
	ctx := context.Background()
	arrays := j.arrays([]int{17, 19, 23}, domain.Vec{1, 1, j.Size()}, 0, specs(3)...)
	var step int64
	o := checkpoint.At(checkpoint.Small(checkpoint.Options{Folder: j.folder}), func(point string) {
		if j.Rank == j.Size()-1 && step == 2 && point == "begun" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	w := test.Must(checkpoint.NewWriter(ctx, o, arrays...))(here)
	for step = 1; step <= 2; step++ {
		j.write(w, step, arrays)
		if s := w.Status(); s.Err != nil {
			here.Fatal(s.Err)
		}
	}
}

// untilKilled continues from the newest checkpoint, and writes one after another until a process is killed, at a random
// time after the first one.
func untilKilled(j job) {
	ctx := context.Background()
	random := rand.New(rand.NewPCG(j.seed, 1))
	victim, after := random.IntN(j.Size()), time.Duration(random.Int64N(int64(60*time.Millisecond)))
	parts := []domain.Vec{{1, 1, 4}, {2, 2, 1}, {1, 3, 1}, {3, 1, 2}}[j.seed%4]
	arrays := j.arrays([]int{17, 9, 11}, parts, 0, specs(3)[:3]...)
	run, step := "", int64(0)
	c, _, err := checkpoint.Find(ctx, j.Processes, j.folder)
	switch {
	case err == nil:
		run, step = c.Run, c.Step
		for _, a := range arrays {
			test.Check(here, c.Read(ctx, a.Name, a.Field))
			compare(here, a, step)
		}
	case !errors.Is(err, checkpoint.ErrNone):
		here.Fatal(err)
	}
	var armed atomic.Bool
	o := checkpoint.Options{Folder: j.folder, Run: run, Report: func(s checkpoint.Status) {
		if j.Rank == 0 {
			fmt.Println("whole", s.Step)
		}
		if j.Rank == victim && !armed.Swap(true) {
			time.AfterFunc(after, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
		}
	}}
	w := test.Must(checkpoint.NewWriter(ctx, checkpoint.Small(o), arrays...))(here)
	for {
		step++
		j.write(w, step, arrays)
		if s := w.Status(); s.Err != nil {
			here.Fatal(s.Err)
		}
	}
}

// isWhole fails the test unless the newest checkpoint is the last that was reported, or the one after it, and right.
func isWhole(t *testing.T, folder, output string, at int64) int64 {
	t.Helper()
	last := int64(0)
	for line := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "whole "); ok {
			last = test.Must(strconv.ParseInt(text, 10, 64))(t)
		}
	}
	c, rejected, err := checkpoint.Find(t.Context(), nil, folder)
	test.Check(t, err)
	if c.Step < last || c.Step > last+1 || last <= at || len(rejected) > 0 {
		t.Fatalf("found step %d, %d was whole, began after %d; rejected %v", c.Step, last, at, rejected)
	}
	for _, a := range arraysOf(t, onDevices(t, testdevices.Host(t, 1).Devices, []int{17, 9, 11}, domain.Vec{1, 1, 1}), specs(3)[:3]...) {
		test.Check(t, c.Read(t.Context(), a.Name, a.Field))
		compare(t, a, c.Step)
	}
	return c.Step
}

// rounds returns how often a process is killed.
func rounds(n int) int {
	if testdevices.Long() {
		return 10 * n
	}
	return n
}

// A process that is killed at any time leaves the newest whole checkpoint, and the next one removes the rest.
func TestKilled(t *testing.T) {
	folder, at := t.TempDir(), int64(0)
	for round := range rounds(25) {
		var output bytes.Buffer
		c := exec.Command(test.Must(os.Executable())(t))
		c.Env = append(os.Environ(), "HALOX_TEST_PROGRAM=alone", folderVariable+"="+folder,
			fmt.Sprintf("%s=%d", seedVariable, round+1000*testdevices.Seed()))
		c.Stdout, c.Stderr = &output, &output
		if err := c.Run(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("round %d: %v\n%s", round, err, &output)
		}
		at = isWhole(t, folder, output.String(), at)
		if left := names(t, folder); len(left) > 4 { // two, one more before the older is removed, and a temporary one
			t.Errorf("round %d: left %q", round, left)
		}
	}
}

func TestProcesses(t *testing.T) {
	testdevices.InTurn(t, 2, 4)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, ranks := range testdevices.Some(1, []int{2, 3}) {
			t.Run(fmt.Sprintf("other/%d", ranks), func(t *testing.T) {
				folder := t.TempDir()
				in.Done(t, testmpi.Job{Program: "other", Ranks: ranks, Env: []string{folderVariable + "=" + folder}})
				c := finds(t, folder, 2) // by one process
				for _, a := range arraysOf(t, onDevices(t, testdevices.Host(t, 3).Devices, []int{17, 19, 23}, domain.Vec{3, 1, 1}), specs(3)...) {
					test.Check(t, c.Read(t.Context(), a.Name, a.Field))
					compare(t, a, 2)
				}
			})
			t.Run(fmt.Sprintf("one full/%d", ranks), func(t *testing.T) {
				folder := t.TempDir()
				in.Done(t, testmpi.Job{Program: "one full", Ranks: ranks, Env: []string{folderVariable + "=" + folder}})
				if got := names(t, folder); len(got) != 2 {
					t.Errorf("left %q", got)
				}
			})
			t.Run(fmt.Sprintf("apart/%d", ranks), func(t *testing.T) {
				in.Done(t, testmpi.Job{Program: "apart", Ranks: ranks, Env: []string{folderVariable + "=" + t.TempDir()}})
			})
			t.Run(fmt.Sprintf("dies/%d", ranks), func(t *testing.T) {
				folder := t.TempDir()
				in.Fails(t, testmpi.Job{Program: "dies", Ranks: ranks, Env: []string{folderVariable + "=" + folder}})
				finds(t, folder, 1)
			})
		}
		t.Run("other on GPUs", func(t *testing.T) {
			gpus := append(testdevices.Environment(t, 2), folderVariable+"="+t.TempDir())
			in.Done(t, testmpi.Job{Program: "other", Ranks: 2, Env: gpus})
		})
		t.Run("killed", func(t *testing.T) {
			folder, at := t.TempDir(), int64(0)
			for round := range rounds(3) {
				result := in.Run(t, testmpi.Job{Program: "killed", Ranks: 2, Env: []string{folderVariable + "=" + folder,
					fmt.Sprintf("%s=%d", seedVariable, round+1000*testdevices.Seed())}})
				if result.Err == nil || result.Late {
					t.Fatalf("round %d: %+v", round, result)
				}
				at = isWhole(t, folder, result.Out, at)
			}
		})
	})
}

// mayMount reports whether the test may mount file systems. If only a user of a new name space may, that runs the test.
func mayMount(t *testing.T) bool {
	t.Helper()
	const variable = "HALOX_TEST_MOUNTS"
	dir := t.TempDir()
	err := syscall.Mount("none", dir, "tmpfs", 0, "")
	if err == nil {
		test.Check(t, syscall.Unmount(dir, 0))
		return true
	}
	if os.Getenv(variable) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), variable+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
		out, failed := cmd.CombinedOutput()
		if t.Logf("%s", out); failed == nil && bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
			return false
		}
		if bytes.Contains(out, []byte("--- FAIL")) {
			t.Fatal(failed)
		}
	}
	t.Skip("SKIPPED: no file system can be mounted: ", err)
	return false
}

// A disk that is full or read-only does not end a run.
func TestFullDisk(t *testing.T) {
	if !mayMount(t) {
		return
	}
	u, ctx, disk := small(t), t.Context(), t.TempDir()
	test.Check(t, syscall.Mount("none", disk, "tmpfs", 0, "size=64k"))
	defer func() { test.Report(t, syscall.Unmount(disk, 0)) }()
	o := checkpoint.Options{Folder: filepath.Join(disk, "checkpoints"), Compress: checkpoint.None}
	w := test.Must(checkpoint.NewWriter(ctx, checkpoint.Small(o), u))(t)
	for step, tc := range []struct {
		options  string
		readOnly bool
		says     string
	}{
		{"size=64k", false, ""},
		{"size=64k", false, "no space left on device"}, // for two
		{"size=64k", false, "no space left on device"},
		{"size=1m", true, "read-only file system"},
		{"size=1m", false, ""},
	} {
		step := int64(step + 1)
		test.Check(t, syscall.Mount("none", disk, "tmpfs", syscall.MS_REMOUNT, tc.options))
		fill(t, u, step)
		if tc.readOnly { // a mount of its own: files that are open for writing keep the disk from it
			const again = syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY
			test.Check(t, syscall.Mount(disk, disk, "", syscall.MS_BIND, ""), syscall.Mount("", disk, "", again, ""))
		}
		test.Check(t, w.Write(ctx, step, attributesOf(step), u), w.Wait(ctx))
		if tc.readOnly {
			test.Check(t, syscall.Unmount(disk, 0))
		}
		s := w.Status()
		if tc.says != "" {
			test.Says(t, s.Err, tc.says)
			finds(t, o.Folder, 1)
		} else if s.Err != nil || s.Step != step {
			t.Errorf("status %+v", s)
		}
		if left, want := names(t, o.Folder), s.Written; len(left) != want {
			t.Errorf("step %d: left %q, want %d", step, left, want)
		}
	}
	test.Check(t, w.Close(ctx), finds(t, o.Folder, 5).Read(ctx, u.Name, u.Field))
	compare(t, u, 5)
	o.Folder = filepath.Join(disk, "checkpoints", ".halox-lock", "new")
	test.Says(t, test.ErrorOf(checkpoint.NewWriter(ctx, o, u)), "checkpoint: folder "+o.Folder+": ")
}
