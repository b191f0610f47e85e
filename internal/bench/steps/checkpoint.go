package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
)

// What is measured of checkpoints: values of label what.
const (
	stepsMeanwhile = "steps"
	writing        = "write"
	reading        = "read"
	statistics     = "statistics"
)

// checkpointOptions selects what is measured of checkpoints.
type checkpointOptions struct {
	common
	What     []string
	Schemes  []string // of the steps
	Groups   []int    // steps between two exchanges
	Every    []int    // steps between checkpoints, or samples of statistics
	Compress []string
	Folder   string // "" for a temporary one

	folder string // of the checkpoints of a row, which is removed after it
}

// CheckpointCommand returns halox bench checkpoint.
func CheckpointCommand() bench.Command {
	o := &checkpointOptions{common: defaults(), What: whats(), Schemes: []string{string(scheme.Auto)},
		Groups: []int{1}, Every: []int{1000}, Compress: []string{string(checkpoint.None)}}
	o.Points = []int{256}
	return bench.Command{
		Name: "checkpoint", Short: "Time checkpoints: writing, reading, and the slowdown of steps", Options: o,
		About: `Solves the heat equation as halox bench schemes does, in four kinds of rows:

steps: ` + fmt.Sprint(intervals) + ` intervals of --every steps, alternately with and without a checkpoint at the start.
step is the time per step with checkpoints, step_alone without, and slowdown the additional time.
time is that from the start of a checkpoint until it is complete. skipped counts checkpoints that
were due while another was being written. waited counts checkpoints that steps waited for, because
a device had no memory for a copy.

write: one checkpoint while no steps run, in alternation with two reference measurements: copying
as many bytes from the devices to pinned memory (copy_time), and writing the bytes of its files
to one file in the same folder, with fsync (file_time). The share is the longer of these two
times, divided by that of the checkpoint.

read: finding a checkpoint, which verifies all of its files (find), and reading it into the
fields (read); time is the sum. file_time is the time of plain reads of the same files. The
files were written or read just before, so all three read from memory if they fit there. The
share is file_time divided by time.

statistics: steps with and without a sample of mean, variance, minimum and maximum of the field
every --every steps, alternately as in steps.

Each row is measured in at least ` + fmt.Sprint(minTurns) + ` turns, and until --budget is spent. Checkpoints are written to a
subfolder of --folder, which is removed. All processes must share it. Ctrl-C keeps the results
so far; --resume continues.`,
		Example: `  halox bench checkpoint --record checkpoint.json
  halox bench checkpoint --folder /dev/shm --points 512 --precisions float64 --schemes fused,blocked
  halox bench checkpoint --what write,read --compress none,zstd --points 256,512
  halox plot checkpoint.json --kind slowdown -o slowdown.svg`,
	}
}

func whats() []string { return []string{stepsMeanwhile, writing, reading, statistics} }

// Flags returns the flags.
func (o *checkpointOptions) Flags() []option.Flag {
	flags := o.common.flags()
	for i, f := range flags {
		if f.Name == "points" {
			flags[i].Help = "points along each axis"
		}
	}
	return append(flags, []option.Flag{
		{Name: "what", Value: &o.What, Help: "kinds of rows: {}", Choices: whats()},
		{Name: "schemes", Value: &o.Schemes, Help: "schemes of the steps: {}",
			Choices: append([]string{string(scheme.Auto)}, option.Texts(scheme.All())...)},
		exchangeSteps(&o.Groups),
		{Name: "every", Value: &o.Every, Help: "steps between checkpoints, or samples of statistics", From: 1,
			To: option.NoLimit},
		{Name: "compress", Value: &o.Compress, Help: "compressions: {}",
			Choices: option.Texts([]checkpoint.Compression{checkpoint.None, checkpoint.Zstd, checkpoint.Auto})},
		{Name: "folder", Value: &o.Folder, Help: "existing `folder` for the checkpoints (default the temporary folder of the system)"},
	}...)
}

