package datatypes

import (
	"context"
	"errors"
	"time"

	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// work is something that a stream can do.
type work struct {
	name  string
	queue func(s *streams.Stream) error
}

// contention is jobs that are timed next to other work of their device.
type contention struct {
	device   *streams.Device
	compiler *kernels.Compiler
	open     *streams.Resources
	jobs     []*packing.Job
	rows     []results.Row // of the jobs, without their times
}

// measure times the jobs and other work of the device, each alone and next to the other, by section 4.4 of Jenkins et
// al.: one begins, the other follows in a second stream. A row has the time from the start of the follower until its
// end, or until both are done from the start of the first.
func (c *contention) measure(ctx context.Context, bytes int64, head results.Row) (rows []results.Row, err error) {
	b, err := newBusy(ctx, c.compiler, []*streams.Device{c.device}, 1)
	if err != nil {
		return nil, err
	}
	c.open.Add(b)
	p := pairClock{}
	for i := range p.streams {
		p.streams[i] = c.open.NewStream(c.device, streams.Normal)
		p.starts[i], p.ends[i] = c.open.NewTimedEvent(c.device), c.open.NewTimedEvent(c.device)
	}
	here, host := c.open.Alloc(c.device, bytes), c.open.AllocPinned(c.device, bytes)
	if err := c.open.Err(); err != nil {
		return nil, err
	}
	others := []work{
		{"kernel", func(s *streams.Stream) error { return s.Launch(b.occupants[0].kernel) }},
		{"copy to the device", func(s *streams.Stream) error { return s.Copy(here.All(), host.All()) }},
		{"copy to the host", func(s *streams.Stream) error { return s.Copy(host.All(), here.All()) }},
	}
	add := func(row results.Row, pair ...work) error {
		follower, both, err := p.times(ctx, pair)
		if len(pair) == 1 {
			rows = append(rows, head.Join(row).Label("timed", "alone").Value(results.Time, both))
			return err
		}
		row = head.Join(row).Label("first", pair[0].name)
		rows = append(rows, row.Label("timed", "follower").Value(results.Time, follower),
			row.Label("timed", "both").Value(results.Time, both))
		return err
	}
	for i, row := range c.rows {
		packs := work{"packing", c.jobs[i].Queue}
		err = errors.Join(err, add(row, packs))
		for _, o := range others {
			next := row.Label("other", o.name)
			err = errors.Join(err, add(next, packs, o), add(next, o, packs))
		}
	}
	for _, o := range others {
		err = errors.Join(err, add(results.NewRow().Label("other", o.name), o))
	}
	return rows, err
}

// pairClock times work of one or two streams.
type pairClock struct {
	streams      [2]*streams.Stream
	starts, ends [2]*streams.Event
}

// times returns the times of the second work and of all, in microseconds.
func (p *pairClock) times(ctx context.Context, all []work) (second, whole results.Sample, err error) {
	var follower, both []time.Duration
	const warm, runs = 2, 11
	for run := range warm + runs {
		if err := ctx.Err(); err != nil {
			return second, whole, err
		}
		last := len(all) - 1
		for i, w := range all {
			s := p.streams[i]
			if i > 0 {
				err = errors.Join(err, s.Wait(p.starts[0]))
			}
			err = errors.Join(err, s.Record(p.starts[i]), w.queue(s), s.Record(p.ends[i]))
		}
		for _, s := range p.streams {
			err = errors.Join(err, s.Sync(timing.Limit))
		}
		if err != nil {
			return second, whole, err
		}
		one, err0 := p.ends[last].Since(p.starts[last])
		end, err1 := p.ends[0].Since(p.starts[0])
		later, err2 := p.ends[last].Since(p.starts[0])
		if err := errors.Join(err0, err1, err2); err != nil {
			return second, whole, err
		}
		if run >= warm {
			follower, both = append(follower, one), append(both, max(end, later))
		}
	}
	return inMicroseconds(follower), inMicroseconds(both), nil
}

// inMicroseconds makes a sample of times.
func inMicroseconds(all []time.Duration) results.Sample {
	var us []float64
	for _, t := range all {
		us = append(us, t.Seconds()*1e6)
	}
	return measure.NewSample(us)
}
