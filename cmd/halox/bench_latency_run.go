package main

import (
	"context"
	"errors"
	"time"

	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// latencyRun is the devices that the smallest pieces of work are timed on.
type latencyRun struct {
	*linksRun
	budget time.Duration
}

// tasks measure what one device does, then what two do.
func (r *latencyRun) tasks(paths []string) (all []task) {
	for _, d := range r.devices {
		labels := func(what string) results.Row { return results.NewRow().Label("what", what).Label("device", d.ID) }
		for _, t := range []struct {
			what string
			make func(s *latencyProbe) func() (float64, error)
		}{
			{"issue a kernel", func(s *latencyProbe) func() (float64, error) { return s.issue }},
			{"kernel and wait", func(s *latencyProbe) func() (float64, error) { return s.launchAndWait }},
			{"kernel to kernel", func(s *latencyProbe) func() (float64, error) { return s.kernelToKernel }},
			{"event and wait", func(s *latencyProbe) func() (float64, error) { return s.eventAndWait }},
		} {
			all = append(all, r.task(labels(t.what), func(open *streams.Resources) (func() (float64, error), error) {
				s, err := newLatencyProbe(r.compiler, d, open)
				if err != nil {
					return nil, err
				}
				return t.make(s), nil
			}))
		}
	}
	for i, a := range r.devices {
		for _, b := range r.devices[i+1:] {
			all = append(all, r.pair(a, b, paths)...)
		}
	}
	return all
}

// pair returns the tasks of two devices.
func (r *latencyRun) pair(a, b *streams.Device, paths []string) (all []task) {
	labels := func(what, path string) results.Row {
		link := hop{path, end{a, false}, end{b, false}}
		return results.NewRow().Label("what", what).Label("from", a.ID).Label("to", b.ID).Label("link", r.kind([]hop{link})).Label("path", path)
	}
	all = append(all,
		r.task(labels("event to device", ""), func(open *streams.Resources) (func() (float64, error), error) {
			return r.events(a, b, open)
		}),
		r.task(labels("flag", string(p2p.Direct)), func(open *streams.Resources) (func() (float64, error), error) {
			return r.flags(a, b, open)
		}))
	for _, path := range paths {
		all = append(all, r.task(labels("message", path), func(open *streams.Resources) (func() (float64, error), error) {
			return r.messages(path, a, b, open)
		}))
	}
	return all
}

// task measures what make makes ready: it returns microseconds.
func (r *latencyRun) task(labels results.Row, make func(open *streams.Resources) (func() (float64, error), error)) task {
	return task{labels, func(ctx context.Context) (rows []results.Row, err error) {
		var open streams.Resources
		defer func() { err = errors.Join(err, open.Close()) }()
		once, err := make(&open)
		if fault, ok := errors.AsType[*impassable](err); ok {
			labels.Note = fault.Error()
			return []results.Row{labels}, nil
		}
		if err != nil {
			return nil, err
		}
		us, err := measure.Repeat(ctx, measure.Budget{Warm: 2, Min: batches, Max: maxBatches, Time: r.budget, Within: closeEnough}, once)
		if err != nil {
			return nil, err
		}
		return []results.Row{labels.Value(results.Latency, us)}, nil
	}}
}

// trips times round trips, of which go queues one, from the stream of the probe and back to
// it. One has been made before the gate is shut.
func (s *latencyProbe) trips(others []*streams.Stream, trip func() error) (func() (float64, error), error) {
	err := errors.Join(trip(), s.stream.Sync(waitLimit))
	for _, o := range others {
		err = errors.Join(err, o.Sync(waitLimit))
	}
	return func() (float64, error) {
		return s.gated(2*maxTrips, func() error {
			for range maxTrips {
				if err := trip(); err != nil {
					return err
				}
			}
			return nil
		})
	}, err
}

// handover makes one stream wait for another.
type handover struct{ event *streams.Event }

func newHandover(d *streams.Device, open *streams.Resources) (handover, error) {
	e, err := d.NewEvent()
	if err == nil {
		open.Add(e)
	}
	return handover{e}, err
}

func (h handover) pass(from, to *streams.Stream) error {
	return errors.Join(from.Record(h.event), to.Wait(h.event))
}

// events hands over from one device to the other and back.
func (r *latencyRun) events(a, b *streams.Device, open *streams.Resources) (func() (float64, error), error) {
	s, err := newLatencyProbe(r.compiler, a, open)
	if err != nil {
		return nil, err
	}
	other, err := b.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	open.Add(other)
	there, err1 := newHandover(a, open)
	back, err2 := newHandover(b, open)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return s.trips([]*streams.Stream{other}, func() error { return errors.Join(there.pass(s.stream, other), back.pass(other, s.stream)) })
}

// messages sends one there and, when it has arrived, another back.
func (r *latencyRun) messages(path string, a, b *streams.Device, open *streams.Resources) (func() (float64, error), error) {
	var ways [2]*sender
	for i, h := range []hop{{path, end{a, false}, end{b, false}}, {path, end{b, false}, end{a, false}}} {
		var err error
		if ways[i], err = r.ready(h, open); err != nil {
			return nil, err
		}
		if err := ways[i].load(r.sizes[0], open); err != nil {
			return nil, err
		}
	}
	s, err := newLatencyProbe(r.compiler, a, open)
	if err != nil {
		return nil, err
	}
	there, err1 := newHandover(a, open)
	back, err2 := newHandover(b, open)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	ping, pong := ways[0], ways[1]
	ping.home = s.stream // behind the gate
	return s.trips([]*streams.Stream{pong.home, pong.there, ping.there}, func() error {
		return errors.Join(ping.send(), there.pass(ping.home, pong.home), pong.send(), back.pass(pong.home, ping.home))
	})
}

// flags hands a flag from a kernel of one device to one of the other and back.
func (r *latencyRun) flags(a, b *streams.Device, open *streams.Resources) (func() (float64, error), error) {
	const rounds = 2000
	link := hop{string(p2p.Direct), end{a, false}, end{b, false}}
	back := hop{link.path, link.to, link.from}
	if err := errors.Join(r.passable(link), r.passable(back)); err != nil {
		return nil, err
	}
	pingPong, err := r.compiler.NewFlagPingPong(a, b, gateLimit)
	if err != nil {
		return nil, err
	}
	open.Add(pingPong)
	return func() (float64, error) {
		took, err := pingPong.Play(rounds)
		return took.Seconds() * 1e6, err
	}, nil
}
