//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/command"
	"github.com/halox/halox/internal/test"
)

// process is halox in a process of its own.
type process struct {
	cmd       *exec.Cmd
	out       test.Output
	ended     chan struct{}
	listening string // a file that it makes once it catches signals
}

// start starts halox, by way of the shell where before says what it does first. It counts as listening once it is in a function too.
func start(t *testing.T, before, function string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{}), listening: filepath.Join(t.TempDir(), "listening")}
	if before != "" {
		p.cmd = exec.Command("sh", append([]string{"-c", before + `; exec "$0" "$@"`, os.Args[0]}, args...)...)
	}
	p.cmd.Env = append(os.Environ(), mainVariable+"=1", listeningVariable+"="+p.listening, atVariable+"="+function)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	test.Check(t, p.cmd.Start())
	go func() { p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() { p.cmd.Process.Kill(); <-p.ended })
	return p
}

// listens waits until the process catches signals, and a little longer: until it is busy. A process that ends before
// is not waited for.
func (p *process) listens(t *testing.T) {
	t.Helper()
	await(t, func() bool {
		select {
		case <-p.ended:
			return true
		default:
			_, err := os.Stat(p.listening)
			return err == nil
		}
	})
	time.Sleep(200 * time.Millisecond)
}

// await waits until something holds.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > 5*time.Minute {
			t.Fatal("it does not come to that within 5 minutes")
		}
	}
}

// stopped sends a signal and checks that the process ends as interrupted, or with one of the other codes. The limit
// catches a process that never ends. It is not a measure of speed.
func (p *process) stopped(t *testing.T, s syscall.Signal, codes ...int) {
	t.Helper()
	test.Check(t, p.cmd.Process.Signal(s))
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatalf("a minute after %v it goes on:\n%s", s, &p.out)
	}
	if !slices.Contains(append(codes, int(command.Interrupted)), p.cmd.ProcessState.ExitCode()) {
		t.Errorf("after %v: %v:\n%s", s, p.cmd.ProcessState, &p.out)
	}
}
