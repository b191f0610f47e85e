//go:build unix

package ranks_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/streams"
)

// partVariable names the part of a test that a process executes, and metVariable the folder in which
// processes synchronize, see joinProcesses.
const (
	partVariable = "HALOX_TEST_PART"
	metVariable  = "HALOX_TEST_MET"
)

// inProcess executes a part of a test of several processes, if this is one of them.
func inProcess(t *testing.T, parts map[string]func(t *testing.T)) bool {
	if together.IsAlone() {
		return false
	}
	parts[os.Getenv(partVariable)](t)
	return true
}

// part is a job of processes that execute a part of this test.
func part(t *testing.T, program, name string) testmpi.Job {
	test, _, _ := strings.Cut(t.Name(), "/")
	return testmpi.Job{Program: program, Ranks: 3, Env: []string{testsVariable + "=^" + test + "$", partVariable + "=" + name, metVariable + "=" + t.TempDir()}}
}

// joinProcesses waits, within a limit, until all processes have called it. It does not use MPI, which may
// have failed: a process must not end the job before the others have printed what they saw.
func joinProcesses(t *testing.T, processes int) {
	dir := filepath.Join(os.Getenv(metVariable), testmpi.Limit().String())
	err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, strconv.Itoa(together.Rank)), nil, 0o600))
	test.Report(t, err)
	for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
		if here, err := os.ReadDir(dir); err != nil || len(here) >= processes {
			return
		}
	}
}

func onHost(f func(t *testing.T, s *testdevices.Set)) func(t *testing.T) {
	return func(t *testing.T) { f(t, testdevices.Host(t, 1)) }
}

func onCPU(f func(t *testing.T, s *testdevices.Set)) func(t *testing.T) {
	return func(t *testing.T) { f(t, testdevices.CPUBesideThreads(t, 1)) }
}

// runThird runs kernel third, or its counterpart, with ranks of all processes, each as far from the next as
// the processes are. It first calls before, and each rank on CPU devices calls host first; either may be nil.
func runThird(t *testing.T, s *testdevices.Set, limit time.Duration, rounds int64, before func(), host func(r *ranks.Rank)) error {
	var m []*streams.Memory
	var wrong atomic.Uint64
	p := ranks.Program{Name: "third", Source: farSource(), Kernel: "third", Threads: 64, Host: func(r *ranks.Rank) {
		if host != nil {
			host(r)
		}
		thirdOnHost(m, &wrong)(r)
	}}
	w := opened(t, s, p, ranks.Options{Ranks: 2, Limit: limit})
	m = memory(t, w, 2*2*16)
	data := []third{{m[0].Address(), 16, rounds, 2, 0}}
	if before != nil {
		before()
	}
	err := ranks.Run(t.Context(), w, data)
	if data[0].Wrong != 0 || wrong.Load() != 0 {
		t.Errorf("round %d was wrong; on the host %d", int64(data[0].Wrong)-1, int64(wrong.Load())-1)
	}
	return err
}

// lost sends a signal to the last process while its ranks and those of others run forever.
func lost(signal syscall.Signal) func(t *testing.T, s *testdevices.Set) {
	return func(t *testing.T, s *testdevices.Set) {
		begun := time.Now()
		err := runThird(t, s, time.Minute, 1<<40, func() {
			begun = time.Now()
			if together.Rank == together.Size()-1 {
				time.AfterFunc(500*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), signal) })
			}
		}, nil)
		fmt.Fprintf(os.Stderr, "<rank %d, run ended after %v: %v>\n", together.Rank, time.Since(begun).Round(time.Second), err)
		joinProcesses(t, together.Size()-1)
		test.Report(t, err)
	}
}

