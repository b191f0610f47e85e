package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/internal/testmpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/streams"
)

// Variables of a launched halox.
const (
	argumentsVariable = "HALOX_TEST_ARGUMENTS" // the command line, an argument a line
	signalVariable    = "HALOX_TEST_SIGNAL"    // the function in which rank 1 is told to stop, a little later
	killVariable      = "HALOX_TEST_KILL"      // a file that rank 0 makes once it runs steps; rank 1 is killed then
	spoilVariable     = "HALOX_TEST_SPOIL"     // a folder that a file replaces once rank 0 runs steps
)

// launchedHalox is halox as one of several processes. Ranks other than 0 would make one step, if they were asked.
func launchedHalox() error {
	rank := rankOfLauncher()
	if rank != "0" {
		os.Setenv("HALOX_STOP_ITERATIONS", "1")
	}
	if function := os.Getenv(signalVariable); function != "" && rank == "1" {
		go func() {
			awaitIn(function)
			time.Sleep(300 * time.Millisecond)
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		}()
	}
	if file := os.Getenv(killVariable); file != "" {
		go func() {
			if rank == "0" {
				awaitIn("scheme.(*fences).work(")
				_ = os.WriteFile(file, nil, 0o600)
			}
			for _, err := os.Stat(file); rank == "1"; _, err = os.Stat(file) {
				if time.Sleep(10 * time.Millisecond); err == nil {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
			}
		}()
	}
	if folder := os.Getenv(spoilVariable); folder != "" && rank == "0" {
		go func() {
			awaitIn("scheme.(*fences).work(")
			_ = os.RemoveAll(folder)
			_ = os.WriteFile(folder, nil, 0o600)
		}()
	}
	args := strings.Split(os.Getenv(argumentsVariable), "\n")
	if len(os.Args) > 1 { // which this program has started itself
		args = os.Args[1:]
	}
	os.Unsetenv(argumentsVariable)
	os.Unsetenv(signalVariable)
	os.Unsetenv(spoilVariable)
	os.Unsetenv(killVariable)
	os.Exit(execute(context.Background(), args, os.Stdout, os.Stderr))
	return nil
}

// launchHalox runs a command line as so many processes.
func launchHalox(t *testing.T, in testmpi.Installation, ranks int, env []string, args ...string) testmpi.Result {
	t.Helper()
	return in.Run(t, testmpi.Job{Program: "halox", Ranks: ranks, Env: append(env, argumentsVariable+"="+strings.Join(args, "\n"))})
}

// fieldAfter returns the field that one process writes after so many steps.
func fieldAfter(t *testing.T, config string, steps int) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "one.npy")
	code, _, stderr := cli("run", config, "-q", "--set", "output.field="+name, "--set", fmt.Sprint("stop.iterations=", steps))
	if code != 0 {
		t.Fatal(stderr)
	}
	return content(t, name)
}

func content(t *testing.T, name string) []byte {
	t.Helper()
	b := test.Must(os.ReadFile(name))(t)
	return b
}

// Several processes run the config of rank 0, which alone prints and writes: the field and the norms are those of one.
func TestLaunchedRun(t *testing.T) {
	config := write(t, "c.yaml", small)
	_, alone := run(t, small)
	want := fieldAfter(t, config, 40)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, ranks := range testdevices.Some(1, []int{3, 2}) {
			t.Run(fmt.Sprint(ranks), func(t *testing.T) {
				folder := t.TempDir()
				field, record, picture := filepath.Join(folder, "u.npy"), filepath.Join(folder, "r.json"), filepath.Join(folder, "u.png")
				r := launchHalox(t, in, ranks, nil, "run", config, "--record", record, "--set", "output.field="+field, "--set", "output.picture="+picture)
				r.Succeeds(t)
				if n := strings.Count(r.Out, "wrote "); n != 3 {
					t.Errorf("%d files are said to be written:\n%s", n, r.Out)
				}
				if !bytes.Equal(content(t, field), want) || len(content(t, picture)) == 0 {
					t.Error("the field is another than that of one process, or there is no picture")
				}
				got := test.Must(results.Read(record))(t)
				checkLaunched(t, got, alone, ranks)
			})
		}
	})
}

