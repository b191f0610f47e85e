//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// printed is what a process has printed so far.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *printed) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

func (o *printed) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is halox in a process of its own.
type process struct {
	cmd       *exec.Cmd
	out       printed
	ended     chan struct{}
	listening string // a file that it makes once it catches signals
}

// start starts halox, by way of the shell where before says what it does first.
func start(t *testing.T, before string, args ...string) *process {
	return startAt(t, before, "", args...)
}

// startAt is start of a process that counts as listening once it is in a function too.
func startAt(t *testing.T, before, function string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{}), listening: filepath.Join(t.TempDir(), "listening")}
	if before != "" {
		p.cmd = exec.Command("sh", append([]string{"-c", before + `; exec "$0" "$@"`, os.Args[0]}, args...)...)
	}
	p.cmd.Env = append(os.Environ(), mainVariable+"=1", listeningVariable+"="+p.listening, atVariable+"="+function)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() { p.cmd.Process.Kill(); <-p.ended })
	return p
}

// listens waits until the process catches signals, and a little longer: until it is amidst something.
func (p *process) listens(t *testing.T) {
	t.Helper()
	await(t, func() bool {
		_, err := os.Stat(p.listening)
		return err == nil
	})
	time.Sleep(200 * time.Millisecond)
}

// await waits until something holds.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("it does not come to that within a minute")
		}
	}
}

// signalLimit is how long a process may go on after a signal.
const signalLimit = 2 * time.Second

// stopped sends a signal and checks that the process ends in time, as one that was interrupted, or
// with one of the other codes. What it waits for a core meanwhile does not count: others may use them.
func (p *process) stopped(t *testing.T, s syscall.Signal, codes ...int) {
	t.Helper()
	before := p.queued()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	begin, late := time.Now(), time.Duration(0)
	for ended := false; !ended; {
		select {
		case <-p.ended:
			ended = true
		case <-time.After(5 * time.Millisecond):
			for thread, now := range p.queued() {
				late = max(late, now-before[thread])
			}
		}
		if took := time.Since(begin); took > 4*signalLimit+late {
			t.Fatalf("%v after %v it goes on:\n%s", took, s, &p.out)
		}
	}
	if took := time.Since(begin); took > signalLimit+late || !slices.Contains(append(codes, exitInterrupted), p.cmd.ProcessState.ExitCode()) {
		t.Errorf("%v after %v, of which %v in wait of a core: %v:\n%s", took, s, late, p.cmd.ProcessState, &p.out)
	}
}

// queued returns how long each thread of the process was ready to run and did not, where the system counts that.
func (p *process) queued() map[string]time.Duration {
	all := map[string]time.Duration{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid)) // the pattern is well formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		var ran, waited time.Duration
		if _, err := fmt.Sscan(string(text), &ran, &waited); err == nil {
			all[file] = waited
		}
	}
	return all
}