// Check completes the options.
func (o *checkpointOptions) Check() error {
	if err := o.complete(); err != nil || o.Folder == "" {
		return err
	}
	info, err := os.Stat(o.Folder)
	if err == nil && !info.IsDir() {
		err = errors.New("must be a folder")
	}
	if err != nil {
		return fmt.Errorf("--folder %s: %w", o.Folder, err)
	}
	return nil
}

// Run measures checkpoints.
func (o *checkpointOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) (err error) {
	r, err := o.newRun(ctx, results.KindCheckpoint, on, to)
	if err != nil {
		return err
	}
	var folder string
	if r.Processes.OrAlone().Rank == 0 {
		if folder, err = os.MkdirTemp(o.Folder, "halox-bench-"); err == nil {
			defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		}
	}
	if err := bench.AgreeToGoOn(ctx, r.Processes, err); err != nil {
		return err
	}
	if folder, err = mpi.Broadcast(ctx, r.Processes, "name of the folder", folder, 0); err != nil {
		return err
	}
	o.folder = filepath.Join(folder, "checkpoints")
	return to.Measure(ctx, o.tasks(r))
}

// tasks returns a task for each row.
func (o *checkpointOptions) tasks(r *run) (all []bench.Task) {
	for c, points := range o.problems() {
		for _, devices := range o.counts(r.Machine) {
			c.size, c.devices, c.path = o.cube(points), devices, p2p.Auto
			c.scheme, c.order = scheme.TwoStream, scheme.LeftRight
			for _, compress := range o.Compress {
				row := results.NewRow().Label("devices", devices).Label("precision", c.precision).
					Label("points", points).Label("compress", compress)
				of := saved{o.folder, checkpoint.Compression(compress), c}
				for _, what := range o.What {
					row := row.Label("what", what)
					switch what {
					case statistics:
						if compress == o.Compress[0] {
							all = append(all, o.stepTasks(r, row.Label("compress", ""), of, saved.accumulate)...)
						}
					case writing:
						all = append(all, r.taskBy(row, c, of.write))
					case reading:
						all = append(all, r.taskBy(row, c, of.read))
					default:
						all = append(all, o.stepTasks(r, row, of, saved.meanwhile)...)
					}
				}
			}
		}
	}
	return all
}

// stepTasks returns the tasks of steps with events.
func (o *checkpointOptions) stepTasks(
	r *run, row results.Row, of saved,
	measure func(of saved, ctx context.Context, on *run, row results.Row, every int64) (results.Row, error),
) (all []bench.Task) {
	for _, name := range o.Schemes {
		c := of.stepCase
		c.scheme = scheme.Scheme(name)
		c.order = c.scheme.Order("")
		groups := o.Groups
		if needs := c.scheme.Needs(); c.scheme != scheme.Auto && (!needs.Groups || c.devices == 1 && !needs.LocalGroups) {
			groups = []int{1}
		}
		for _, c.group = range groups {
			for _, every := range o.Every {
				of := saved{of.folder, of.compress, c}
				row := row.Label("scheme", name).Label("steps_per_exchange", c.group).Label("every", every)
				all = append(all, r.taskBy(row, c,
					func(ctx context.Context, on *run, row results.Row) (results.Row, error) {
						return measure(of, ctx, on, row, int64(every))
					}))
			}
		}
	}
	return all
}

// intervals is how many intervals between checkpoints a turn has.
const intervals = 2

// saved is a case, and how its checkpoints are written.
type saved struct {
	folder   string
	compress checkpoint.Compression
	stepCase
}

// saver writes the checkpoints of a solver.
type saver struct {
	*checkpoint.Writer
	setup  *setup
	solver *solvers.Solver

	lock sync.Mutex
	took []float64 // time until each was whole, in microseconds
}

