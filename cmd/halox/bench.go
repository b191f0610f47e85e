package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

func newBenchCommand() *cobra.Command {
	cmd := newGroup("bench", "Measure what the devices and their links do")
	cmd.AddCommand(newBenchExchangeCommand(), newBenchPackCommand(), newBenchPingPongCommand(), newBenchLinksCommand(),
		newBenchLatencyCommand(), newBenchSweepCommand(), newBenchSchemesCommand(), newBenchScalingCommand())
	return cmd
}

// opened is a machine with those of its devices open that are measured.
type opened struct {
	*machine
	devices []*streams.Device
}

// openDevices opens the devices that are wanted.
func openDevices(want configs.Devices, notes io.Writer) (o *opened, err error) {
	m, err := openMachine(want, notes)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	ids, err := m.ids(want)
	if err != nil {
		return nil, err
	}
	devices, err := m.platform.Open(ids...)
	if err != nil {
		return nil, err
	}
	return &opened{m, devices}, nil
}

func (o *opened) close() error {
	return errors.Join(streams.CloseAll(o.devices), o.machine.close())
}

// pace says how a median over batches is measured.
type pace struct {
	first, most int     // runs of the first batch, and of any
	length      float64 // of a batch, in microseconds
}

// batches is how many a median is over at least, and maxBatches at most, where the
// least leave it uncertain by more than closeEnough.
const (
	batches     = 9
	maxBatches  = 4 * batches
	closeEnough = 0.01
)

// timed returns the time of one of what queue queues, in microseconds: the median
// over batches that are waited for, each of some milliseconds, so that to begin one
// and to wait for it counts little.
func timed(at []*streams.Stream, queue func(n int) error) (results.Sample, error) {
	return pace{first: 20, most: 400, length: 4000}.measure(func(n int) (float64, error) { return batch(at, queue, n) })
}

// measure returns what the batches take: the time of one of n, in microseconds. All
// but the least end with twice the time that these should take.
func (p pace) measure(batch func(n int) (float64, error)) (results.Sample, error) {
	if _, err := batch(p.first); err != nil { // warms up
		return results.Sample{}, err
	}
	n, err := p.runs(batch)
	if err != nil {
		return results.Sample{}, err
	}
	budget := measure.Budget{
		Min: batches, Max: maxBatches, Within: closeEnough, Time: time.Duration(2 * batches * p.length * float64(time.Microsecond)),
	}
	return measure.Repeat(context.Background(), budget, func() (float64, error) { return batch(n) }) // too short to be interrupted
}

// runs returns how many make a batch of that length. What a batch takes beside them makes
// few of them seem slow, so it looks again at more.
func (p pace) runs(batch func(n int) (float64, error)) (int, error) {
	for n := p.first; ; {
		one, err := batch(n)
		if err != nil {
			return 0, err
		}
		next := int(max(float64(p.first), min(float64(p.most), p.length/one)))
		if next < 2*n {
			return next, nil
		}
		n = next
	}
}

// batch queues n and waits for them; it returns the time of one in microseconds.
func batch(at []*streams.Stream, queue func(n int) error, n int) (float64, error) {
	start := time.Now()
	if err := queue(n); err != nil {
		return 0, err
	}
	for _, s := range at {
		if err := s.Sync(waitLimit); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() * 1e6 / float64(n), nil
}
