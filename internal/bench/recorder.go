// Package bench runs benchmarks: it runs the measurements that a record lacks, writes the record from time to time, and
// draws it. The benchmarks are in subpackages; each is a [Command] with a struct of options.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/results/plot"
	"github.com/halox/halox/streams"
)

// Files are the names of the files of a benchmark; empty for none.
type Files struct {
	Record string // record to write
	Plot   string // plot to draw
	Resume string // record to continue; overwritten unless Record is set
}

// check returns an error unless the files can be written.
func (f Files) check() error {
	record := option.Record("--record", f.Record)
	if f.Record == f.Resume { // it is continued under its own name
		record.Ends = nil
	}
	return option.CheckFiles([]option.File{record, option.Drawing("--plot", f.Plot)})
}

// measured reports whether a row has numbers. A row without numbers has a note with the reason.
func measured(row results.Row) bool { return len(row.Values) > 0 }

// Measured returns the record without the rows that have no numbers.
func Measured(r *results.Record) *results.Record {
	part := *r
	part.Rows = slices.DeleteFunc(slices.Clone(r.Rows), func(row results.Row) bool { return !measured(row) })
	return &part
}

// NameOf names a row by its labels.
func NameOf(row results.Row) string {
	var parts []string
	for _, l := range row.Labels {
		parts = append(parts, l.Name+" "+row.Text(l.Name))
	}
	return strings.Join(parts, ", ")
}

// noteLeftOut prints the rows that were not measured, with the reasons.
func noteLeftOut(r *results.Record, notes io.Writer) {
	for _, row := range r.Rows {
		if !measured(row) {
			fmt.Fprintf(notes, "not measured: %s: %s\n", NameOf(row), row.Note)
		}
	}
}

// ErrCorrupts says that a link between devices corrupts data.
var ErrCorrupts = errors.New("a link corrupts data")

// checkLeftOut returns an error if a link corrupts data, or if every row was left out.
func checkLeftOut(r *results.Record) error {
	corrupts := func(row results.Row) bool { return !measured(row) && strings.Contains(row.Note, p2p.CorruptsData) }
	if slices.ContainsFunc(r.Rows, corrupts) {
		return ErrCorrupts
	}
	if r.Interrupted || r.Failure != "" || len(r.Rows) == 0 || slices.ContainsFunc(r.Rows, measured) {
		return nil
	}
	return fmt.Errorf("nothing could be measured: all was left out, such as %s: %s", NameOf(r.Rows[0]), r.Rows[0].Note)
}

// Task is a part of a benchmark that is measured as a whole: the record gets all of its rows, or none.
type Task struct {
	Labels  results.Row // labels of its rows: rows with these labels belong to the task
	Measure func(ctx context.Context, open *streams.Resources) ([]results.Row, error)
}

// OneRow returns a task of one row. Resources that measure adds are closed after it.
func OneRow(
	labels results.Row, measure func(ctx context.Context, open *streams.Resources) (results.Row, error),
) Task {
	return Task{labels, func(ctx context.Context, open *streams.Resources) ([]results.Row, error) {
		row, err := measure(ctx, open)
		return []results.Row{row}, err
	}}
}

// Recorder writes, draws and resumes the record of a benchmark. The caller of a benchmark calls Check before Run and
// Keep after it. Run calls Begin and then Measure.
type Recorder struct {
	Files    Files
	Settings map[string]any // of the record; Run may add to them
	// New begins a record with the program, the machine and the devices, and with the links between the devices if they
	// are given.
	New   func(kind results.Kind, settings any, links *p2p.Links) *results.Record
	Notes io.Writer // for the user
	// Progress shows the number of completed parts, until end is called; nil shows nothing.
	Progress func(what string, parts int64) (done func(parts int64), end func())
	// Processes are those that measure together, each with a recorder with the same settings; nil for a single process.
	// Rank 0 keeps the record and the files; Files of other ranks are ignored.
	Processes *mpi.Processes

	Record *results.Record // nil until Begin
	Wrote  []string        // the files that Keep has written
	mu     sync.Mutex      // guards the record, since Part may be called at any time
	older  *results.Record // the record that is resumed, or nil
	saved  time.Time       // time of the last write of the record
}

// Check checks, before anything is measured, that the files can be written, and reads the record to resume.
func (r *Recorder) Check() (err error) {
	if !r.keeps() {
		r.Files = Files{}
	}
	if r.Files.Resume != "" {
		if r.older, err = results.Read(r.Files.Resume); err != nil {
			err = fmt.Errorf("--resume: %w", err)
		} else if r.Files.Record == "" {
			r.Files.Record = r.Files.Resume
		}
	}
	if err == nil {
		err = r.Files.check()
	}
	if err := r.Processes.Agree(context.Background(), "check the files", err); err != nil {
		return err
	}
	// all processes measure the tasks that the older record lacks
	r.older, err = mpi.Broadcast(context.Background(), r.Processes, "resume the record", r.older, 0)
	return err
}

// keeps reports whether this process keeps the record: rank 0 does.
func (r *Recorder) keeps() bool { return r.Processes.OrAlone().Rank == 0 }

// unlike are the settings that may differ between a record and the record that it continues. The kernel that keeps
// devices busy is measured each time; rows have it as a label.
var unlike = []string{"record", "plot", "resume", "list", "busy", "network-file"}