// during calls do with a saver for the fields of a case, and adds the size of its last checkpoint to the row.
func (s saved) during(
	ctx context.Context, on *run, row results.Row, do func(*saver, results.Row) (results.Row, error),
) (_ results.Row, err error) {
	setup, solver, err := on.open(ctx, s.stepCase)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, solver.Close()) }()
	v := &saver{setup: setup, solver: solver}
	report := func(status checkpoint.Status) {
		v.lock.Lock()
		defer v.lock.Unlock()
		if status.Err == nil {
			v.took = append(v.took, status.Took.Seconds()*1e6)
		}
	}
	o := checkpoint.Options{Folder: s.folder, Keep: 1, Compress: s.compress, Report: report}
	if v.Writer, err = checkpoint.NewWriter(ctx, o, solver.State()...); err != nil {
		return row, err
	}
	defer func() {
		if err = errors.Join(err, v.Close(context.WithoutCancel(ctx))); on.Processes.OrAlone().Rank == 0 {
			err = errors.Join(err, os.RemoveAll(s.folder))
		}
	}()
	if row, err = do(v, row); err == nil {
		row = row.Label("bytes", v.Status().Bytes).Label("waited", v.Status().Waited).
			Label("parts", domain.Times(setup.Place.Parts[:len(s.size)]))
		row.Note = setup.note()
	}
	return row, err
}

// begin begins a checkpoint of a step.
func (v *saver) begin(ctx context.Context, step int64) error {
	return v.Write(ctx, step, struct{}{}, v.solver.State()...)
}

// whole waits for the checkpoint. One that could not be written, such as to a full disk, leaves the row out.
func (v *saver) whole(ctx context.Context) error {
	if err := v.Wait(ctx); err != nil {
		return err
	}
	return bench.LeaveOut(v.Status().Err)
}

// meanwhile measures steps with and without checkpoints.
func (s saved) meanwhile(ctx context.Context, on *run, row results.Row, every int64) (results.Row, error) {
	return s.during(ctx, on, row, func(v *saver, row results.Row) (results.Row, error) {
		row, err := alternate(ctx, on, row, v.setup, v.solver, every, v.begin, v.whole)
		row = row.Value(results.Time, measure.NewSample(v.took))
		return row.Label("written", v.Status().Written).Label("skipped", v.Status().Skipped), err
	})
}

// accumulate measures steps of a case with and without statistics.
func (s saved) accumulate(ctx context.Context, on *run, row results.Row, every int64) (_ results.Row, err error) {
	s.statistics = []solvers.StatisticKind{solvers.Mean, solvers.Variance, solvers.Min, solvers.Max}
	setup, solver, err := on.open(ctx, s.stepCase)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, solver.Close()) }()
	row = row.Label("parts", domain.Times(setup.Place.Parts[:len(s.size)]))
	row.Note = setup.note()
	return alternate(ctx, on, row, setup, solver, every,
		func(ctx context.Context, _ int64) error { return solver.Statistics.Take(ctx) },
		func(context.Context) error { return nil })
}

// alternate adds to a row the time of steps without and with an event every so many steps. after ends what the events
// of a turn have begun.
func alternate(
	ctx context.Context, on *run, row results.Row, setup *setup, solver *solvers.Solver, every int64,
	event func(ctx context.Context, step int64) error, after func(ctx context.Context) error,
) (results.Row, error) {
	last, options := int64(0), setup.Options()
	options.Steps = intervals * every
	due := &scheme.Event{Name: "interrupt the steps", First: true, Next: func(step int64) int64 {
		if next := scheme.Every(every)(step); next < last {
			return next
		}
		return 0
	}, Do: func(ctx context.Context, so scheme.Result) error { return event(ctx, so.Step) }}
	run := func(events ...*scheme.Event) (float64, error) {
		last = solver.Done() + options.Steps
		start := time.Now()
		result, err := solver.RunEvents(ctx, options, events...)
		took := time.Since(start)
		if err == nil && result.Stopped == scheme.StoppedInterrupted {
			err = context.Canceled
		}
		return took.Seconds() * 1e6 / float64(options.Steps), left(err)
	}
	all, err := turns(ctx, on, func() (float64, error) { return run() }, func() (float64, error) {
		took, err := run(due)
		return took, errors.Join(err, after(ctx))
	})
	if err != nil {
		return row, err
	}
	var slowdowns []float64
	for i, without := range all[0] {
		slowdowns = append(slowdowns, all[1][i]/without-1)
	}
	return row.Value(results.Step, measure.NewSample(all[1])).Value(results.StepAlone, measure.NewSample(all[0])).
		Value(results.Slowdown, measure.NewSample(slowdowns)), nil
}

