package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
)

// recorder writes, plots and resumes the record of a benchmark. A bench calls check, begin,
// measureAll and keep, in this order.
type recorder struct {
	record, plot, resume string
	progress             bool
	older                *results.Record // what is resumed; nil where nothing is
	written              time.Time       // when the record was last written
}

// task is a part of a bench that is measured as a whole: all of its rows come into the
// record, or none.
type task struct {
	labels  results.Row // what its rows have: one that has them is its own
	measure func(ctx context.Context) ([]results.Row, error)
}

func (k *recorder) addFlags(f *pflag.FlagSet) {
	f.StringVar(&k.record, "record", "", "write the record to this JSON `file`, from time to time and at the end")
	f.StringVar(&k.plot, "plot", "", "draw what was measured, as halox plot does, to this `file` (.png, .svg, .pdf)")
	f.StringVar(&k.resume, "resume", "", "go on with this record `file` of the same bench, devices, halox and settings: what it has is not measured again; without --record it is written over")
	f.BoolVar(&k.progress, "progress", false, "say how far it is and how long it will take, also where that is no terminal")
}

// check makes sure, before anything is measured, that it can be kept, and reads what is to
// be resumed.
func (k *recorder) check() (err error) {
	if k.resume != "" {
		if k.older, err = results.Read(k.resume); err != nil {
			return fmt.Errorf("--resume: %w", err)
		}
		if k.record == "" {
			k.record = k.resume
		}
	}
	return checkFiles(k.record, k.plot)
}

// unlike are the settings by which a record may differ from that which it continues. What
// keeps devices busy is measured each time; rows have it as a label.
var unlike = []string{"record", "plot", "resume", "progress", "list", "busy"}

// begin takes over the rows of the record that is resumed, if one is. It refuses one that
// was measured by another halox, on other devices or with other settings.
func (k *recorder) begin(r *results.Record) error {
	if k.older == nil {
		return nil
	}
	if err := r.Continues(k.older, unlike...); err != nil {
		return fmt.Errorf("--resume %s: these measurements do not belong together: %w", k.resume, err)
	}
	r.Resumed, r.Started = append(k.older.Resumed, r.Started), k.older.Started
	r.Rows = append(k.older.Rows, r.Rows...)
	return nil
}

// done reports whether the record that is resumed has a row with all of these labels.
func (k *recorder) done(labels results.Row) bool {
	if k.older == nil {
		return false
	}
	_, found := k.older.Find(labels)
	return found
}

// measureAll measures the tasks that are not done, adds their rows to the record, and notes
// there what came in between. The error of a bench that was interrupted is errInterrupted.
func (k *recorder) measureAll(ctx context.Context, r *results.Record, tasks []task, notes io.Writer) error {
	var left []task
	for _, t := range tasks {
		if !k.done(t.labels) {
			left = append(left, t)
		}
	}
	bar := k.newProgress(notes, string(r.Kind), int64(len(left)))
	defer bar.close()
	k.written = time.Now()
	for i, t := range left {
		err := ctx.Err()
		if err == nil {
			err = k.measure(ctx, r, t)
		}
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			r.Interrupted = true
			return errInterrupted
		}
		if err != nil {
			r.End(err)
			return err
		}
		bar.steps(int64(i + 1))
	}
	return nil
}

// writeEvery is how much of a bench may be lost with the machine.
const writeEvery = 10 * time.Second

// measure measures one task, and writes the record where that was a while ago. As long as
// the bench goes on, what is in the file is of one that was interrupted.
func (k *recorder) measure(ctx context.Context, r *results.Record, t task) error {
	rows, err := t.measure(ctx)
	if err != nil {
		return err
	}
	r.Add(rows...)
	if k.record == "" || time.Since(k.written) < writeEvery {
		return nil
	}
	k.written = time.Now()
	part := *r
	part.Interrupted = true
	return part.Write(k.record)
}

// keep prints the table of what was measured, and writes the files that are wanted.
func (k *recorder) keep(r *results.Record, out, notes io.Writer) error {
	source := results.Source{Record: r}
	err := results.WriteTable(out, "text", source)
	if k.record != "" {
		err = errors.Join(err, r.Write(k.record))
	}
	if k.plot == "" {
		return err
	}
	chart, plotErr := plot.New("", plot.Options{}, source)
	if errors.Is(plotErr, plot.ErrNothing) {
		fmt.Fprintf(notes, "%s is not written: %v\n", k.plot, plotErr)
		return err
	}
	if plotErr == nil {
		plotErr = plot.Write(k.plot, chart)
	}
	return errors.Join(err, plotErr)
}

// newProgress shows how many tasks of a bench are done: by a bar on a terminal, elsewhere
// by a line from time to time if that is wanted.
func (k *recorder) newProgress(w io.Writer, what string, tasks int64) *progress {
	switch {
	case isTerminal(w):
		return startProgress(newBarOf(w, tasks, what, "parts"))
	case k.progress:
		return startLines(w, what, tasks)
	}
	return startProgress(nil)
}
