package main

import (
	"errors"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// How many are queued together: no more than a driver takes without waiting for the device,
// which a gate may hold.
const (
	maxQueued = 256 // kernels of one stream
	maxTrips  = 32  // round trips, of up to a dozen operations a stream
	maxGated  = 500 // operations of one device: streams hold some more, but may share what holds them
)

// gateLimit is how long a gate holds a device whose host has forgotten it.
const gateLimit = 10 * time.Second

// latencyProbe measures the latencies of one device: of launches, events and waits.
type latencyProbe struct {
	stream     *streams.Stream
	nothing    *streams.Kernel
	gate       *kernels.Gate
	start, end *streams.Event // timed
}

// newLatencyProbe makes it ready, with the kernel launched once: what a driver does at the first
// launch may wait for the gate.
func newLatencyProbe(c *kernels.Compiler, d *streams.Device, open *streams.Resources) (s *latencyProbe, err error) {
	s = &latencyProbe{}
	if s.stream, err = d.NewStream(streams.Normal); err != nil {
		return nil, err
	}
	open.Add(s.stream)
	if s.nothing, err = c.NewNothing(d); err != nil {
		return nil, err
	}
	open.Add(s.nothing)
	if s.gate, err = c.NewGate(d, gateLimit); err != nil {
		return nil, err
	}
	open.Add(s.gate)
	for _, e := range []**streams.Event{&s.start, &s.end} {
		if *e, err = d.NewTimedEvent(); err != nil {
			return nil, err
		}
		open.Add(*e)
	}
	return s, errors.Join(s.stream.Launch(s.nothing), s.stream.Sync(waitLimit))
}

// launches queues so many kernels.
func (s *latencyProbe) launches(n int) error {
	for range n {
		if err := s.stream.Launch(s.nothing); err != nil {
			return err
		}
	}
	return nil
}

// issue returns the host time to queue a kernel.
func (s *latencyProbe) issue() (float64, error) {
	start := time.Now()
	err := s.launches(maxQueued)
	took := time.Since(start)
	return took.Seconds() * 1e6 / maxQueued, errors.Join(err, s.stream.Sync(waitLimit))
}

// launchAndWait returns the host time until a kernel is queued and done.
func (s *latencyProbe) launchAndWait() (float64, error) {
	const times = 50
	start := time.Now()
	for range times {
		if err := errors.Join(s.stream.Launch(s.nothing), s.stream.Sync(waitLimit)); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() * 1e6 / times, nil
}

// eventAndWait returns the host time until an event is queued and done.
func (s *latencyProbe) eventAndWait() (float64, error) {
	const times = 50
	start := time.Now()
	for range times {
		if err := errors.Join(s.stream.Record(s.end), s.end.Sync(waitLimit)); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() * 1e6 / times, nil
}

// kernelToKernel returns the device time from one kernel to the next.
func (s *latencyProbe) kernelToKernel() (float64, error) {
	return s.gated(maxQueued, func() error { return s.launches(maxQueued) })
}

// gated returns the device time of what queue queues, over n, in microseconds. All of it is
// queued before the first begins. The stream is idle before.
func (s *latencyProbe) gated(n int, queue func() error) (float64, error) {
	err := errors.Join(s.gate.Shut(s.stream), s.stream.Record(s.start))
	if err == nil {
		err = errors.Join(queue(), s.stream.Record(s.end))
	}
	if err = errors.Join(err, s.gate.Open(), s.stream.Sync(waitLimit)); err != nil {
		return 0, err
	}
	took, err := s.end.Since(s.start)
	return took.Seconds() * 1e6 / float64(n), err
}
