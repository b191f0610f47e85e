package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// benchmark is the options of a benchmark of internal/bench.
type benchmark interface {
	Check() error
	Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error
}

// benchOutput is what a bench leaves beside its record; without a function it is as that of any
// other record.
type benchOutput struct {
	table func(w io.Writer, r *results.Record) error
	chart func(r *results.Record) (plot.Chart, error)
	check func(l *launched) error // before anything is measured; nil: nothing is checked
}

// run is a bench of one process.
func (b *benchFlags) run(cmd *cobra.Command, what benchmark, open openBench, leave benchOutput) error {
	return takePart(cmd, func(l *launched, out, notes io.Writer) error {
		if err := l.alone(cmd.CommandPath(), "start it without one"); err != nil {
			return err
		}
		return b.measure(cmd, l, what, open, leave, out, notes)
	})
}

// runTogether is a bench that several processes make together.
func (b *benchFlags) runTogether(cmd *cobra.Command, what benchmark, open openBench, leave benchOutput) error {
	return takePart(cmd, func(l *launched, out, notes io.Writer) error {
		return b.measure(cmd, l, what, open, leave, out, notes)
	})
}

// measure checks the options, opens the devices, measures, and prints and keeps what came of it.
// Interrupted or failed, it keeps what it had.
func (b *benchFlags) measure(cmd *cobra.Command, l *launched, what benchmark, open openBench, leave benchOutput, out, notes io.Writer) (err error) {
	ctx := cmd.Context()
	to := &bench.Recorder{Files: b.files, Settings: settingsOf(cmd.Flags()), Notes: notes, Progress: b.showProgress(notes), Processes: l.processes}
	if err := cmp.Or(b.check(), what.Check()); err != nil {
		return err
	}
	if err := to.Check(); err != nil {
		return err
	}
	if leave.check != nil {
		if err := leave.check(l); err != nil {
			return err
		}
	}
	on, err := open(ctx, l.processes, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }() // with all that is on the devices
	to.New = func(kind results.Kind, settings any, links *p2p.Links) *results.Record {
		return benchRecord(ctx, on, l.processes, kind, settings, links)
	}
	if leave.table == nil {
		leave.table = writeTable
	}
	during(ctx, "measuring", func() string { return keepPart(to, leave, out) })
	failure := what.Run(ctx, &bench.Machine{Session: on, Program: version + builtFrom(), Processes: l.processes}, to)
	if failure = interruption(ctx, failure); !l.processes.IsAlone() && errors.Is(failure, context.Canceled) {
		failure = errInterrupted // of another process
	}
	if to.Record == nil || !l.speaks() {
		during(ctx, "closing the devices", nil)
		return failure
	}
	during(ctx, "writing what was measured", func() string { return keepRecord(to.Record, to.Files.Record) })
	return errors.Join(failure, to.Keep(leave.chart), leave.table(out, to.Record))
}

// keepPart writes the record of a bench that is ended by force, and prints what it has.
func keepPart(to *bench.Recorder, leave benchOutput, out io.Writer) string {
	part := to.Part()
	if part == nil || !to.Processes.IsAlone() && to.Processes.Rank > 0 {
		return ""
	}
	said := keepRecord(part, to.Files.Record)
	if err := leave.table(out, part); err != nil {
		said += fmt.Sprintf("; the table is not whole: %v", err)
	}
	return said
}

// keepRecord writes a record, if a name is given, and says so; the bench may be writing it too.
func keepRecord(r *results.Record, name string) string {
	if name == "" {
		return ""
	}
	if err := r.Write(name); err != nil {
		return fmt.Sprintf("; there is no record: %v", err)
	}
	return fmt.Sprintf("; %s has the %d rows until then", name, len(r.Rows))
}

// writeTable prints a record as halox results does.
func writeTable(w io.Writer, r *results.Record) error {
	return results.WriteTable(w, "text", results.Source{Record: r})
}

// showProgress shows how many parts are done: by a bar on a terminal, elsewhere by a line from time
// to time if that is wanted.
func (b *benchFlags) showProgress(w io.Writer) func(what string, parts int64) (func(int64), func()) {
	return func(what string, parts int64) (func(int64), func()) {
		var p *progress
		switch {
		case isTerminal(w):
			p = startProgress(newBarOf(w, parts, what, "parts"))
		case b.progress:
			p = startLines(w, what, parts)
		default:
			p = startProgress(nil)
		}
		return p.steps, p.close
	}
}
