package datatypes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// packOptions selects the engines and the layouts.
type packOptions struct {
	layouts
	Devices []int    // the ID of one
	Engines []string // nil for all and auto; the driver's copies are always among them
	To      string   // memory of packed bytes, ToDevice or ToPinned; "" for that of the figure, or ToDevice
	Unpack  bool     // measure unpacking too
	Contend bool     // time packing next to other work instead

	memory []string // of packed bytes
}

// PackCommand returns halox bench pack.
func PackCommand() bench.Command {
	o := &packOptions{layouts: newLayouts(), Devices: []int{0},
		Engines: []string{allEngines, string(packing.Auto)}, To: ToDevice}
	return bench.Command{
		Name: "pack", Short: "Time the engines that pack MPI datatypes, on the layouts of benchmarks and papers",
		Options: o, Alone: true, Chart: o.draw,
		List: func(w io.Writer) (any, error) { return o.list(w, results.KindPack, o.choose) },
		Table: func(w io.Writer, r *results.Record) error {
			return o.table(w, r, o.contenderNames(), o.Contend || len(o.memory) > 1)
		},
		About: `Every engine that supports a layout packs it on one device. The driver's contiguous copy of
the same number of bytes, and its 2-D and 3-D copies of the same layout (engine copies), are
measured too. Times are medians of batches, by the device's clock, with warm caches as in the
papers. Rates count packed bytes. For each layout that spans at most 64 MiB, the packed bytes
are first compared with those of the host.

With --contend, rows have the times of packing, of a kernel that fills the device, and of copies
to and from the host, each alone and then next to packing. Of two that run at the same time, one
begins after the other: the row has the time of the second, and both are timed from the start
of the first.

Ctrl-C keeps the results so far; --resume continues.`,
		Example: `  halox bench pack --suites ddtbench --unpack --record ddtbench.json
  halox bench pack --match tempi/2d-vector/bytes=4194304 --x block --plot tempi.png
  halox bench pack --figure list
  halox bench pack --figure wu-8 --to pinned --plot wu-8.svg`,
	}
}

// Flags returns the flags.
func (p *packOptions) Flags() []option.Flag {
	return append(p.flags(), []option.Flag{
		option.DeviceIDs(&p.Devices, "ID of the device"),
		enginesFlag(&p.Engines),
		{Name: "unpack", Value: &p.Unpack, Help: "also time unpacking into the layout of the receiver"},
		{Name: "to", Value: &p.To, Help: "memory for packed bytes: {}; pinned host memory without a copy, " +
			"copied there from a buffer of the device", Open: true, Choices: []string{ToDevice, ToPinned, ToCopied}},
		{Name: "contend", Value: &p.Contend, Help: "time packing and a kernel or copy of the same device, one after the " +
			"other's start, instead of packing alone"},
		{Name: "no-check", Value: &p.NoCheck, Help: "do not compare the results with those of the host"},
	}...)
}

// Wants returns the device.
func (p *packOptions) Wants(*mpi.Processes) (bench.Wanted, error) {
	return bench.Wanted{IDs: p.Devices}, nil
}

// choose sets defaults and chooses the layouts.
func (p *packOptions) choose() error {
	if err := cmp.Or(p.check(), p.complete()); err != nil {
		return err
	}
	return p.chooseWork()
}

// complete finds the figure, and takes the options that it sets.
func (p *packOptions) complete() error {
	p.memory = []string{cmp.Or(p.To, ToDevice)}
	if p.Figure == "" {
		if p.Engines == nil {
			p.Engines = []string{allEngines, string(packing.Auto)}
		}
		var curves []curve
		for _, e := range chosenEngines(append([]string{string(packing.Copies)}, p.Engines...)) {
			c := contender{engine: e}
			curves = append(curves, curve{name: c.String(), by: c})
		}
		p.setGeneral(results.KindPack, "Packing", append(curves, curve{name: "contiguous copy", dashed: true})...)
		return nil
	}
	err := cmp.Or(p.setFigure(results.KindPack), p.reject("engines", p.Engines != nil), p.reject("unpack", p.Unpack),
		p.reject("contend", p.Contend))
	if err != nil {
		return err
	}
	if p.To == "" && p.figure.memory != nil {
		p.memory = p.figure.memory
	}
	p.Unpack = p.figure.roundTrip
	return nil
}

// Check rejects invalid options, and sets defaults.
func (p *packOptions) Check() error {
	if err := cmp.Or(option.CheckDeviceIDs(p.Devices, 1, false), p.choose()); err != nil {
		return err
	}
	return p.checkAxis()
}

// contenderNames returns the names of the contenders in results.
func (p *packOptions) contenderNames() []string { return namesOf(p.figure.contenders()) }