// late starts ranks of the last process later than the limit of waits of others. All processes get the error
// of the rank that waited, and can run again.
func late(t *testing.T, s *testdevices.Set) {
	const limit = 300 * time.Millisecond
	last := together.Rank == together.Size()-1
	if s.Devices[0].GoKernels {
		sleeps := last
		err := runThird(t, s, limit, 3, nil, func(*ranks.Rank) {
			if sleeps {
				time.Sleep(3 * limit)
			}
		})
		if !errors.Is(err, ranks.ErrTimeout) || !strings.Contains(err.Error(), "waited 300ms") {
			t.Errorf("the error is %v", err)
		}
	} else {
		rounds := int64(3)
		if last {
			rounds = 2 // so that its ranks are at another barrier, and then end
		}
		test.Is(t, runThird(t, s, limit, rounds, nil, nil), ranks.ErrTimeout)
	}
	if err := runThird(t, s, time.Minute, 3, nil, nil); err != nil {
		t.Errorf("the next run: %v", err)
	}
}

// misled makes the proxy of the first process fail: all processes learn that immediately.
func misled(t *testing.T, s *testdevices.Set) {
	w := openedServed(t, s, "misled", time.Minute)
	m := memory(t, w, 64)
	for range 2 {
		begun := time.Now()
		err := ranks.Run(t.Context(), w, []proxied{{Memory: m[0].Address(), Bytes: 64, What: 1}})
		test.Says(t, err, "of kind 77 for device 1")
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
	}
	if err := runThird(t, s, time.Minute, 3, nil, nil); err != nil {
		t.Errorf("a run of another world: %v", err)
	}
}

// different uses programs that differ between processes, and one that cannot run: all fail, with the reason.
func different(t *testing.T, s *testdevices.Set) {
	plain := program(func(*ranks.Rank) {})
	second := together.Rank == 1
	changed := plain.Source
	changed.Defines = append(slices.Clone(changed.Defines), "MORE")
	for _, c := range []struct {
		want string
		edit func(p *ranks.Program, o *ranks.Options)
	}{
		{"queues true, checks false", func(_ *ranks.Program, o *ranks.Options) { o.Queues = true }},
		{"a limit of 1h0m0s", func(_ *ranks.Program, o *ranks.Options) { o.Limit = time.Hour }},
		{"in multiples of 3", func(_ *ranks.Program, o *ranks.Options) { o.Multiple = 3 }},
		{"16 bytes shared", func(p *ranks.Program, _ *ranks.Options) { p.Shared = 16 }},
		{fmt.Sprintf("of source %08x", ranks.Checksum(changed)), func(p *ranks.Program, _ *ranks.Options) { p.Source = changed }},
		{"has no version for CPU devices", func(p *ranks.Program, _ *ranks.Options) { p.Host = nil }},
		{"must be a multiple of 32 up to 1024, got 33", func(p *ranks.Program, _ *ranks.Options) { p.Threads = 33 }},
	} {
		p, o := plain, ranks.Options{Processes: together}
		if second {
			c.edit(&p, &o)
		}
		_, err := ranks.New(s.Compiler, s.Devices, s.Links, p, o)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), together.Name(1)) && !second {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	w := opened(t, s, plain, ranks.Options{Ranks: 1 + together.Rank})
	if w.Ranks() != 1 || w.Size() != together.Size() || w.First() != together.Rank {
		t.Errorf("%d ranks on each of %d devices, of which %d is the first", w.Ranks(), w.Size(), w.First())
	}
	data := make([]int, 1)
	if second {
		data = nil
	}
	test.Says(t, ranks.Run(t.Context(), w, data), "must have data for 1 devices, got 0")
	oneRefused(t, w)
	if err := ranks.Run(t.Context(), w, make([]int, 1)); err != nil {
		t.Errorf("the next run: %v", err)
	}
	misplaced(t, s)
}

