package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
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

// measureAll adds to the record what all contenders take for all workloads, until
// it is interrupted.
func (r *packRun) measureAll(ctx context.Context, work []workloads.Workload, unpack bool, record *results.Record, notes io.Writer) (err error) {
	directions := []string{results.Packed}
	if unpack {
		directions = append(directions, results.Unpacked)
	}
	record.Interrupted, err = eachLayout(ctx, notes, "pack", work, func(w workloads.Workload) error {
		for _, direction := range directions {
			rows, err := r.measure(ctx, w, direction)
			record.Add(rows...)
			if err != nil {
				return fmt.Errorf("%s %v: %w", direction, w, err)
			}
		}
		return nil
	})
	return err
}

// measure returns a row for each contender that suits the workload. It frees what
// it made.
func (r *packRun) measure(ctx context.Context, w workloads.Workload, direction string) (rows []results.Row, err error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	c := &packCase{packRun: r, unpack: direction == results.Unpacked, packers: map[packing.Options]*packing.Packer{}}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.prepare(w); err != nil {
		return nil, err
	}
	contiguous, err := c.contiguous(w.Bytes)
	if err != nil {
		return nil, err
	}
	for _, by := range r.contenders {
		if ctx.Err() != nil {
			break
		}
		row, us, err := c.measure(by)
		if errors.Is(err, packing.ErrUnsuited) {
			continue
		}
		if err != nil {
			return rows, err
		}
		rows = append(rows, c.head(w, direction).Join(row).Transfer(w.Bytes, us, measure.Exact(contiguous)))
	}
	return rows, nil
}

// packCase is one workload in one direction, with its memory.
type packCase struct {
	*packRun
	streams.Closers
	unpack  bool
	cargo   *packing.Cargo
	place   packing.Place // in an array of the size that the workload says
	packed  streams.Span
	packers map[packing.Options]*packing.Packer
	trial   *trial // nil where nothing is compared
}

// prepare commits the layout and makes its memory.
func (c *packCase) prepare(w workloads.Workload) (err error) {
	side := w.Send
	if c.unpack {
		side = w.Recv
	}
	if c.cargo, err = packing.NewCargo(side.Type, side.Count); err != nil {
		return err
	}
	array, err := c.device.Alloc(max(side.Array, w.Bytes))
	if err != nil {
		return err
	}
	c.Add(array)
	alloc := c.device.Alloc
	if c.pinned {
		alloc = c.device.AllocPinned
	}
	packed, err := alloc(w.Bytes)
	if err != nil {
		return err
	}
	c.Add(packed)
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
	c.Add(p)
	c.packers[o] = p
	return p, nil
}

// job makes a job in the direction of the case.
func (c *packCase) job(p *packing.Packer, e packing.Engine, cargo *packing.Cargo, at packing.Place) (*packing.Job, error) {
	if c.unpack {
		return p.Unpack(e, at, c.packed, cargo)
	}
	return p.Pack(e, c.packed, at, cargo)
}

// contiguous returns the time of the driver's copy of as many bytes in one piece,
// in microseconds, between the same buffers.
func (c *packCase) contiguous(bytes int64) (float64, error) {
	t, err := datatype.Contiguous(int(bytes), datatype.Byte)
	if err != nil {
		return 0, err
	}
	cargo, err := packing.NewCargo(t, 1)
	if err != nil {
		return 0, err
	}
	p, err := c.packer(packing.Options{})
	if err != nil {
		return 0, err
	}
	j, err := c.job(p, packing.Copies, cargo, packing.Place{Data: c.place.Data})
	if err != nil {
		return 0, err
	}
	us, err := c.time(p, j)
	return us, errors.Join(err, j.Close())
}

// time returns how long a job takes on the device, in microseconds.
func (c *packCase) time(p *packing.Packer, j *packing.Job) (float64, error) {
	took, err := p.Time(j, c.budget)
	return took.Seconds() * 1e6, err
}

// head begins a row with what is packed, and where.
func (c *packCase) head(w workloads.Workload, direction string) results.Row {
	memory := toDevice
	if c.pinned {
		memory = toPinned
	}
	return layoutOf(w).Label("direction", direction).Label("memory", memory).
		Label("thread_blocks", positive(c.options.Blocks)).Label("pieces", c.cargo.Layout.NumBlocks())
}

// measure compares what a contender does and times it.
func (c *packCase) measure(by contender) (row results.Row, took results.Sample, err error) {
	p, err := c.packer(by.options)
	if err != nil {
		return row, took, err
	}
	j, err := c.job(p, by.engine, c.cargo, c.place)
	if err != nil {
		return row, took, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	row = by.row()
	if by.engine == packing.Auto {
		row = row.Label("took", j.Engine)
		row.Note = j.Why
	}
	if c.trial != nil {
		if err := c.trial.do(j); err != nil {
			return row, took, fmt.Errorf("engine %v: %w", by, err)
		}
		row.Checked = true
	}
	us, err := c.time(p, j)
	if err != nil {
		return row, took, fmt.Errorf("engine %v: %w", by, err)
	}
	return row, measure.Exact(us), nil
}
