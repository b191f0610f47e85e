//go:build unix

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/streams"
)

// momentVariable has the moment at which a process of halox is killed, as JSON.
const momentVariable = "HALOX_TEST_MOMENT"

// moment is when a process that writes checkpoints is killed, by SIGKILL.
type moment struct {
	Rank     string        // of the process; "" without a launcher
	Launcher bool          // not the process, but its launcher
	Folder   string        // of checkpoints
	After    string        // not before there is a newer checkpoint than this one, so that the run gets on
	Within   string        // then, not before a file below Folder matches this pattern
	Delay    time.Duration // after that
	Mark     string        // a file that is made then
}

// dieAtMoment kills this process, or its launcher, at the moment of the environment.
func dieAtMoment() {
	var m moment
	err := json.Unmarshal([]byte(os.Getenv(momentVariable)), &m)
	os.Unsetenv(momentVariable)
	if err != nil || m.Rank != rankOfLauncher() {
		return
	}
	go func() {
		for newestIn(m.Folder) <= m.After {
			time.Sleep(time.Millisecond)
		}
		for found, _ := filepath.Glob(filepath.Join(m.Folder, m.Within)); len(found) == 0; {
			time.Sleep(100 * time.Microsecond)
			found, _ = filepath.Glob(filepath.Join(m.Folder, m.Within))
		}
		time.Sleep(m.Delay)
		_ = os.WriteFile(m.Mark, nil, 0o600)
		pid := os.Getpid()
		if m.Launcher {
			pid = os.Getppid()
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}()
}

// rankOfLauncher returns the rank that a launcher has given to this process, "" without one.
func rankOfLauncher() string { return cmp.Or(os.Getenv("PMI_RANK"), os.Getenv("OMPI_COMM_WORLD_RANK")) }

// newestIn returns the newest whole checkpoint in a folder, "" if there is none.
func newestIn(folder string) string {
	all, _ := filepath.Glob(filepath.Join(folder, "step-????????????"))
	return strings.Join(all[max(0, len(all)-1):], "")
}

// leftIn returns the unfinished checkpoints in a folder.
func leftIn(folder string) (all []string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "step-") {
			all = append(all, e.Name())
		}
	}
	return all
}

// killing is runs that are killed until they end.
type killing struct {
	*testing.T
	backend  streams.Backend
	devices  int                    // at most
	launcher []testmpi.Installation // none if no launcher works here
	wanted   map[string][][]byte    // fields of runs that are not interrupted, by config

	launches, kills, within, jobs, launchers int // counts; within a checkpoint, of jobs of two processes, and of their launchers
}

// Runs of one process and jobs of two are killed at random moments, a third of them while a checkpoint is written, and
// continued on other devices and processes until they end. Each part continues from the newest checkpoint that the one
// before has left, and the last ends with the bits of a run that was not interrupted.
func TestKilledRuns(t *testing.T) {
	rounds, end := 2, time.Time{}
	if testdevices.Long() {
		rounds = 40
	}
	if text := os.Getenv(soakVariable); text != "" {
		end = time.Now().Add(test.Must(time.ParseDuration(text))(t))
	}
	k := &killing{T: t, wanted: map[string][][]byte{}}
	if k.backend, k.devices = tested(t); k.devices > 1 {
		k.launcher, _ = testmpi.All(t)
	}
	for n := 0; n < rounds || time.Now().Before(end); n++ {
		k.round(n, rand.New(rand.NewPCG(uint64(testdevices.Seed()), uint64(n))), !end.IsZero())
		if t.Failed() {
			break
		}
		t.Logf("%d runs, %d kills, %d of them within a checkpoint; %d of jobs of two processes, %d of these of the launcher",
			n+1, k.kills, k.within, k.jobs, k.launchers)
	}
	if len(k.launcher) == 0 {
		t.Log("SKIPPED: jobs of two processes: no launcher works here, or there is one device")
	}
}