// checkLaunched compares the record of so many processes, of two devices each, with that of one.
func checkLaunched(t *testing.T, got, alone *results.Record, ranks int) {
	t.Helper()
	ran := got.Run
	if ran.Processes != ranks || len(got.Devices) != 2*ranks || len(ran.Subdomains) != 2*ranks || alone.Run.Processes != 0 {
		t.Fatalf("%d processes with %d devices and %d subdomains", ran.Processes, len(got.Devices), len(ran.Subdomains))
	}
	seen := map[[2]int]bool{}
	for i, d := range got.Devices {
		if d.Process != i/2 || d.Host == "" {
			t.Errorf("device %d is of process %d on host %q", i, d.Process, d.Host)
		}
		seen[[2]int{ran.Subdomains[i].Process, ran.Subdomains[i].Device}] = true
	}
	if len(seen) != 2*ranks {
		t.Errorf("subdomains on %v", seen)
	}
	if *ran.MaxChange != *alone.Run.MaxChange || *ran.L2Change != *alone.Run.L2Change || ran.Iterations != 40 {
		t.Errorf("norms %v %v after %d", *ran.MaxChange, *ran.L2Change, ran.Iterations)
	}
	if *ran.Error != *alone.Run.Error && (*ran.Error.L2 != *alone.Run.Error.L2 || *ran.Error.Max != *alone.Run.Error.Max) {
		t.Errorf("errors %v %v", *ran.Error.L2, *ran.Error.Max)
	}
}

// A signal to one process ends all at the same step, with what they have.
func TestLaunchedRunStopsTogether(t *testing.T) {
	config := write(t, "c.yaml", small)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		folder := t.TempDir()
		field, record := filepath.Join(folder, "u.npy"), filepath.Join(folder, "r.json")
		r := launchHalox(t, in, 3, []string{signalVariable + "=scheme.(*fences).work("}, "run", config, "--record", record, "--set", "output.field="+field, "--set", "stop.iterations=1000000000")
		if r.Err == nil || r.Late || len(r.Left) > 0 {
			t.Fatalf("after %v, late %t, left %v: %v\n%s", r.Took, r.Late, r.Left, r.Err, r.Out)
		}
		got, err := results.Read(record)
		if err != nil || !got.Interrupted || got.Run.Stopped != results.StopInterrupted || got.Run.Iterations == 0 {
			t.Fatalf("%+v: %v\n%s", got, err, r.Out)
		}
		if !bytes.Equal(content(t, field), fieldAfter(t, config, got.Run.Iterations)) {
			t.Errorf("the field is not that after %d steps", got.Run.Iterations)
		}
	})
}

// Where a process is killed, rank 0 alone says that the launcher has ended the others, and leaves a record. MPICH's
// launcher leaves it no time for that: then the record of an earlier run is as it was.
func TestLaunchedRunLosesARank(t *testing.T) {
	config := write(t, "c.yaml", small)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		const earlier = "of an earlier run"
		record := write(t, "r.json", earlier)
		r := launchHalox(t, in, 3, []string{killVariable + "=" + filepath.Join(t.TempDir(), "steps")}, "run", config, "--record", record, "--set", "stop.iterations=1000000000")
		got, err := results.Read(record)
		kept := in.Hydra && string(content(t, record)) == earlier
		if n := strings.Count(r.Out, "by force"); r.Err == nil || r.Late || n > 1 || !kept && (err != nil || !got.Interrupted) {
			t.Errorf("%d processes say that they are ended, late %t, %v; %+v, %v:\n%s", n, r.Late, r.Err, got, err, r.Out)
		}
	})
}

