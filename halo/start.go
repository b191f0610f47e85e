package halo

import (
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// channel holds the streams, the events and the launches of one subdomain's part in an
// exchange by Start and Wait. The events mark what the channels of neighbours wait for.
type channel struct {
	sendStream, receiveStream *streams.Stream
	ready, sent, received     *streams.Event
	packs, unpacks            []*kernels.Copies // one for all messages where they do not add up
	out, in                   []*p2p.Route
	to, from                  []*channel // that it has messages for, and from: itself too
}

// Start queues an exchange and returns. at has a stream for every subdomain, by
// rank, of its device: the exchange begins when what was queued there before is
// done, on the stream of the sender and on that of the receiver. Until Wait, work
// queued on these streams may read the fields but for their ghosts, and must not
// write the points that neighbours get.
func (x *Exchanger) Start(at []*streams.Stream) error {
	if err := x.check(at, false); err != nil {
		return err
	}
	if x.channels == nil {
		if err := x.makeChannels(); err != nil {
			return err
		}
	}
	x.started = true
	for rank, l := range x.channels {
		l.sendStream.Follow(at[rank])
		l.receiveStream.Follow(at[rank])
	}
	if x.direct != nil {
		return x.startDirect(at)
	}
	for rank, l := range x.channels {
		if err := at[rank].Record(l.ready); err != nil {
			return err
		}
	}
	for _, l := range x.channels {
		if err := l.send(); err != nil {
			return err
		}
	}
	for _, l := range x.channels {
		if err := l.receive(); err != nil {
			return err
		}
	}
	return nil
}

// send queues what the channel sends, once all that it goes to are ready.
func (l *channel) send() error {
	if err := l.sendStream.Wait(l.ready); err != nil {
		return err
	}
	for _, to := range l.to {
		if err := l.sendStream.Wait(to.ready); err != nil {
			return err
		}
	}
	if err := launchAll(l.sendStream, l.packs); err != nil {
		return err
	}
	for _, r := range l.out {
		if err := r.Push(l.sendStream); err != nil {
			return err
		}
	}
	return l.sendStream.Record(l.sent)
}

// receive queues what the channel receives, once all that it comes from have sent it.
func (l *channel) receive() error {
	for _, from := range l.from {
		if err := l.receiveStream.Wait(from.sent); err != nil {
			return err
		}
	}
	for _, r := range l.in {
		if err := r.Pull(l.receiveStream); err != nil {
			return err
		}
	}
	if err := launchAll(l.receiveStream, l.unpacks); err != nil {
		return err
	}
	if err := l.receiveStream.Wait(l.sent); err != nil {
		return err
	}
	return l.receiveStream.Record(l.received)
}

func launchAll(s *streams.Stream, all []*kernels.Copies) error {
	for _, k := range all {
		if err := s.Launch(k.Kernel); err != nil {
			return err
		}
	}
	return nil
}

// Wait makes the streams wait, on the devices, until the exchange that Start
// began has brought the ghosts of each and no longer needs its points. The host
// does not wait.
func (x *Exchanger) Wait(at []*streams.Stream) error {
	if err := x.check(at, true); err != nil {
		return err
	}
	x.started = false
	for rank, l := range x.channels {
		done := l.received // after all that it sends and receives
		if x.direct != nil {
			done = l.sent
		}
		if err := at[rank].Wait(done); err != nil {
			return err
		}
	}
	return nil
}

// Exchange is Start and Wait. Where an exchange is one kernel a GPU, it queues
// that on the streams themselves.
func (x *Exchanger) Exchange(at []*streams.Stream) error {
	if x.direct != nil {
		if err := x.check(at, false); err != nil {
			return err
		}
		for rank, s := range at {
			if err := x.ExchangeRank(rank, s); err != nil {
				return err
			}
		}
		return nil
	}
	if err := x.Start(at); err != nil {
		return err
	}
	return x.Wait(at)
}

// check returns an error unless a call with these streams makes sense now.
func (x *Exchanger) check(at []*streams.Stream, started bool) error {
	switch {
	case x.closed:
		return fmt.Errorf("halo: the exchanger is closed")
	case x.Err() != nil:
		return x.Err()
	case x.started && !started:
		return fmt.Errorf("halo: an exchange is under way: call Wait before the next Start")
	case !x.started && started:
		return fmt.Errorf("halo: no exchange is under way: call Start before Wait")
	}
	return x.plan.Placement.Suits(at)
}

// makeChannels makes what Start needs beyond the transfers.
func (x *Exchanger) makeChannels() error {
	channels := make([]*channel, len(x.plan.Placement.Devices))
	for rank, d := range x.plan.Placement.Devices {
		l, err := x.newChannel(d)
		if err != nil {
			return err
		}
		channels[rank] = l
	}
	if x.direct == nil {
		if err := x.connect(channels); err != nil {
			return err
		}
	}
	x.channels = channels
	return nil
}

func (x *Exchanger) newChannel(d *streams.Device) (*channel, error) {
	l := &channel{}
	for _, s := range []**streams.Stream{&l.sendStream, &l.receiveStream} {
		made, err := d.NewStream(streams.Urgent)
		if err != nil {
			return nil, err
		}
		x.resources.Add(made)
		*s = made
	}
	l.sendStream.SetName("send")
	l.receiveStream.SetName("receive")
	for _, e := range []**streams.Event{&l.ready, &l.sent, &l.received} {
		made, err := d.NewEvent()
		if err != nil {
			return nil, err
		}
		x.resources.Add(made)
		*e = made
	}
	return l, nil
}

// connect gives each channel all that its subdomain sends and receives. Copies of all
// messages are one launch; additions, which may meet in a point, one after another.
func (x *Exchanger) connect(channels []*channel) error {
	packCopies, unpackCopies := make([][]kernels.Copy, len(channels)), make([][]kernels.Copy, len(channels))
	for i, m := range x.plan.Messages {
		t, from, to := x.transfers[i], channels[m.From], channels[m.To]
		packCopies[m.From] = append(packCopies[m.From], t.packCopies...)
		unpackCopies[m.To] = append(unpackCopies[m.To], t.unpackCopies...)
		if t.unpack != nil && len(t.unpackCopies) == 0 {
			to.unpacks = append(to.unpacks, t.unpack)
		}
		if t.route != nil {
			from.out, to.in = append(from.out, t.route), append(to.in, t.route)
		}
		if !slices.Contains(from.to, to) {
			from.to, to.from = append(from.to, to), append(to.from, from)
		}
	}
	for rank, l := range channels {
		pack, err := x.launch(rank, streams.Pack, "send", packCopies[rank])
		if err != nil {
			return err
		}
		unpack, err := x.launch(rank, streams.Unpack, "receive", unpackCopies[rank])
		if err != nil {
			return err
		}
		if pack != nil {
			l.packs = append(l.packs, pack)
		}
		if unpack != nil {
			l.unpacks = append(l.unpacks, unpack)
		}
	}
	return nil
}