// Run measures packing on the first device.
func (p *packOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	to.Settings["contenders"] = p.contenderNames()
	if err := to.Begin(results.KindPack, nil); err != nil {
		return err
	}
	r := &packRun{
		device: on.Devices[0], compiler: on.Compiler,
		check: !p.NoCheck, budget: p.Budget, hosts: p.figure.hosts, contended: p.Contend,
	}
	return to.Measure(ctx, p.tasks(r))
}

// tasks returns the tasks: a row for each contender that supports a workload.
func (p *packOptions) tasks(r *packRun) (all []bench.Task) {
	directions := []string{results.Packed}
	if p.Unpack {
		directions = append(directions, results.Unpacked)
	}
	for _, w := range p.work {
		for _, memory := range p.memory {
			by := p.figure.contendersOf(func(c curve) bool {
				return c.shows(w.String()) && (c.memory == "" || c.memory == memory)
			})
			for _, blocks := range p.allBlocks() {
				for _, direction := range directions {
					labels := layoutOf(w).Label("direction", direction).Label("memory", memory).
						Label(overBlocks, positive(blocks))
					all = append(all, bench.Task{Labels: labels,
						Measure: func(ctx context.Context, open *streams.Resources) ([]results.Row, error) {
							return (&packCase{packRun: r, open: open, unpack: direction == results.Unpacked,
								memory: memory, blocks: blocks}).measure(ctx, w, by, labels)
						}})
				}
			}
		}
	}
	return all
}

