// Package sweep measures sweeps of stencils on one device, and copies of the same bytes for comparison.
package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/bench/trial"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// run is the device on which sweeps are timed, and the settings.
type run struct {
	device   *streams.Device
	compiler *kernels.Compiler
	pace     measure.Pace
}

// maxSweeps is the maximum number of sweeps queued behind a gate: four operations each with norms.
const maxSweeps = timing.MaxKernels / 4

// Run measures sweeps on the first device.
func (o *Options) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if err := to.Begin(results.KindSweep, nil); err != nil {
		return err
	}
	r := &run{
		device: on.Devices[0], compiler: on.Compiler,
		pace: measure.Pace{First: 2, Max: maxSweeps, Batch: o.Budget / measure.MinBatches},
	}
	var tasks []bench.Task
	for _, c := range o.cases() {
		tasks = append(tasks, bench.Task{Labels: c.labels(),
			Measure: func(ctx context.Context, open *streams.Resources) ([]results.Row, error) {
				return r.measure(ctx, c, open)
			}})
	}
	return to.Measure(ctx, tasks)
}

// measure returns a row without norms and one with norms, as requested. Cases that do not fit on the device are left
// out.
func (r *run) measure(ctx context.Context, c sweepCase, open *streams.Resources) (rows []results.Row, err error) {
	if err := r.fits(c); err != nil {
		return nil, err
	}
	s, err := newSwept(ctx, r.compiler, r.device, c, open)
	if err != nil {
		return nil, err
	}
	checked := !r.device.GoKernels && c.box().Points() <= maxSweptPoints
	if checked {
		if err := r.compare(ctx, c, s); err != nil {
			return nil, err
		}
	}
	plain, err := r.time(ctx, s, s.copy)
	if err != nil {
		return nil, err
	}
	for _, m := range s.measurements(c) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		took, err := r.time(ctx, s, m.step)
		if err != nil {
			return nil, err
		}
		row := c.rated(m.labels, took, plain)
		row.Checked = checked
		rows = append(rows, row)
	}
	return rows, nil
}

// fits returns an error if the arrays of a case do not fit on the device.
func (r *run) fits(c sweepCase) error {
	const spare = 64 << 20 // for other memory of a case
	layout, err := c.layout()
	if err != nil {
		return err
	}
	free, total, err := r.device.MemoryInfo()
	if need := 2 * layout.Bytes(); err == nil && total > 0 && need > free-spare {
		return bench.LeaveOut(fmt.Errorf("its arrays take %s, and %s of memory are free", streams.Size(need),
			streams.Size(free)))
	}
	return err
}

// time returns the time of one step. Two steps run before a gate is closed.
func (r *run) time(ctx context.Context, s *swept, step func(i int) error) (us results.Sample, err error) {
	steps := func(n int) error {
		for i := range n {
			if err := step(i); err != nil {
				return err
			}
		}
		return nil
	}
	if err := errors.Join(steps(2), s.Stream.Sync(timing.Limit)); err != nil {
		return us, err
	}
	return r.pace.Measure(ctx, func(n int) (float64, error) { return s.Gated(n, func() error { return steps(n) }) })
}

// maxSweptPoints is the maximum number of points of compared sweeps.
const maxSweptPoints = 4 << 20

// compare sweeps the same numbers on the device and on a CPU device, and compares the bits.
func (r *run) compare(ctx context.Context, c sweepCase, s *swept) (err error) {
	devices, err := streams.HostPlatform(1).Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, streams.CloseAll(devices)) }()
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	want, err := newSwept(ctx, r.compiler, devices[0], c, &open)
	if err != nil {
		return err
	}
	got, err := trial.NewMirror(r.device, s.arrays[1].Data, &open)
	if err != nil {
		return err
	}
	err = errors.Join(want.sweep(0), want.Stream.Sync(timing.Limit), s.sweep(0), got.Download(s.Stream),
		s.Stream.Sync(timing.Limit))
	if err != nil {
		return err
	}
	return c.sameOwned(got.Bytes(), want.arrays[1].Data.Memory.Bytes(), s.arrays[1].Layout)
}
