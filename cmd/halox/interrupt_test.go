//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/interrupt"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/results/trace"
	"github.com/halox/halox/streams"
)

// A field that is being written at a signal is completed. A second signal leaves the field of an earlier run in place,
// and the record does not claim it.
func TestASignalWhileAFieldIsWritten(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	dir := t.TempDir()
	field, record := filepath.Join(dir, "f.npy"), filepath.Join(dir, "r.json")
	for _, signals := range [][]syscall.Signal{{syscall.SIGTERM, syscall.SIGINT}, {syscall.SIGTERM}} {
		test.Check(t, os.WriteFile(field, []byte("old"), 0o644))
		p := start(t, "", "", "run", write(t, "c.yaml", small), "--set", "grid.size=[2500,2500]", "--set", "initial=x", "--set", "exact=x",
			"--set", "stop.iterations=1", "--set", "output.field="+field, "--record", record)
		await(t, func() bool {
			all, _ := filepath.Glob(filepath.Join(dir, ".halox-*"))
			return slices.ContainsFunc(all, func(name string) bool {
				info, err := os.Stat(name)
				return err == nil && info.Size() > 0
			})
		})
		for _, s := range signals[1:] {
			test.Check(t, p.cmd.Process.Signal(s))
			time.Sleep(time.Millisecond) // two of one moment may be one
		}
		p.stopped(t, signals[0], 0) // it may come to its end in time
		r, err := results.Read(record)
		if err != nil || r.Run.Iterations != 1 || len(r.Run.Outputs) != 1 {
			t.Fatalf("%+v, %v:\n%s", r, err, &p.out)
		}
		isOld, missing := len(content(t, field)) == 3, r.Run.Outputs[0].Missing
		if left, _ := filepath.Glob(filepath.Join(dir, ".halox-*")); len(left) > 0 || isOld != (missing != "") || isOld && len(signals) == 1 {
			t.Errorf("%v: the old field is there: %t, missing %q, left %v:\n%s", signals, isOld, missing, left, &p.out)
		}
	}
}

// Ctrl-C ends a run between two steps. What it had is in the record, and what was traced in the trace.
func TestCtrlC(t *testing.T) {
	file, record := filepath.Join(t.TempDir(), "trace.json"), filepath.Join(t.TempDir(), "r.json")
	p := start(t, "", "scheme.(*Runner).Run(", "run", write(t, "c.yaml", small), "--trace", file, "--trace-steps", "4",
		"--record", record, "--set", "stop.iterations=1000000000")
	p.listens(t)
	p.stopped(t, syscall.SIGINT)
	r, err := results.Read(record)
	if err != nil || !r.Interrupted || r.Run.Stopped != results.StopInterrupted || r.Run.Iterations < 1 || r.Run.MaxChange == nil {
		t.Errorf("record %+v, %v", r, err)
	}
	if out := p.out.String(); !strings.Contains(out, "interrupted") || strings.ContainsRune(out, '\r') {
		t.Errorf("printed:\n%s", out)
	}
	tr, err := trace.Read(file)
	if err != nil {
		t.Fatalf("%v:\n%s", err, &p.out)
	}
	if sweeps, steps := sweepsOf(tr.Devices[0]); sweeps != 8 || len(steps) != 4 || tr.About.Failure != "" {
		t.Errorf("%d sweeps, %+v", sweeps, tr.About)
	}
}

// A bench that is ended by force leaves the rows that it has.
func TestABenchThatIsForced(t *testing.T) {
	record := filepath.Join(t.TempDir(), "r.json")
	p := start(t, "", "bench.(*Recorder).Measure(", "bench", "exchange", "--backend", "host", "--devices", "2", "--points", "8",
		"--paths", "staged", "--fields", "1,1024", "--record", record)
	p.listens(t)
	p.stopped(t, syscall.SIGTERM)
	r, err := results.Read(record)
	if err != nil || !r.Interrupted {
		t.Errorf("%+v, %v:\n%s", r, err, &p.out)
	}
}

// What a bench has measured is kept too where it is ended by force while it writes that.
func TestABenchThatIsForcedWhileItWrites(t *testing.T) {
	record := filepath.Join(t.TempDir(), "r.json")
	writing := make(chan error, 1)
	b := newBench(bench.Command{Options: oneRow{}, Chart: func(*results.Record) (plot.Chart, error) {
		writing <- os.Remove(record) // as if it were not written yet
		select {}
	}})
	b.backend, b.files = string(streams.Host), bench.Files{Record: record, Plot: "p.svg"}
	var notes test.Output
	w, contexts := interrupt.Catch(t.Context(), &notes), make(chan context.Context, 1)
	go func() {
		ctx := <-contexts
		test.Report(t, <-writing)
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			syscall.Kill(os.Getpid(), signal)
			<-ctx.Done() // a signal that is sent before the last one was taken may be one with it
		}
	}()
	err := w.Run(func(ctx context.Context) error {
		contexts <- ctx
		cmd := &cobra.Command{}
		cmd.SetContext(ctx)
		return b.measure(cmd, &processGroup{mpi.Alone()}, io.Discard, io.Discard)
	})
	r, read := results.Read(record)
	if err != interrupt.ErrInterrupted || read != nil || len(r.Rows) != 1 {
		t.Errorf("%v, %+v, %v: %s", err, r, read, &notes)
	}
}

// oneRow is a benchmark of nothing.
type oneRow struct{}

func (oneRow) Flags() []option.Flag { return nil }

func (oneRow) Check() error { return nil }

func (oneRow) Wants(*mpi.Processes) (bench.Wanted, error) { return bench.Wanted{Count: 1}, nil }

func (oneRow) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if err := to.Begin(results.KindPack, nil); err != nil {
		return err
	}
	to.Record.Add(results.NewRow().Number(results.Time, 1))
	return nil
}

// What whoever started the process has it ignore stays ignored, as with nohup.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	for _, s := range []struct {
		name   string
		signal syscall.Signal
	}{{"HUP", syscall.SIGHUP}, {"INT", syscall.SIGINT}} {
		t.Run(s.name, func(t *testing.T) {
			p := start(t, "trap '' "+s.name, "", "run", write(t, "c.yaml", small), "--set", "stop.iterations=1000000000")
			p.listens(t)
			test.Check(t, p.cmd.Process.Signal(s.signal))
			select {
			case <-p.ended:
				t.Fatalf("it ended: %v:\n%s", p.cmd.ProcessState, &p.out)
			case <-time.After(time.Second):
			}
			p.stopped(t, syscall.SIGTERM)
		})
	}
}
