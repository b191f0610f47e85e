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
			return bench.Measured(r).WriteComparison(w, o.contenderNames())
		},
		About: `Every engine that supports a layout packs it on one device. The driver's contiguous copy of
the same number of bytes, and its 2-D and 3-D copies of the same layout (engine copies), are
measured too. Times are medians of batches, by the device's clock, with warm caches as in the
papers. Rates count packed bytes. For each layout that spans at most 64 MiB, the packed bytes
are first compared with those of the host.

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
		{Name: "to", Value: &p.To, Help: "memory for packed bytes: {} (pinned host memory, zero copy)", Open: true,
			Choices: []string{ToDevice, ToPinned}},
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
	if p.Figure == "" {
		p.To = cmp.Or(p.To, ToDevice)
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
	err := cmp.Or(p.setFigure(results.KindPack), p.reject("engines", p.Engines != nil), p.reject("unpack", p.Unpack))
	if err != nil {
		return err
	}
	if p.figure.pinned {
		p.To = cmp.Or(p.To, ToPinned)
	}
	p.To, p.Unpack = cmp.Or(p.To, ToDevice), p.figure.roundTrip
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
		device: on.Devices[0], compiler: on.Compiler, contenders: p.figure.contenders(),
		pinned: p.To == ToPinned, check: !p.NoCheck, budget: p.Budget,
		blocks: p.Blocks,
	}
	return to.Measure(ctx, r.tasks(p.work, p.Unpack))
}

// tasks returns the tasks: a row for each contender that supports a workload.
func (p *packRun) tasks(work []workloads.Workload, unpack bool) (all []bench.Task) {
	directions := []string{results.Packed}
	if unpack {
		directions = append(directions, results.Unpacked)
	}
	for _, w := range work {
		for _, direction := range directions {
			all = append(all, bench.Task{Labels: layoutOf(w).Label("direction", direction),
				Measure: func(ctx context.Context, open *streams.Resources) ([]results.Row, error) {
					return p.measure(ctx, w, direction, open)
				}})
		}
	}
	return all
}

// measure returns a row for each contender that supports the workload.
func (p *packRun) measure(
	ctx context.Context, w workloads.Workload, direction string, open *streams.Resources,
) (rows []results.Row, err error) {
	c := &packCase{
		packRun: p, open: open, unpack: direction == results.Unpacked, packers: map[packing.Options]*packing.Packer{},
	}
	if err := c.prepare(w); err != nil {
		return nil, err
	}
	for _, by := range p.contenders {
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
	return c.race(w.Bytes, c.head(w, direction))
}

// packRun is the device on which packing is timed, and the settings.
type packRun struct {
	device        *streams.Device
	compiler      *kernels.Compiler
	contenders    []contender
	pinned, check bool          // packed bytes are in pinned host memory; results are compared with those of the host
	budget        time.Duration // for each measurement
	blocks        int           // maximum number of thread blocks per kernel; 0: automatic
}

// packCase is one workload in one direction, with its memory.
type packCase struct {
	*packRun
	open    *streams.Resources
	unpack  bool
	message *packing.MessageLayout
	place   packing.Place // in an array of the size that the workload says
	packed  streams.Span
	packers map[packing.Options]*packing.Packer
	trial   *trial.Trial // nil if nothing is compared
	jobs    []*packing.Job
	rows    []results.Row // of the jobs, without their times
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
	alloc := c.open.Alloc
	if c.pinned {
		alloc = c.open.AllocPinned
	}
	array, packed := c.open.Alloc(c.device, max(side.Array, w.Bytes)), alloc(c.device, w.Bytes)
	if err := c.open.Err(); err != nil {
		return err
	}
	c.place, c.packed = packing.Place{Data: array.All(), Origin: side.Origin}, packed.All()
	if c.check {
		c.trial, err = c.newTrial()
	}
	return err
}

// packer returns the packer with a contender's options.
func (c *packCase) packer(o packing.Options) (*packing.Packer, error) {
	o.Blocks = c.blocks
	if p := c.packers[o]; p != nil {
		return p, nil
	}
	p, err := packing.New(c.compiler, c.device, o)
	if err == nil {
		c.open.Add(p)
		c.packers[o] = p
	}
	return p, err
}

// job makes a job in the direction of the case.
func (c *packCase) job(p *packing.Packer, e packing.Engine, message *packing.MessageLayout,
	at packing.Place) (*packing.Job, error) {
	if c.unpack {
		return p.Unpack(e, at, c.packed, message)
	}
	return p.Pack(e, c.packed, at, message)
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

// head begins a row with the labels of the case.
func (c *packCase) head(w workloads.Workload, direction string) results.Row {
	memory := ToDevice
	if c.pinned {
		memory = ToPinned
	}
	return layoutOf(w).Label("direction", direction).Label("memory", memory).
		Label("thread_blocks", positive(c.blocks)).Label("pieces", c.message.Layout.NumBlocks())
}

// enter makes a contender's job and checks its result.
func (c *packCase) enter(by contender) error {
	p, err := c.packer(by.options)
	if err != nil {
		return err
	}
	j, err := c.job(p, by.engine, c.message, c.place)
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
	c.jobs, c.rows = append(c.jobs, j), append(c.rows, row)
	return nil
}

// race times the contenders and the contiguous copy, in turns, and returns the rows with their times, after the labels
// that they share. If two of the jobs use the same engine, as auto and the engine that it chose, both are timed: their
// difference shows the accuracy of the measurement.
func (c *packCase) race(bytes int64, head results.Row) (rows []results.Row, err error) {
	var contiguous *packing.Job
	var clock *packing.Clock
	streams.Into(c.open, &contiguous)(c.contiguous(bytes))
	streams.Into(c.open, &clock)(packing.NewClock(c.compiler, c.device))
	if err := c.open.Err(); err != nil {
		return nil, err
	}
	took, err := clock.Batches(c.budget, append(c.jobs, contiguous)...)
	if err != nil {
		return nil, err
	}
	for i, row := range c.rows {
		rows = append(rows, head.Join(row).Transfer(bytes, inMicroseconds(took[i]), inMicroseconds(took[len(c.rows)])))
	}
	return rows, nil
}

// inMicroseconds makes a sample of times.
func inMicroseconds(all []time.Duration) results.Sample {
	var us []float64
	for _, t := range all {
		us = append(us, t.Seconds()*1e6)
	}
	return measure.NewSample(us)
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
