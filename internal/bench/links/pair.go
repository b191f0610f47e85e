package links

import (
	"errors"

	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// A preparation makes ready what once measures, in microseconds.
type preparation func(open *streams.Resources) (once func() (float64, error), err error)

// pair is two devices that hand something to each other.
type pair struct {
	*fabric
	a, b *streams.Device
}

// maxTrips is how many round trips are queued behind a gate, of up to a dozen operations a stream.
const maxTrips = 32

// timeTrips times one way of round trips, of which trip queues one, from the stream of the probe and
// back to it. One has been made before the gate is shut.
func timeTrips(p *timing.Probe, others []*streams.Stream, trip func() error) (func() (float64, error), error) {
	err := errors.Join(trip(), p.Stream.Sync(timing.Limit))
	for _, o := range others {
		err = errors.Join(err, o.Sync(timing.Limit))
	}
	return func() (float64, error) {
		return p.Gated(2*maxTrips, func() error {
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

// handovers returns a probe of the first device, and what hands over there and back.
func (p *pair) handovers(open *streams.Resources) (probe *timing.Probe, there, back handover, err error) {
	probe, err1 := timing.NewProbe(p.compiler, p.a, open)
	there, err2 := newHandover(p.a, open)
	back, err3 := newHandover(p.b, open)
	return probe, there, back, errors.Join(err1, err2, err3)
}

// events hands over from one device to the other and back.
func (p *pair) events(open *streams.Resources) (func() (float64, error), error) {
	probe, there, back, err := p.handovers(open)
	if err != nil {
		return nil, err
	}
	other, err := p.b.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	open.Add(other)
	return timeTrips(probe, []*streams.Stream{other}, func() error {
		return errors.Join(there.pass(probe.Stream, other), back.pass(other, probe.Stream))
	})
}

// messages sends one there and, when it has arrived, another back.
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
			return errors.Join(ping.send(), sent.pass(ping.home, pong.home), pong.send(), returned.pass(pong.home, ping.home))
		})
	}
}

// flags hands a flag from a kernel of one device to one of the other and back.
func (p *pair) flags(open *streams.Resources) (func() (float64, error), error) {
	const rounds = 2000
	link := between(p2p.Direct, p.a, p.b)
	if err := errors.Join(p.passable(link), p.passable(link.back())); err != nil {
		return nil, err
	}
	pingPong, err := flags.NewPingPong(p.compiler, p.a, p.b, timing.GateLimit)
	if err != nil {
		return nil, err
	}
	open.Add(pingPong)
	return func() (float64, error) {
		took, err := pingPong.Play(rounds)
		return took.Seconds() * 1e6, err
	}, nil
}