// misplaced puts a packet from the first process into a window of the second that begins at an unaligned
// address: all processes soon get the error, and can run again.
func misplaced(t *testing.T, s *testdevices.Set) {
	memory, at := make([]byte, 80), together.Rank
	w := opened(t, s, ranks.Program{Name: "p", Source: source(), Kernel: "ring", Threads: 32, Host: func(r *ranks.Rank) {
		w := r.CreateWindow(ranks.All, memory[at:][:64])
		if r.Index(ranks.All) == 0 {
			r.PutPacket(w, 1, 0, make([]byte, 8), 1)
		}
		r.Barrier(ranks.All)
		r.FreeWindow(w)
	}}, ranks.Options{Ranks: 1})
	begun := time.Now()
	err := ranks.Run(t.Context(), w, make([]int, 1))
	if !errors.Is(err, ranks.ErrArgument) || !strings.Contains(err.Error(), "rank 0 (of "+together.Name(0)+") put a packet of 8 bytes at offset 0;") || time.Since(begun) > 30*time.Second {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	at = 0
	if err := ranks.Run(t.Context(), w, make([]int, 1)); err != nil {
		t.Errorf("a packet at its place: %v", err)
	}
}

// oneRefused makes the second process request a window in memory of another device: all fail, and then make
// another window.
func oneRefused(t *testing.T, w *ranks.World) {
	none := func(int) streams.Span { return streams.Span{} }
	if _, err := w.NewWindow(ranks.All, none); err != nil {
		t.Error(err)
	}
	second, stranger := together.Rank == 1, testdevices.Host(t, 1)
	_, err := w.NewWindow(ranks.All, func(int) (s streams.Span) {
		if second {
			m := test.Must(stranger.Devices[0].Alloc(8))(t)
			s = m.All()
		}
		return s
	})
	if err == nil || !strings.Contains(err.Error(), "is on another device") || !second && !strings.Contains(err.Error(), together.Name(1)) {
		t.Errorf("a window of foreign memory at rank 1: %v", err)
	}
	some := none
	if second {
		some = nil
	}
	test.Says(t, test.ErrorOf(w.NewWindow(ranks.All, some)), "the function for its memory is nil")
	if _, err := w.NewWindow(ranks.All, none); err != nil {
		t.Errorf("the next window: %v", err)
	}
}

// differs makes the second process call something else than the others: all report both calls, and the
// processes end together.
func differs(others, second string, make func(t *testing.T, w *ranks.World, second bool) error) func(t *testing.T, s *testdevices.Set) {
	return func(t *testing.T, s *testdevices.Set) {
		w := opened(t, s, program(func(*ranks.Rank) {}), ranks.Options{Ranks: 2})
		begun := time.Now()
		err := make(t, w, together.Rank == 1)
		if err == nil || !strings.Contains(err.Error(), "p: "+others) || !strings.Contains(err.Error(), "p: "+second) || !strings.Contains(err.Error(), together.Name(1)) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		fmt.Fprintf(os.Stderr, "<rank %d found: %v>\n", together.Rank, err)
		joinProcesses(t, together.Size())
	}
}

// Channels, windows and calls that differ between processes are reported by all, with the requests of each.
func TestDifferentCalls(t *testing.T) {
	channel := func(w *ranks.World, c [4]int) error {
		_, err := w.NewChannel(c[0], c[1], c[2], c[3])
		return err
	}
	others := [4]int{0, 1, 4, 64}
	channels := func(c [4]int, says string) func(t *testing.T, s *testdevices.Set) {
		return differs("make channel 0 from rank 0 to rank 1, 4 slots of 64 bytes", "make channel 0 "+says, func(_ *testing.T, w *ranks.World, second bool) error {
			if second {
				return channel(w, c)
			}
			return channel(w, others)
		})
	}
	window := func(w *ranks.World, c ranks.Comm) error {
		_, err := w.NewWindow(c, func(int) streams.Span { return streams.Span{} })
		return err
	}
	parts := map[string]func(t *testing.T){
		"another peer": onHost(channels([4]int{0, 2, 4, 64}, "from rank 0 to rank 2, 4 slots of 64 bytes")),
		"other bytes":  onCPU(channels([4]int{0, 1, 4, 60}, "from rank 0 to rank 1, 4 slots of 60 bytes")),
		"refused":      onHost(channels([4]int{0, 1, 3, 64}, "from rank 0 to rank 1, 3 slots of 64 bytes")),
		"a window": onCPU(differs("make channel 0 from rank 0", "make window 0 of all ranks", func(_ *testing.T, w *ranks.World, second bool) error {
			if second {
				return window(w, ranks.All)
			}
			return channel(w, others)
		})),
		"no channel": onHost(differs("make channel 0 from rank 0", "begin a run", func(t *testing.T, w *ranks.World, second bool) error {
			if second {
				return ranks.Run(t.Context(), w, []int{0})
			}
			return channel(w, others)
		})),
	}
	if inProcess(t, parts) {
		return
	}
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, name := range testdevices.Some(3, slices.Sorted(maps.Keys(parts))) {
			t.Run(name, func(t *testing.T) {
				r := in.Run(t, part(t, "tests", name))
				if strings.Count(r.Out, "--- SKIP: ") == 3 {
					t.Skipf("SKIPPED: unsupported by all processes:\n%s", r.Out)
				}
				if n := strings.Count(r.Out, " found: "); n != 3 || strings.Contains(r.Out, "--- FAIL") {
					t.Errorf("%d ranks have found it:\n%s", n, r.Out)
				}
			})
		}
	})
}

