package testmpi

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Job is what to launch.
type Job struct {
	Program string
	Ranks   int
	Args    []string          // of the launcher, beside those of the installation
	Env     []string          // "NAME=value"; HALOX_MPI is the installation's library unless it is here
	Limit   time.Duration     // after which all is killed; 0: 60 s
	Wrap    []string          // what starts the launcher; nothing: it is started by itself
	Remote  bool              // ranks are on several hosts, by Args
	Said    string            // words of some rank
	Then    func(said string) // where set, is called when they have been said, with all until then
}

// Result is what came of a launch.
type Result struct {
	Out  string // of all ranks, and what the launcher said
	Err  error  // of the launcher: an exit code that is not 0
	Took time.Duration
	Late bool      // the limit was reached
	Left []int     // processes that were still there when the launcher had ended, and were killed
	Said time.Time // when the words that a job waits for were said; zero where they were not
	// After these words: when the last rank had ended, and whether the launcher had to be ended a while after that, as one that
	// waits for a host that it cannot reach.
	Ended time.Time
	Hung  bool
}

// Run starts the test program under the launcher and waits for it.
func (in Installation) Run(t *testing.T, r Job) Result {
	t.Helper()
	if r.Limit == 0 {
		r.Limit = 60 * time.Second
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), r.Limit)
	defer stop()
	id := fmt.Sprintf("%d-%d", os.Getpid(), rand.Uint64())
	args := append(slices.Clone(r.Wrap), in.Launch, "-n", strconv.Itoa(r.Ranks))
	if !r.Remote {
		args = append(args, in.local()...)
	}
	args = append(append(append(args, in.Args...), r.Args...), self)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = in.environment(r, id)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // which launchers hand on
	c.WaitDelay = 3 * time.Second
	var result Result
	over, watched := make(chan struct{}), make(chan struct{})
	close(watched)
	out := listener{said: r.Said, then: r.Then, begin: func() {
		watched = make(chan struct{})
		go func() {
			defer close(watched)
			result.Ended, result.Hung = awaitRanks(id, self, over)
			if result.Hung {
				_ = c.Process.Kill() // it may have ended meanwhile
			}
		}()
	}}
	c.Stdout, c.Stderr = &out, &out
	began := time.Now()
	result.Err = c.Run()
	close(over)
	<-watched
	result.Out, result.Took, result.Late, result.Said = out.text.String(), time.Since(began), ctx.Err() != nil, out.at
	result.Left = endAll(id, func(left []int) []int {
		if result.Hung {
			left = ranksAmong(left, self)
		}
		return left
	})
	return result
}

// launcherTime is how long a launcher may go on when its last rank on any host has ended.
const launcherTime = 5 * time.Second

// awaitRanks returns when no rank of a launch is left, and whether the launcher went on for long after that.
func awaitRanks(id, self string, over <-chan struct{}) (ended time.Time, hung bool) {
	for {
		if len(ranksAmong(processesOf(id), self)) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	ended = time.Now()
	select {
	case <-over:
		return ended, false
	case <-time.After(launcherTime):
		return ended, true
	}
}

// listener keeps what is printed, and does something when some words have been.
type listener struct {
	text  bytes.Buffer
	said  string
	then  func(said string)
	begin func() // after that
	at    time.Time
}

// Write implements io.Writer. One goroutine calls it.
func (l *listener) Write(b []byte) (int, error) {
	l.text.Write(b)
	if l.then != nil && l.at.IsZero() && strings.Contains(l.text.String(), l.said) {
		l.at = time.Now()
		l.then(l.text.String())
		l.begin()
	}
	return len(b), nil
}

// environment returns that of the launcher: this one's without what another launcher has set.
func (in Installation) environment(r Job, id string) (all []string) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "OMPI_") && !strings.HasPrefix(name, "PMI") && name != "HALOX_MPI" {
			all = append(all, v)
		}
	}
	all = append(all, programVariable+"="+r.Program, runVariable+"="+id, "HALOX_MPI="+in.Library)
	return append(all, r.Env...)
}

// endAll kills the processes of a launch that are still there. What ends by itself within a
// short time is not counted.
func endAll(id string, count func([]int) []int) (left []int) {
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left = processesOf(id)
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	counted := count(slices.Clone(left))
	for _, pid := range left {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have ended meanwhile
		}
	}
	return counted
}

// ranksAmong returns those of some processes that run the test program; others are launchers, and what they have started for
// themselves.
func ranksAmong(pids []int, self string) []int {
	return slices.DeleteFunc(pids, func(pid int) bool {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		return err != nil || program != self
	})
}

// processesOf returns the processes, but this one, that have the mark of a launch. A process
// that has ended has no environment.
func processesOf(id string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well formed
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environment, []byte(runVariable+"="+id)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Succeeds fails the test unless the launch ended well, in time, and left nothing running.
func (r Result) Succeeds(t *testing.T) {
	t.Helper()
	if r.Err != nil || r.Late || len(r.Left) > 0 {
		t.Fatalf("after %v, late %t, left %v: %v\n%s", r.Took, r.Late, r.Left, r.Err, r.Out)
	}
}

// Fails fails the test unless the launch ended with an error, in time, left nothing running,
// and said all of these.
func (r Result) Fails(t *testing.T, words ...string) {
	t.Helper()
	if r.Err == nil || r.Late || len(r.Left) > 0 {
		t.Fatalf("after %v, late %t, left %v: %v\n%s", r.Took, r.Late, r.Left, r.Err, r.Out)
	}
	for _, w := range words {
		if !strings.Contains(r.Out, w) {
			t.Errorf("it does not say %q:\n%s", w, r.Out)
		}
	}
}
