package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Sizes of series of a part of the grid that are read while steps wait, so that nothing is copied on the devices: up to
// smallBytes or, if they are at most a slicePart-th of the grid, sliceBytes.
const (
	smallBytes = 16 << 20
	sliceBytes = 1 << 30
	slicePart  = 16
)

// isSmall reports whether a series is read while steps wait.
func (r *Run) isSmall(spec *SeriesSpec) bool {
	s := r.selected(spec)
	points, grid := s.size.Product(), r.Place.Grid.Points()
	bytes := points * int64(r.Element.Size()*len(spec.Fields))
	return points < grid && bytes <= smallBytes || points*slicePart <= grid && bytes <= sliceBytes
}

// Copied returns the names of the fields that a Writer of series copies on their devices. It takes no Fields of the
// run.
func (r *Run) Copied(specs []SeriesSpec) (names []string) {
	for _, spec := range specs {
		for _, name := range spec.Fields {
			if !r.isSmall(&spec) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (r *Run) newSeries(spec SeriesSpec) (s *series, err error) {
	s = &series{selection: r.selected(&spec), spec: spec, run: r}
	if s.fields, err = r.named(spec.Fields); err != nil {
		return nil, err
	}
	s.spec.Element = cmp.Or(spec.Element, r.Element)
	s.small = r.isSmall(&spec)
	base := filepath.Join(spec.Folder, spec.Name)
	switch spec.Format {
	case "vti":
		s.format = &vtiFormat{s, base}
	case "zarr":
		s.format = &zarrFormat{series: s, base: base}
	case "npy":
		s.format = &npyFormat{s, base}
	default:
		return nil, fmt.Errorf("series: the format must be vti, zarr or npy, got %q", spec.Format)
	}
	s.result.File = s.format.file()
	return s, nil
}

// A Writer writes the series of a run. Steps wait until the outputs before are complete; then they go on while a copy
// on the devices is written. All processes call its methods.
type Writer struct {
	run       *Run
	all       []*series
	processes *mpi.Processes // a duplicate, for the background
	snapshot  *halo.Snapshot // nil if all series are small, or without memory
	copied    []Field        // fields in the snapshot
	writing   chan error     // result of the outputs in the background; nil if there are none
	failures  []failedOutput // of these outputs, on rank 0
	waited    time.Duration
	resources streams.Resources
}

// A failedOutput is one that could not be written.
type failedOutput struct {
	output string
	err    error
}

// backgroundLimit is how long processes wait for each other in the background, which may wait for disks.
const backgroundLimit = time.Hour

// NewWriter prepares series. Start begins the files.
func NewWriter(ctx context.Context, r *Run, specs []SeriesSpec) (w *Writer, err error) {
	w = &Writer{run: r}
	for _, spec := range specs {
		s, err := r.newSeries(spec)
		if err != nil {
			return nil, err
		}
		w.all = append(w.all, s)
	}
	if w.copied, err = r.named(r.Copied(specs)); err != nil {
		return nil, err
	}
	if w.processes, err = r.Place.Processes.Duplicate(ctx, backgroundLimit); err != nil {
		return nil, err
	}
	w.resources.Add(w.processes)
	if len(w.copied) > 0 {
		w.snapshot, err = halo.NewSnapshot(ctx, now(w.copied)...)
		switch {
		case err == nil:
			w.resources.Add(w.snapshot)
		case errors.Is(err, streams.ErrOutOfMemory):
			w.snapshot, err = nil, nil
		default:
			return nil, errors.Join(err, w.resources.Close())
		}
	}
	return w, nil
}

func now(fields []Field) (all []*halo.Field) {
	for _, f := range fields {
		all = append(all, f.Now())
	}
	return all
}

// InBackground reports whether steps go on while series are written. Otherwise there is no memory for a copy.
func (w *Writer) InBackground() bool { return w.snapshot != nil || len(w.copied) == 0 }

// Waited returns how long steps have waited for series.
func (w *Writer) Waited() time.Duration { return w.waited }

// Results returns what became of the series.
func (w *Writer) Results() (all []results.Series) {
	for _, s := range w.all {
		all = append(all, s.result)
	}
	return all
}

// Start begins the series before the first step of a run. If it continues after a step, the entries up to it stay.
func (w *Writer) Start(ctx context.Context, step int64) error {
	for _, s := range w.all {
		var err error
		if w.processes.Rank == 0 {
			if s.entries, err = s.format.start(step); err == nil {
				w.run.checkGap("output.series "+s.format.file(), s.spec.Every, s.last(), step)
			}
		}
		if err = w.processes.Agree(ctx, "begin a series", err); err != nil {
			return fmt.Errorf("output.series %s: %w", s.format.file(), err)
		}
		if s.entries, err = mpi.Broadcast(ctx, w.processes, "begin a series", s.entries, 0); err != nil {
			return err
		}
	}
	return nil
}

// Event returns the event that writes all series.
func (w *Writer) Event() *scheme.Event {
	return &scheme.Event{Name: "write the series", First: true,
		Next: func(step int64) (first int64) {
			for _, s := range w.all {
				if next := s.spec.Every.next(w.run.Length)(step); first == 0 || next < first {
					first = next
				}
			}
			return first
		},
		Do: w.do}
}

func (w *Writer) do(ctx context.Context, so scheme.Result) error {
	begin, step := time.Now(), so.Step
	e := entry{Step: step, Time: w.run.now(step)}
	defer func() { w.waited += time.Since(begin) }()
	if err := w.wait(); err != nil {
		return err
	}
	var due []*series
	var from []source
	copied := false
	for _, s := range w.all {
		if !s.isDue(step) {
			continue
		}
		one, err := source(nil), error(nil)
		switch {
		case s.small:
			one, err = s.memory(ctx)
		case w.snapshot == nil:
			if err = errors.Join(w.write(ctx, s, e, s.read(s.now())), w.report()); err == nil {
				continue
			}
		default:
			if !copied {
				err = w.snapshot.Take(now(w.copied)...)
				copied = true
			}
			one = s.read(w.copies(s))
		}
		if err != nil {
			return err
		}
		due, from = append(due, s), append(from, one)
	}
	if len(due) == 0 {
		return nil
	}
	w.writing = make(chan error, 1)
	go func() {
		var err error
		for i, s := range due {
			if err == nil {
				err = w.write(ctx, s, e, from[i])
			}
		}
		w.writing <- err
	}()
	return nil
}

// copies returns the fields of a series in the snapshot.
func (w *Writer) copies(s *series) (all []*halo.Field) {
	for _, f := range s.fields {
		i := slices.IndexFunc(w.copied, func(g Field) bool { return g.Name == f.Name })
		all = append(all, w.snapshot.Fields()[i])
	}
	return all
}

// wait waits for the outputs in the background.
func (w *Writer) wait() (err error) {
	if w.writing != nil {
		err = <-w.writing
		w.writing = nil
	}
	return errors.Join(err, w.report())
}

// report reports the outputs that failed.
func (w *Writer) report() (err error) {
	for _, f := range w.failures {
		err = errors.Join(err, w.run.Failed(f.output, f.err))
	}
	w.failures = nil
	return err
}

// write writes an entry of a series. An entry that fails on a process is absent.
func (w *Writer) write(ctx context.Context, s *series, e entry, from source) error {
	begin := time.Now()
	defer func() { s.result.Seconds += time.Since(begin).Seconds() }()
	bytes, failure, err := s.format.write(ctx, e, s.entries, from)
	if err != nil {
		return err
	}
	type part struct {
		Bytes   int64
		Failure string
	}
	mine := part{Bytes: bytes}
	if failure != nil {
		mine.Failure = failure.Error()
	}
	all, err := mpi.Gather(ctx, w.processes, "see whether a series was written", mine)
	if err != nil {
		return err
	}
	var failed []string
	bytes = 0
	for _, of := range all {
		if bytes += of.Bytes; of.Failure != "" {
			failed = append(failed, of.Failure)
		}
	}
	if len(failed) == 0 && w.processes.Rank == 0 {
		if failure = s.format.commit(append(slices.Clone(s.entries), e)); failure != nil {
			failed = []string{failure.Error()}
		}
	}
	if failed, err = mpi.Broadcast(ctx, w.processes, "see whether a series was written", failed, 0); err != nil {
		return err
	}
	if len(failed) > 0 {
		s.result.Failed++
		s.format.discard(e)
		if w.processes.Rank == 0 {
			w.failures = append(w.failures, failedOutput{fmt.Sprintf("output.series %s, step %d", s.format.file(), e.Step),
				errors.New(failed[0])})
		}
		return nil
	}
	s.entries = append(s.entries, e)
	s.result.Written++
	s.result.Bytes += bytes
	return nil
}

// Close waits for the outputs in the background and frees the copies.
func (w *Writer) Close() error {
	err := w.wait()
	return errors.Join(err, w.resources.Close())
}