// Begin begins the record, with the rows of the resumed record, if there is one. It rejects a record that was measured
// by another version of halox, on other devices or with other settings.
func (r *Recorder) Begin(kind results.Kind, links *p2p.Links) error {
	begun := r.New(kind, r.Settings, links)
	if r.older != nil {
		if r.keeps() {
			if err := begun.Continues(r.older, unlike...); err != nil {
				return fmt.Errorf("--resume %s: must be a record of the same benchmark: %w", r.Files.Resume, err)
			}
		}
		begun.Resumed, begun.Started = append(r.older.Resumed, begun.Started), r.older.Started
		begun.Rows = append(r.older.Rows, begun.Rows...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Record = begun
	return nil
}

// notDone returns the tasks without rows in the resumed record. The row of a task has its labels, and none that other
// tasks have in addition to these; the other labels of a row are results of the measurement.
func (r *Recorder) notDone(tasks []Task) (left []Task) {
	if r.older == nil {
		return tasks
	}
	var names results.Row
	for _, t := range tasks {
		for _, l := range t.Labels.Labels {
			names = names.Label(l.Name, "any")
		}
	}
	for _, t := range tasks {
		same := func(row results.Row) bool {
			return !slices.ContainsFunc(names.Labels,
				func(l results.Label) bool { return row.Text(l.Name) != t.Labels.Text(l.Name) })
		}
		if !slices.ContainsFunc(r.older.Rows, same) {
			left = append(left, t)
		}
	}
	return left
}

// Measure runs the tasks that are not done, adds their rows to the record, and records interruptions. If the context
// ends, it returns the context's error.
func (r *Recorder) Measure(ctx context.Context, tasks []Task) error {
	left := r.notDone(tasks)
	done := func(int64) {}
	if r.Progress != nil {
		var end func()
		done, end = r.Progress(string(r.Record.Kind), int64(len(left)))
		defer end()
	}
	r.saved = time.Now()
	for i, t := range left {
		err := AgreeToGoOn(ctx, r.Processes, nil)
		if err == nil {
			err = r.measure(ctx, t)
		}
		if errors.Is(err, context.Canceled) || err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			r.Record.Interrupted = true
			return cmp.Or(ctx.Err(), context.Canceled)
		}
		if err != nil {
			r.Record.End(err)
			return err
		}
		done(int64(i + 1))
	}
	return nil
}

// saveEvery is the time between two writes of the record.
const saveEvery = 10 * time.Second

// measure runs one task, and writes the record if the last write was saveEvery ago. Until the benchmark ends, the file
// has the record of an interrupted one. A task that does not fit into memory, or is left out, adds a row with the
// reason.
func (r *Recorder) measure(ctx context.Context, t Task) error {
	var open streams.Resources
	rows, err := t.Measure(ctx, &open)
	err = errors.Join(err, open.Close())
	if !r.Processes.IsAlone() {
		err = AgreeToGoOn(ctx, r.Processes, err)
	}
	if errors.Is(err, streams.ErrOutOfMemory) || errors.Is(err, ErrLeftOut) { // other tasks may fit
		without := t.Labels
		without.Note = err.Error()
		rows, err = []results.Row{without}, nil
	} else if err != nil {
		err = fmt.Errorf("%s: %w", NameOf(t.Labels), err)
	}
	if err == nil { // rows on other processes may lack numbers
		rows, err = mpi.Broadcast(context.Background(), r.Processes, "share the measured rows", rows, 0)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.Record.Add(rows...)
	r.mu.Unlock()
	if r.Files.Record == "" || time.Since(r.saved) < saveEvery {
		return nil
	}
	r.saved = time.Now()
	return r.Part().Write(r.Files.Record)
}

// Part returns the record of a benchmark that is interrupted now, with the rows so far; nil before Begin. It may be
// called from any goroutine.
func (r *Recorder) Part() *results.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Record == nil {
		return nil
	}
	part := *r.Record
	part.Interrupted = true
	return &part
}

// WriteTable prints a record like halox results.
func WriteTable(w io.Writer, r *results.Record) error {
	return results.WriteTable(w, "text", results.Source{Record: r})
}

// Keep writes the record, draws it and prints what was left out. It is an error if a link corrupts data, or if a
// completed benchmark left out all rows. draw makes the plot; nil: the default plot of the record's kind.
func (r *Recorder) Keep(draw func(*results.Record) (plot.Chart, error)) error {
	if !r.keeps() {
		return nil
	}
	var err error
	if r.Files.Record != "" {
		err = r.wrote(r.Files.Record, r.Record.Write(r.Files.Record))
	}
	err = errors.Join(err, r.draw(draw))
	noteLeftOut(r.Record, r.Notes)
	return errors.Join(err, checkLeftOut(r.Record))
}

// draw draws the requested plot.
func (r *Recorder) draw(draw func(*results.Record) (plot.Chart, error)) error {
	if r.Files.Plot == "" {
		return nil
	}
	if draw == nil {
		draw = func(r *results.Record) (plot.Chart, error) {
			return plot.New("", plot.Options{}, results.Source{Record: r})
		}
	}
	chart, err := draw(r.Record)
	if errors.Is(err, plot.ErrNothing) {
		fmt.Fprintf(r.Notes, "%s is not written: %v\n", r.Files.Plot, err)
		return nil
	}
	if err != nil {
		return err
	}
	return r.wrote(r.Files.Plot, plot.Write(r.Files.Plot, chart))
}

// wrote notes a file that was written, unless that failed with err, and returns err.
func (r *Recorder) wrote(file string, err error) error {
	if err == nil {
		r.Wrote = append(r.Wrote, file)
	}
	return err
}
