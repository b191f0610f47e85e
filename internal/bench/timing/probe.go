package timing

import (
	"errors"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/streams"
)

// How many are queued together: no more than a driver takes without waiting for the device,
// which a gate may hold.
const (
	MaxKernels = 256 // of one stream
	MaxGated   = 500 // operations of one device: streams hold some more, but may share what holds them
)

// GateLimit is how long a gate holds a device whose host has forgotten it.
const GateLimit = 10 * time.Second

// Probe times what one stream of a device does, by the device's clock.
type Probe struct {
	Stream     *streams.Stream
	nothing    *streams.Kernel
	gate       *flags.Gate
	start, end *streams.Event // timed
}

// NewProbe makes it ready, with the kernel launched once: what a driver does at the first launch
// may wait for the gate.
func NewProbe(c *kernels.Compiler, d *streams.Device, open *streams.Resources) (p *Probe, err error) {
	p = &Probe{}
	if p.Stream, err = d.NewStream(streams.Normal); err != nil {
		return nil, err
	}
	open.Add(p.Stream)
	if p.nothing, err = flags.NewNothing(c, d); err != nil {
		return nil, err
	}
	open.Add(p.nothing)
	if p.gate, err = flags.NewGate(c, d, GateLimit); err != nil {
		return nil, err
	}
	open.Add(p.gate)
	for _, e := range []**streams.Event{&p.start, &p.end} {
		if *e, err = d.NewTimedEvent(); err != nil {
			return nil, err
		}
		open.Add(*e)
	}
	return p, errors.Join(p.Stream.Launch(p.nothing), p.Stream.Sync(Limit))
}

// Gated returns the device time of what queue queues, over n, in microseconds. All of it is
// queued before the first begins. The stream is idle before.
func (p *Probe) Gated(n int, queue func() error) (float64, error) {
	err := errors.Join(p.gate.Shut(p.Stream), p.Stream.Record(p.start))
	if err == nil {
		err = errors.Join(queue(), p.Stream.Record(p.end))
	}
	if err = errors.Join(err, p.gate.Open(), p.Stream.Sync(Limit)); err != nil {
		return 0, err
	}
	took, err := p.end.Since(p.start)
	return took.Seconds() * 1e6 / float64(n), err
}

// launches queues so many kernels that do nothing.
func (p *Probe) launches(n int) error {
	for range n {
		if err := p.Stream.Launch(p.nothing); err != nil {
			return err
		}
	}
	return nil
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
	return repeated(func() error { return errors.Join(p.Stream.Record(p.end), p.end.Sync(Limit)) })
}

// repeated returns the host time of one of some calls, in microseconds.
func repeated(once func() error) (float64, error) {
	const times = 50
	start := time.Now()
	for range times {
		if err := once(); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() * 1e6 / times, nil
}

// KernelToKernel returns the device time from one kernel to the next, in microseconds.
func (p *Probe) KernelToKernel() (float64, error) {
	return p.Gated(MaxKernels, func() error { return p.launches(MaxKernels) })
}
