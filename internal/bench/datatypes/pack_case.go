package datatypes

import (
	"fmt"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// packRun is the device that packing is timed on, and how.
type packRun struct {
	device        *streams.Device
	compiler      *kernels.Compiler
	contenders    []contender
	pinned, check bool            // packed bytes lie in pinned host memory; results are compared with the host's
	budget        time.Duration   // for each measurement
	options       packing.Options // what contenders' own are added to
}

// packCase is one workload in one direction, with its memory.
type packCase struct {
	*packRun
	resources streams.Resources
	unpack    bool
	message   *packing.MessageLayout
	place     packing.Place // in an array of the size that the workload says
	packed    streams.Span
	packers   map[packing.Options]*packing.Packer
	trial     *trial.Trial // nil where nothing is compared
	jobs      []*packing.Job
	rows      []results.Row // of the jobs, without their times
}

// prepare commits the layout and makes its memory.
func (c *packCase) prepare(w workloads.Workload) (err error) {
	side := w.Send
	if c.unpack {
		side = w.Recv
	}
	if c.message, err = packing.NewMessageLayout(side.Type, side.Count); err != nil {
		return err
	}
	array, err := c.device.Alloc(max(side.Array, w.Bytes))
	if err != nil {
		return err
	}
	c.resources.Add(array)
	alloc := c.device.Alloc
	if c.pinned {
		alloc = c.device.AllocPinned
	}
	packed, err := alloc(w.Bytes)
	if err != nil {
		return err
	}
	c.resources.Add(packed)
	c.place, c.packed = packing.Place{Data: array.All(), Origin: side.Origin}, packed.All()
	if c.check {
		c.trial, err = c.newTrial()
	}
	return err
}

// packer returns the packer with a contender's options.
func (c *packCase) packer(o packing.Options) (*packing.Packer, error) {
	o.Blocks, o.Cache = c.options.Blocks, c.options.Cache
	if p := c.packers[o]; p != nil {
		return p, nil
	}
	p, err := packing.New(c.compiler, c.device, o)
	if err != nil {
		return nil, err
	}
	c.resources.Add(p)
	c.packers[o] = p
	return p, nil
}

// job makes a job in the direction of the case.
func (c *packCase) job(p *packing.Packer, e packing.Engine, message *packing.MessageLayout, at packing.Place) (*packing.Job, error) {
	if c.unpack {
		return p.Unpack(e, at, c.packed, message)
	}
	return p.Pack(e, c.packed, at, message)
}

// contiguous makes the job of the driver's copy of as many bytes in one piece, between the
// same buffers.
func (c *packCase) contiguous(bytes int64) (*packing.Job, error) {
	t, err := datatype.Contiguous(int(bytes), datatype.Byte)
	if err != nil {
		return nil, err
	}
	message, err := packing.NewMessageLayout(t, 1)
	if err != nil {
		return nil, err
	}
	p, err := c.packer(packing.Options{})
	if err != nil {
		return nil, err
	}
	return c.job(p, packing.Copies, message, packing.Place{Data: c.place.Data})
}

// head begins a row with what is packed, and where.
func (c *packCase) head(w workloads.Workload, direction string) results.Row {
	memory := ToDevice
	if c.pinned {
		memory = ToPinned
	}
	return layoutOf(w).Label("direction", direction).Label("memory", memory).
		Label("thread_blocks", positive(c.options.Blocks)).Label("pieces", c.message.Layout.NumBlocks())
}

// enter makes a contender's job and compares what it does.
func (c *packCase) enter(by contender) error {
	p, err := c.packer(by.options)
	if err != nil {
		return err
	}
	j, err := c.job(p, by.engine, c.message, c.place)
	if err != nil {
		return err
	}
	c.resources.Add(j)
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

// race times the contenders and the contiguous copy, which take turns, and returns the rows
// with their times, after a head that they share. Where two of the jobs are of the same
// engine, as auto's is of the one that it took, each is timed by itself: what they differ
// by is how well it can be measured.
func (c *packCase) race(bytes int64, head results.Row) (rows []results.Row, err error) {
	contiguous, err := c.contiguous(bytes)
	if err != nil {
		return nil, err
	}
	c.resources.Add(contiguous)
	clock, err := packing.NewClock(c.compiler, c.device)
	if err != nil {
		return nil, err
	}
	c.resources.Add(clock)
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

// Close frees what it holds. Closing twice is no error.
func (c *packCase) Close() error { return c.resources.Close() }

// newTrial returns what the case's engines should write. It is nil for a layout that
// spans too much.
func (c *packCase) newTrial() (*trial.Trial, error) {
	l := c.message.Layout
	user, packed := c.place.Data, c.packed
	user.Offset, user.Length = c.place.Origin+l.TrueLB(), l.TrueUB()-l.TrueLB()
	s, err := c.device.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	c.resources.Add(s)
	if c.unpack {
		return trial.New(s, s, user, packed, &c.resources, func(dst, src []byte) error { return l.Unpack(dst, -l.TrueLB(), src) })
	}
	return trial.New(s, s, packed, user, &c.resources, func(dst, src []byte) error { return l.Pack(dst, src, -l.TrueLB()) })
}
