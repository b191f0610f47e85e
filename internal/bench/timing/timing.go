// Package timing times repeated work of devices and hosts: medians of batches, by the host's clock or, behind a gate,
// by a device's clock.
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

// Limit is the time limit of waits for a device or a thread.
const Limit = 60 * time.Second

// Queued returns the time of one operation that queue queues, in microseconds by the host's clock: the median over
// batches of some milliseconds, for which starting and waiting is negligible.
func Queued(ctx context.Context, at []*streams.Stream, queue func(n int) error) (results.Sample, error) {
	return Batches(ctx, func(n int) (float64, error) { return Batch(at, queue, n) })
}

// Batches is Queued for given batches.
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

// Await waits for an event until Limit after start. Unlike [streams.Event.Sync] it never sleeps, since timed work may
// be shorter than a sleep.
func Await(e *streams.Event, start time.Time) error {
	for {
		done, err := e.Done()
		if done || err != nil {
			return err
		}
		if time.Since(start) > Limit {
			return fmt.Errorf("the work of device %v must end within %v", e.Device(), Limit)
		}
		runtime.Gosched()
	}
}

// Limits of queued operations: a driver accepts that many without waiting for the device, which a gate may block.
const (
	MaxKernels = 256 // of one stream
	MaxGated   = 500 // operations of one device: streams hold some more, but may share a queue
)

// GateLimit is the time after which a gate opens by itself.
const GateLimit = 10 * time.Second

// Probe times the work of one stream of a device: by the device's clock, or by the host's.
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

// Gated returns the device time of the operations that queue queues, divided by n, in microseconds. All are queued
// before the first begins. The stream must be idle.
func (p *Probe) Gated(n int, queue func() error) (float64, error) {
	took, err := p.Time(true, nil, queue)
	return took.Seconds() * 1e6 / float64(n), err
}

// launches queues n empty kernels.
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

// LaunchAndWait returns the host time to queue a kernel and wait for it, in microseconds.
func (p *Probe) LaunchAndWait() (float64, error) {
	return repeated(func() error { return errors.Join(p.Stream.Launch(p.nothing), p.Stream.Sync(Limit)) })
}

// EventAndWait returns the host time to queue an event and wait for it, in microseconds.
func (p *Probe) EventAndWait() (float64, error) {
	return repeated(func() error { return errors.Join(p.Stream.Record(p.End), p.End.Sync(Limit)) })
}

// repeated returns the host time of one of several calls, in microseconds.
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