// round kills parts of a run until one ends: as often as it takes, or three times.
func (k *killing) round(n int, r *rand.Rand, often bool) {
	k.Helper()
	c := resumable[(n+testdevices.Seed())%len(resumable)]
	steps := fmt.Sprint("stop.iterations=", 6000+1000*(n/len(resumable)%3))
	want, known := k.wanted[c.name+steps]
	if !known {
		want, _ = whole(k.T, c.text, c.fields, "--set", steps)
		k.wanted[c.name+steps] = want
	}
	dir := k.TempDir()
	folder, mark := filepath.Join(dir, "saved"), filepath.Join(dir, "killed")
	args := []string{"run", write(k.T, "c.yaml", c.text), "--restart", "--set", steps, "--set", "devices.backend=" + string(k.backend),
		"--set", "checkpoint.folder=" + folder, "--set", fmt.Sprint("checkpoint.every.steps=", 1+r.IntN(40))}
	for _, f := range c.fields {
		args = append(args, "--set", strings.TrimSuffix("output.field."+f, ".")+"="+filepath.Join(dir, f+".npy"))
	}
	for part := 0; ; part++ {
		ranks := 1
		if k.launches++; k.launches%8 == 2 && len(k.launcher) > 0 {
			ranks = 2
		}
		before := newestIn(folder)
		m := moment{Folder: folder, After: before, Mark: mark, Delay: time.Duration(r.Int64N(int64(200 * time.Millisecond)))}
		if r.IntN(3) == 0 {
			m.Within, m.Delay = pick(r, ".step-*", ".step-*/zarr.json", ".step-*/manifest.json"), time.Duration(r.Int64N(int64(5*time.Millisecond)))
		}
		if ranks == 2 {
			m.Rank, m.Launcher = pick(r, "0", "1"), r.IntN(3) == 0
		}
		if part >= 3 && !often { // a slow machine would take long
			m = moment{Rank: "none"}
		}
		out, ended := k.launch(r, ranks, m, append(args, "--set", fmt.Sprint("devices.count=", 1+r.IntN(k.devices/ranks)))...)
		_, err := os.Stat(mark)
		if killed := err == nil; !killed && !ended {
			k.Fatalf("%s: %s", c.name, out)
		} else if killed && !ended {
			test.Check(k.T, os.Remove(mark))
			k.count(m, folder)
		}
		if before != "" {
			step := test.Must(strconv.Atoi(strings.TrimLeft(strings.TrimPrefix(filepath.Base(before), "step-"), "0")))(k.T)
			_, from, _ := strings.Cut(out, "continuing from step ")
			from, _, _ = strings.Cut(from, ":")
			if got, err := strconv.Atoi(from); err != nil || got < step {
				k.Fatalf("round %d, %s: it does not continue from step %d:\n%s", n, c.name, step, out)
			}
		}
		if !ended {
			continue
		}
		for i, f := range c.fields {
			if !bytes.Equal(content(k.T, filepath.Join(dir, f+".npy")), want[i]) {
				k.Errorf("round %d, %s: other bits in %q", n, c.name, f)
			}
		}
		if left := leftIn(folder); len(left) > 0 {
			k.Errorf("round %d: %v are left", n, left)
		}
		return
	}
}

// count counts a kill.
func (k *killing) count(m moment, folder string) {
	if k.kills++; len(leftIn(folder)) > 0 {
		k.within++
	}
	if m.Rank != "" {
		k.jobs++
	}
	if m.Launcher {
		k.launchers++
	}
}

// launch runs halox as one process or a job of several, to the end or the moment, and reports whether it ended well.
func (k *killing) launch(r *rand.Rand, ranks int, m moment, args ...string) (out string, ended bool) {
	k.Helper()
	text := string(test.Must(json.Marshal(m))(k.T))
	if ranks == 1 {
		test.Check(k.T, os.Setenv(momentVariable, text))
		p := start(k.T, "", "", args...)
		test.Check(k.T, os.Unsetenv(momentVariable))
		<-p.ended
		return p.out.String(), p.cmd.ProcessState.Success()
	}
	job := launchHalox(k.T, pick(r, k.launcher...), ranks, []string{momentVariable + "=" + text}, args...)
	if len(job.Left) > 0 {
		k.Errorf("%d processes go on after their job: %v:\n%s", len(job.Left), m, job.Out)
	}
	return job.Out, job.Err == nil
}