// measure returns a row for each contender that supports the workload.
func (c *packCase) measure(
	ctx context.Context, w workloads.Workload, contenders []contender, labels results.Row,
) (rows []results.Row, err error) {
	if err := c.prepare(w); err != nil {
		return nil, err
	}
	for _, by := range contenders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.enter(by); err != nil && !errors.Is(err, packing.ErrUnsuited) {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	head := labels.Label("pieces", c.message.Layout.NumBlocks())
	if c.contended {
		return (&contention{c.device, c.compiler, c.open, c.jobs, c.rows}).measure(ctx, w.Bytes, head)
	}
	return c.race(ctx, w.Bytes, head)
}

// packRun is the device on which packing is timed, and the settings.
type packRun struct {
	device    *streams.Device
	compiler  *kernels.Compiler
	check     bool          // results are compared with those of the host
	hosts     bool          // times by the host's clock
	contended bool          // times next to other work
	budget    time.Duration // for each measurement
}

// packCase is one workload in one direction, with its memory.
type packCase struct {
	*packRun
	open    *streams.Resources
	unpack  bool
	memory  string // of packed bytes
	blocks  int    // maximum number of thread blocks per kernel; 0: automatic
	message *packing.MessageLayout
	place   packing.Place // in an array of the size that the workload says
	packed  streams.Span
	buffer  streams.Span // of the device, that is copied to or from packed; packed itself without such copies
	packer  func(o packing.Options) (*packing.Packer, error)
	trial   *trial.Trial // nil if nothing is compared
	jobs    []*packing.Job
	fresh   []func() (*packing.Job, error) // makes a new job; nil entries use the one in jobs
	rows    []results.Row                  // of the jobs, without their times
}

// prepare commits the layout and allocates its memory.
func (c *packCase) prepare(w workloads.Workload) (err error) {
	side := w.Send
	if c.unpack {
		side = w.Recv
	}
	if c.message, err = packing.NewMessageLayout(side.Type, side.Count); err != nil {
		return err
	}
	c.packer = packersOf(c.compiler, c.device, c.blocks, c.open)
	array := c.open.Alloc(c.device, max(side.Array, w.Bytes))
	var buffer, packed *streams.Memory
	if c.memory != ToPinned {
		buffer = c.open.Alloc(c.device, w.Bytes)
		packed = buffer
	}
	if c.memory != ToDevice {
		packed = c.open.AllocPinned(c.device, w.Bytes)
	}
	if err := c.open.Err(); err != nil {
		return err
	}
	c.place, c.packed = packing.Place{Data: array.All(), Origin: side.Origin}, packed.All()
	if c.buffer = c.packed; buffer != nil {
		c.buffer = buffer.All()
	}
	if c.check {
		c.trial, err = c.newTrial()
	}
	return err
}

// job makes a job in the direction of the case.
func (c *packCase) job(p *packing.Packer, e packing.Engine, message *packing.MessageLayout,
	at packing.Place) (j *packing.Job, err error) {
	if c.unpack {
		j, err = p.Unpack(e, at, c.buffer, message)
	} else {
		j, err = p.Pack(e, c.buffer, at, message)
	}
	if err != nil || c.buffer == c.packed {
		return j, err
	}
	to, from := c.packed, c.buffer
	if c.unpack {
		to, from = from, to
	}
	plain, err := contiguousMessage(message.Layout.Size())
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	copied, err := p.Pack(packing.Copies, to, packing.Place{Data: from}, plain)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if c.unpack {
		all := packing.Sequence(copied, j)
		all.Engine, all.Why = j.Engine, j.Why
		return all, nil
	}
	return packing.Sequence(j, copied), nil
}

// contiguous makes a job that copies the same number of contiguous bytes, between the same buffers, with the driver.
func (c *packCase) contiguous(bytes int64) (*packing.Job, error) {
	message, err := contiguousMessage(bytes)
	if err != nil {
		return nil, err
	}
	p, err := c.packer(packing.Options{})
	if err != nil {
		return nil, err
	}
	return c.job(p, packing.Copies, message, packing.Place{Data: c.place.Data})
}

// enter makes a contender's job and checks its result.
func (c *packCase) enter(by contender) error {
	p, err := c.packer(by.options)
	if err != nil {
		return err
	}
	again := func() (*packing.Job, error) { return c.job(p, by.engine, c.message, c.place) }
	j, err := again()
	if err != nil {
		return err
	}
	c.open.Add(j)
	row := by.row()
	if by.engine == packing.Auto {
		row = row.Label("took", j.Engine)
		row.Note = j.Why
	}
	if c.trial != nil {
		if err := c.trial.Do(j.Queue); err != nil {
			return fmt.Errorf("engine %v: %w", by, err)
		}
		row.Checked = true
	}
	if !by.fresh {
		again = nil
	}
	c.jobs, c.fresh, c.rows = append(c.jobs, j), append(c.fresh, again), append(c.rows, row)
	return nil
}

// race times the contenders and the contiguous copy, in turns, and returns the rows with their times, after the labels
// that they share. If two of the jobs use the same engine, as auto and the engine that it chose, both are timed: their
// difference shows the accuracy of the measurement.
func (c *packCase) race(ctx context.Context, bytes int64, head results.Row) (rows []results.Row, err error) {
	var contiguous *packing.Job
	streams.Into(c.open, &contiguous)(c.contiguous(bytes))
	if err := c.open.Err(); err != nil {
		return nil, err
	}
	c.jobs, c.fresh = append(c.jobs, contiguous), append(c.fresh, nil)
	times := c.byDevice
	if c.hosts {
		times = c.byHost
	}
	us, err := times(ctx)
	if err != nil {
		return nil, err
	}
	for i, row := range c.rows {
		rows = append(rows, head.Join(row).Transfer(bytes, us[i], us[len(c.rows)]))
	}
	return rows, nil
}

// byDevice returns the times of the jobs by the device's clock, in microseconds.
func (c *packCase) byDevice(context.Context) (us []results.Sample, err error) {
	var clock *packing.Clock
	streams.Into(c.open, &clock)(packing.NewClock(c.compiler, c.device))
	if err := c.open.Err(); err != nil {
		return nil, err
	}
	took, err := clock.Batches(c.budget, c.jobs...)
	for _, one := range took {
		us = append(us, inMicroseconds(one))
	}
	return us, err
}

// byHost returns the times of the jobs by the host's clock, in microseconds: from the call that queues the job, or that
// makes a fresh one, until the device is done.
func (c *packCase) byHost(ctx context.Context) (us []results.Sample, err error) {
	s := c.open.NewStream(c.device, streams.Normal)
	done := c.open.NewEvent(c.device)
	if err := c.open.Err(); err != nil {
		return nil, err
	}
	pace := measure.Pace{First: 1, Max: maxRoundTrips, Batch: c.budget / measure.MinBatches}
	for i, job := range c.jobs {
		sample, err := pace.Measure(ctx, func(n int) (float64, error) {
			took := time.Duration(0)
			err := timing.Times(n, func() (err error) {
				start, j := time.Now(), job
				if c.fresh[i] != nil {
					if j, err = c.fresh[i](); err != nil {
						return err
					}
					defer func() { err = errors.Join(err, j.Close()) }()
				}
				err = cmp.Or(j.Queue(s), s.Record(done), timing.Await(done, start))
				took += time.Since(start)
				return err
			})
			return took.Seconds() * 1e6 / float64(n), err
		})
		if err != nil {
			return nil, err
		}
		us = append(us, sample)
	}
	return us, nil
}

// newTrial returns the expected result of the case's engines, nil for a layout whose extent is too large.
func (c *packCase) newTrial() (*trial.Trial, error) {
	l := c.message.Layout
	user, packed := c.place.Data, c.packed
	user.Offset, user.Length = c.place.Origin+l.TrueLB(), l.TrueUB()-l.TrueLB()
	s := c.open.NewStream(c.device, streams.Normal)
	if err := c.open.Err(); err != nil {
		return nil, err
	}
	if c.unpack {
		return trial.New(s, s, user, packed, c.open,
			func(dst, src []byte) error { return l.Unpack(dst, -l.TrueLB(), src) })
	}
	return trial.New(s, s, packed, user, c.open,
		func(dst, src []byte) error { return l.Pack(dst, src, -l.TrueLB()) })
}