// One trace has what the devices of all processes did, at times of one clock.
func TestLaunchedTrace(t *testing.T) {
	config := write(t, "c.yaml", small)
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		file := filepath.Join(t.TempDir(), "t.json")
		r := launchHalox(t, in, 2, nil, "run", config, "--trace", file, "--trace-steps", "6", "--set", "exchange.network=mpi")
		r.Succeeds(t)
		if n := strings.Count(r.Out, "wrote "+file); n != 1 || !strings.Contains(r.Out, "hidden") {
			t.Errorf("%d files are said to be written:\n%s", n, r.Out)
		}
		found := test.Must(trace.Read(file))(t)
		if len(found.Devices) != 4 || found.About.Lost > 0 {
			t.Fatalf("%d devices, %d operations are lost", len(found.Devices), found.About.Lost)
		}
		var first, last [2]time.Duration // by rank: the begin of the first operation, and the end of the last
		wires, messages := 0, 0
		for i, d := range found.Devices {
			rank := i / 2
			if want := fmt.Sprintf(" of rank %d on ", rank); !strings.Contains(d.Name, want) || len(d.Streams) == 0 {
				t.Errorf("device %d is %q, with %d streams", i, d.Name, len(d.Streams))
			}
			for _, s := range d.Streams {
				if strings.HasPrefix(s.Name, "copies for rank") || strings.HasPrefix(s.Name, "copies from rank") {
					wires++
				}
				for _, o := range s.Operations {
					if s.Name == fmt.Sprintf("to rank %d", 1-rank) && o.Name == "message" && o.Bytes > 0 && o.Category == string(streams.CopyWork) {
						messages++
					}
					if last[rank] == 0 || o.Begin < first[rank] {
						first[rank] = o.Begin
					}
					last[rank] = max(last[rank], o.End)
				}
			}
		}
		if wires == 0 || messages < 6*2 || first[0] > last[1] || first[1] > last[0] || min(first[0], first[1]) != 0 {
			t.Errorf("%d streams of messages, of which %d were sent; rank 0 from %v to %v, rank 1 from %v to %v", wires, messages, first[0], last[0], first[1], last[1])
		}
	})
}

// What is wrong is said once, by rank 0 alone where it cannot write what came out, and the others end as it does.
func TestLaunchedRunFails(t *testing.T) {
	testdevices.InTurn(t, 4, 8)
	config, folder := write(t, "c.yaml", small), filepath.Join(t.TempDir(), "out")
	const ofOne = ": must be one process, got 3: "
	testmpi.Each(t, func(t *testing.T, in testmpi.Installation) {
		for _, tc := range testdevices.Again(3, []struct{ words, args string }{
			{"write field", "run " + config + " -q --set stop.iterations=500 --set output.field=" + filepath.Join(folder, "u.npy")},
			{"graph supports one process", "run " + config + " --set exchange.scheme=graph"},
			{"or fewer than 5 steps between two exchanges", "run " + config + " -q --set grid.size=[1,1,14] --set exchange.steps=5"},
			{"grid.size", "run " + config + " --set grid.size=[0,1]"},
			{"no such file", "run " + filepath.Join(t.TempDir(), "none.yaml")},
			{ofOne, "bench ranks"}, {ofOne, "bench latency"}, {ofOne, "bench sweep"}, {ofOne, "bench pack"}, {"must be one process or two of one host, got 3 processes", "bench pingpong"},
			{ofOne, "verify " + config + " --ranks-for 1s"}, {ofOne, "plan " + config + " --hosts 8"},
		}) {
			var env []string
			if tc.words == "write field" {
				test.Check(t, os.RemoveAll(folder))
				env = []string{spoilVariable + "=" + folder}
			}
			r := launchHalox(t, in, 3, env, strings.Fields(tc.args)...)
			r.Fails(t, tc.words)
			if n := strings.Count(r.Out, tc.words); n != 1 {
				t.Errorf("%s: said %d times:\n%s", tc.args, n, r.Out)
			}
			if strings.Contains(r.Out, "by force") || in.Name == "system" && strings.Contains(r.Out, "MPI_ABORT") {
				t.Errorf("%s: more is said:\n%s", tc.args, r.Out)
			}
		}
	})
}