// write measures checkpoints without steps meanwhile.
func (s saved) write(ctx context.Context, on *run, row results.Row) (results.Row, error) {
	return s.during(ctx, on, row, func(v *saver, row results.Row) (_ results.Row, err error) {
		out, err := newCopyOut(v.setup.Place, v.solver.State())
		if err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		step := int64(0)
		all, err := turns(ctx, on, func() (float64, error) {
			step++
			err := cmp.Or(v.begin(ctx, step), v.whole(ctx))
			return v.Status().Took.Seconds() * 1e6, err
		}, out.copy, func() (float64, error) {
			if on.Processes.OrAlone().Rank > 0 {
				return 0, nil
			}
			took, err := writePlainly(filepath.Join(s.folder, "plain"), v.Status().Bytes)
			return took, bench.LeaveOut(err)
		})
		if err != nil {
			return row, err
		}
		row = row.Transfer(s.bytes(v), measure.NewSample(all[0]), measure.NewSample(all[1]))
		return s.plain(v, row, measure.NewSample(all[2]), row.Median(results.CopyTime)), nil
	})
}

// read measures how fields are read from a checkpoint.
func (s saved) read(ctx context.Context, on *run, row results.Row) (results.Row, error) {
	return s.during(ctx, on, row, func(v *saver, row results.Row) (results.Row, error) {
		if err := cmp.Or(v.begin(ctx, 1), v.whole(ctx)); err != nil {
			return row, err
		}
		var found *checkpoint.Checkpoint
		timed := func(do func() error) func() (float64, error) {
			return func() (float64, error) {
				start := time.Now()
				err := do()
				return time.Since(start).Seconds() * 1e6, err
			}
		}
		all, err := turns(ctx, on, timed(func() error {
			c, rejected, err := checkpoint.Find(ctx, on.Processes, s.folder)
			found = c
			return errors.Join(append(rejected, err)...)
		}), timed(func() (err error) {
			for _, a := range v.solver.State() {
				err = cmp.Or(err, found.Read(ctx, a.Name, a.Field))
			}
			return err
		}), timed(func() error {
			if on.Processes.OrAlone().Rank > 0 {
				return nil
			}
			return readPlainly(found)
		}))
		if err != nil {
			return row, err
		}
		sums := slices.Clone(all[0])
		for i := range sums {
			sums[i] += all[1][i]
		}
		row = row.Transfer(s.bytes(v), measure.NewSample(sums), results.Sample{}).
			Value(results.Finding, measure.NewSample(all[0])).Value(results.Reading, measure.NewSample(all[1]))
		row.Checked = true // by Find
		return s.plain(v, row, measure.NewSample(all[2]), 0), nil
	})
}

// bytes returns the bytes of the fields of a checkpoint.
func (s saved) bytes(v *saver) int64 {
	return int64(s.points()) * int64(domain.Element(s.precision).Size()) * int64(len(v.solver.State()))
}

// plain adds to a row the time of plain files, and its share: the time of the slower of these and a plain copy, which
// takes copied microseconds if there is one, divided by the row's.
func (s saved) plain(v *saver, row results.Row, files results.Sample, copied float64) results.Row {
	time, _ := row.Get(results.Time)
	share := files.Over(time)
	if copied > files.Median {
		share = time.Under(copied)
	}
	return row.Value(results.FileTime, files).
		Value(results.FileRate, files.Under(float64(v.Status().Bytes)/1e3)).
		Value(results.Share, share)
}