// If a process is stopped or killed while ranks run, all others end in time, with an error that names it.
func TestLostProcess(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	parts := map[string]func(t *testing.T){
		"stopped, host": onHost(lost(syscall.SIGSTOP)), "stopped, cuda-on-cpu": onCPU(lost(syscall.SIGSTOP)),
		"killed, host": onHost(lost(syscall.SIGKILL)), "killed, cuda-on-cpu": onCPU(lost(syscall.SIGKILL)),
	}
	if inProcess(t, parts) {
		return
	}
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, name := range testdevices.Some(2, slices.Sorted(maps.Keys(parts))) {
			t.Run(name, func(t *testing.T) {
				if strings.HasSuffix(name, "cuda-on-cpu") {
					testdevices.CPUBesideThreads(t, 1) // skips if the processes could not run
				}
				job := part(t, "tests of short waiting", name)
				if strings.HasPrefix(name, "killed") {
					job.Args = goesOn(t, in)
				}
				in.Patiently(t, job, func(r testmpi.Result) error {
					words := []string{"<rank 0, run ended after ", "<rank 1, run ended after ", "rank 2 on host ", "no heartbeat from "}
					if strings.HasPrefix(name, "killed") && strings.Count(r.Out, ", run ended after ") < 2 {
						words = nil // the launcher ended some before they noticed; it does not end stopped processes
					}
					said := func(w string) bool { return strings.Contains(r.Out, w) }
					if said("was wrong") || len(r.Left) > 0 || r.Late || slices.ContainsFunc(words, func(w string) bool { return !said(w) }) {
						return fmt.Errorf("after %v, left %v, %q is missing:\n%s", r.Took, r.Left, words, r.Out)
					}
					return nil
				})
			})
		}
	})
}

// goesOn returns the arguments that make a launcher keep processes running when one is killed.
func goesOn(t *testing.T, in testmpi.Installation) []string {
	switch {
	case in.Hydra:
		return []string{"-disable-auto-cleanup"}
	case in.Prte():
		t.Skip("SKIPPED: the launcher of Open MPI 5 kills all processes when one is killed")
	}
	return []string{"--enable-recovery"}
}

// A rank that waits too long for a rank of another process ends the run on all processes, and so does a proxy
// that fails. The next run starts in the initial state. Worlds that differ between processes fail on all.
func TestLateProcess(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	parts := map[string]func(t *testing.T){"late, host": onHost(late), "late, cuda-on-cpu": onCPU(late), "different": onHost(different), "misled, cuda-on-cpu": onCPU(misled)}
	if inProcess(t, parts) {
		return
	}
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			t.Run(name, func(t *testing.T) {
				in.Done(t, part(t, "tests", name))
			})
		}
	})
}
