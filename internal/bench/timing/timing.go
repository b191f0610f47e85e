// Package timing times what devices and hosts do over and over: medians of batches, by the host's
// clock or, behind a gate, by a device's.
package timing

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Limit is how long a benchmark waits for a device or a thread that makes no progress.
const Limit = 60 * time.Second

// Queued returns the time of one of what queue queues, in microseconds by the host's clock: the
// median over batches that are waited for, each of some milliseconds, so that to begin one and to
// wait for it counts little.
func Queued(ctx context.Context, at []*streams.Stream, queue func(n int) error) (results.Sample, error) {
	return Batches(ctx, func(n int) (float64, error) { return Batch(at, queue, n) })
}

// Batches is Queued of batches that are given.
func Batches(ctx context.Context, batch func(n int) (float64, error)) (results.Sample, error) {
	pace := measure.Pace{First: 20, Max: 400, Batch: 4 * time.Millisecond}
	return pace.Measure(ctx, batch)
}

// Batch queues n and waits for them; it returns the time of one in microseconds.
func Batch(at []*streams.Stream, queue func(n int) error, n int) (float64, error) {
	start := time.Now()
	if err := queue(n); err != nil {
		return 0, err
	}
	for _, s := range at {
		if s == nil {
			continue // of another process
		}
		if err := s.Sync(Limit); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() * 1e6 / float64(n), nil
}

// Times calls a function n times, until an error.
func Times(n int, one func() error) error {
	for range n {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

// Await waits for an event until Limit after start. It does not sleep, as [streams.Event.Sync]
// does after a while: what is timed by it may take less than that.
func Await(e *streams.Event, start time.Time) error {
	for {
		done, err := e.Done()
		if done || err != nil {
			return err
		}
		if time.Since(start) > Limit {
			return fmt.Errorf("what device %v was given is not done after %v", e.Device(), Limit)
		}
		runtime.Gosched()
	}
}

// How many are queued together: no more than a driver takes without waiting for the device,
// which a gate may hold.
const (
	MaxKernels = 256 // of one stream
	MaxGated   = 500 // operations of one device: streams hold some more, but may share what holds them
)

// GateLimit is how long a gate holds a device whose host has forgotten it.
const GateLimit = 10 * time.Second

// Probe times what one stream of a device does: by the device's clock, or by the host's.
type Probe struct {
	*flags.Timer
	nothing *streams.Kernel
}

// NewProbe makes a probe, whose kernel has been launched once: the first launch of a kernel may wait for the gate.
func NewProbe(c *kernels.Compiler, d *streams.Device, open *streams.Resources) (p *Probe, err error) {
	p = &Probe{}
	streams.Into(open, &p.Timer)(flags.NewGatedTimer(c, d, GateLimit, Limit))
	streams.Into(open, &p.nothing)(flags.NewNothing(c, d))
	if err := open.Err(); err != nil {
		return nil, err
	}
	return p, errors.Join(p.Stream.Launch(p.nothing), p.Stream.Sync(Limit))
}

// Gated returns the device time of what queue queues, divided by n, in microseconds. All of it is queued before the
// first begins. The stream is idle before.
func (p *Probe) Gated(n int, queue func() error) (float64, error) {
	took, err := p.Time(true, nil, queue)
	return took.Seconds() * 1e6 / float64(n), err
}

// launches queues so many kernels that do nothing.
func (p *Probe) launches(n int) error {
	return Times(n, func() error { return p.Stream.Launch(p.nothing) })
}

// Issue returns the host time to queue a kernel, in microseconds.
func (p *Probe) Issue() (float64, error) {
	start := time.Now()
	err := p.launches(MaxKernels)
	took := time.Since(start)
	return took.Seconds() * 1e6 / MaxKernels, errors.Join(err, p.Stream.Sync(Limit))
}

// LaunchAndWait returns the host time until a kernel is queued and done, in microseconds.
func (p *Probe) LaunchAndWait() (float64, error) {
	return repeated(func() error { return errors.Join(p.Stream.Launch(p.nothing), p.Stream.Sync(Limit)) })
}

// EventAndWait returns the host time until an event is queued and done, in microseconds.
func (p *Probe) EventAndWait() (float64, error) {
	return repeated(func() error { return errors.Join(p.Stream.Record(p.End), p.End.Sync(Limit)) })
}

// repeated returns the host time of one of some calls, in microseconds.
func repeated(once func() error) (float64, error) {
	const times = 50
	start := time.Now()
	err := Times(times, once)
	return time.Since(start).Seconds() * 1e6 / times, err
}

// KernelToKernel returns the device time from one kernel to the next, in microseconds.
func (p *Probe) KernelToKernel() (float64, error) {
	return p.Gated(MaxKernels, func() error { return p.launches(MaxKernels) })
}
