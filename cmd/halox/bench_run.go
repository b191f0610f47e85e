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
}

// run checks the options, opens the devices, measures, and prints and keeps what came of it.
// Interrupted or failed, it keeps what it had.
func (b *benchFlags) run(cmd *cobra.Command, what benchmark, open openBench, leave benchOutput) (err error) {
	ctx := cmd.Context()
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	to := &bench.Recorder{Files: b.files, Settings: settingsOf(cmd.Flags()), Notes: notes, Progress: b.showProgress(notes)}
	if err := cmp.Or(b.check(), what.Check(), to.Check()); err != nil {
		return err
	}
	on, err := open(ctx, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }() // with all that is on the devices
	to.New = func(kind results.Kind, settings any, links *p2p.Links) *results.Record {
		return benchRecord(ctx, on, kind, settings, links)
	}
	if leave.table == nil {
		leave.table = writeTable
	}
	during(ctx, "measuring", func() string { return keepPart(to, leave, out) })
	failure := interruption(ctx, what.Run(ctx, &bench.Machine{Session: on, Program: version + builtFrom()}, to))
	during(ctx, "writing what was measured", nil)
	if to.Record == nil {
		return failure
	}
	return errors.Join(failure, to.Keep(leave.chart), leave.table(out, to.Record))
}

// keepPart writes the record of a bench that is ended by force, and prints what it has.
func keepPart(to *bench.Recorder, leave benchOutput, out io.Writer) string {
	part := to.Part()
	if part == nil {
		return ""
	}
	said := ""
	if name := to.Files.Record; name != "" {
		said = fmt.Sprintf("; %s has the %d rows until then", name, len(part.Rows))
		if err := part.Write(name); err != nil {
			said = fmt.Sprintf("; there is no record: %v", err)
		}
	}
	if err := leave.table(out, part); err != nil {
		said += fmt.Sprintf("; the table is not whole: %v", err)
	}
	return said
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
