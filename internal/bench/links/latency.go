package links

import (
	"context"
	"errors"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// smallMessage is the number of bytes of the message whose latency is measured.
const smallMessage = 8

// latencyRun is the devices on which the smallest pieces of work are timed.
type latencyRun struct {
	*fabric
	devices []*streams.Device
	budget  time.Duration
}

// Run measures the smallest pieces of work of all devices, and of every two of them.
func (o *latencyOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if err := to.Begin(results.KindLatency, on.Links); err != nil {
		return err
	}
	r := &latencyRun{newFabric(on.Links, on.Compiler, smallMessage), on.Devices, o.Budget}
	return to.Measure(ctx, r.tasks(o.Paths))
}

// tasks returns the tasks of single devices, then those of pairs.
func (r *latencyRun) tasks(paths []string) (all []bench.Task) {
	for _, d := range r.devices {
		all = append(all, r.alone(d)...)
	}
	for i, a := range r.devices {
		for _, b := range r.devices[i+1:] {
			all = append(all, r.pair(&pair{r.fabric, a, b}, paths)...)
		}
	}
	return all
}

// alone returns the tasks of one device, and of a device and the host.
func (r *latencyRun) alone(d *streams.Device) (all []bench.Task) {
	for _, t := range []struct {
		what string
		time func(p *timing.Probe) (float64, error)
	}{
		{"issue a kernel", (*timing.Probe).Issue},
		{"kernel and wait", (*timing.Probe).LaunchAndWait},
		{"kernel to kernel", (*timing.Probe).KernelToKernel},
		{"event and wait", (*timing.Probe).EventAndWait},
	} {
		labels := results.NewRow().Label("what", t.what).Label("device", d.ID)
		all = append(all, r.task(labels, onProbe(r.compiler, d, t.time)))
	}
	host := results.NewRow().Label("what", "flag between host and device").Label("device", d.ID)
	return append(all, r.task(host, func(open *streams.Resources) (func() (float64, error), error) {
		return playFlags(r.compiler, d, nil, open)
	}))
}

// onProbe prepares a probe for one of its measurements.
func onProbe(c *kernels.Compiler, d *streams.Device, time func(p *timing.Probe) (float64, error)) preparation {
	return func(open *streams.Resources) (func() (float64, error), error) {
		p, err := timing.NewProbe(c, d, open)
		return func() (float64, error) { return time(p) }, err
	}
}

// pair returns the tasks of two devices.
func (r *latencyRun) pair(p *pair, paths []string) (all []bench.Task) {
	labels := func(what, path string) results.Row {
		kind := r.kind(between(p2p.Path(path), p.a, p.b))
		return results.NewRow().Label("what", what).Label("from", p.a.ID).Label("to", p.b.ID).Label("link",
			kind).Label("path", path)
	}
	all = append(all, r.task(labels("event to device", ""), p.events),
		r.task(labels("flag", string(p2p.Direct)), p.flags))
	for _, path := range paths {
		all = append(all, r.task(labels("message", path), p.messages(p2p.Path(path))))
	}
	return all
}

// task measures a preparation; a hop that is not usable is left out.
func (r *latencyRun) task(labels results.Row, prepare preparation) bench.Task {
	return bench.OneRow(labels, func(ctx context.Context, open *streams.Resources) (results.Row, error) {
		once, err := prepare(open)
		if err != nil {
			return labels, err
		}
		budget := measure.Budget{Warm: 2, Min: measure.MinBatches, Max: measure.MaxBatches, Time: r.budget,
			Within: measure.Within}
		us, err := measure.Repeat(ctx, budget, once)
		return labels.Value(results.Latency, us), err
	})
}

// A preparation prepares the measurement that once runs, in microseconds.
type preparation func(open *streams.Resources) (once func() (float64, error), err error)

// pair is two devices that send something to each other.
type pair struct {
	*fabric
	a, b *streams.Device
}

// maxTrips is the maximum number of round trips queued behind a gate: each has up to a dozen operations per stream.
const maxTrips = 32

// timeTrips returns the one-way time of round trips; trip queues one, from the stream of the probe and back. One trip
// runs before the gate is closed.
func timeTrips(p *timing.Probe, others []*streams.Stream, trip func() error) (func() (float64, error), error) {
	err := errors.Join(trip(), p.Stream.Sync(timing.Limit))
	for _, o := range others {
		err = errors.Join(err, o.Sync(timing.Limit))
	}
	return func() (float64, error) {
		return p.Gated(2*maxTrips, func() error { return timing.Times(maxTrips, trip) })
	}, err
}

// handover makes one stream wait for another.
type handover struct{ event *streams.Event }

func (h handover) pass(from, to *streams.Stream) error {
	return errors.Join(from.Record(h.event), to.Wait(h.event))
}

// handovers returns a probe of the first device, and the handovers in both directions.
func (p *pair) handovers(open *streams.Resources) (probe *timing.Probe, there, back handover, err error) {
	there, back = handover{open.NewEvent(p.a)}, handover{open.NewEvent(p.b)}
	probe, err = timing.NewProbe(p.compiler, p.a, open)
	return probe, there, back, err
}

// events measures events from one device to the other and back.
func (p *pair) events(open *streams.Resources) (func() (float64, error), error) {
	other := open.NewStream(p.b, streams.Normal)
	probe, there, back, err := p.handovers(open)
	if err != nil {
		return nil, err
	}
	return timeTrips(probe, []*streams.Stream{other}, func() error {
		return errors.Join(there.pass(probe.Stream, other), back.pass(other, probe.Stream))
	})
}

// messages sends a message to the other device and, when it has arrived, one back.
func (p *pair) messages(path p2p.Path) preparation {
	return func(open *streams.Resources) (func() (float64, error), error) {
		there := between(path, p.a, p.b)
		var ways [2]*sender
		for i, h := range []hop{there, there.back()} {
			var err error
			if ways[i], err = p.ready(h, open); err != nil {
				return nil, err
			}
			if err := ways[i].load(p.largest, open); err != nil {
				return nil, err
			}
		}
		probe, sent, returned, err := p.handovers(open)
		if err != nil {
			return nil, err
		}
		ping, pong := ways[0], ways[1]
		ping.home = probe.Stream // behind the gate
		return timeTrips(probe, []*streams.Stream{pong.home, pong.there, ping.there}, func() error {
			return errors.Join(ping.send(), sent.pass(ping.home, pong.home), pong.send(),
				returned.pass(pong.home, ping.home))
		})
	}
}

// flags sends a flag from a kernel on one device to a kernel on the other and back.
func (p *pair) flags(open *streams.Resources) (func() (float64, error), error) {
	link := between(p2p.Direct, p.a, p.b)
	if err := errors.Join(p.passable(link), p.passable(link.back())); err != nil {
		return nil, err
	}
	return playFlags(p.compiler, p.a, p.b, open)
}

// playFlags measures flags between two devices, or a device and the host if b is nil.
func playFlags(c *kernels.Compiler, a, b *streams.Device, open *streams.Resources) (func() (float64, error), error) {
	const rounds = 2000
	pingPong, err := flags.NewPingPong(c, a, b, timing.GateLimit)
	if err != nil {
		return nil, err
	}
	open.Add(pingPong)
	return func() (float64, error) {
		took, err := pingPong.Play(rounds)
		return took.Seconds() * 1e6, err
	}, nil
}
