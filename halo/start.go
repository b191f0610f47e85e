package halo

import (
	"fmt"
	"slices"

	"github.com/halox/halox/streams"
)

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
	x.hold()
	return x.fail(x.begin(at))
}

// begin queues what Start does.
func (x *Exchanger) begin(at []*streams.Stream) error {
	for rank, l := range x.channels {
		if l == nil {
			continue
		}
		l.in.expect(at[rank])
		l.sendStream.Follow(at[rank])
		l.receiveStream.Follow(at[rank])
		if err := at[rank].Record(l.ready); err != nil {
			return err
		}
	}
	if x.direct != nil {
		return x.beginDirect()
	}
	for _, l := range x.channels {
		if l == nil {
			continue
		}
		if err := l.send(); err != nil {
			return err
		}
	}
	if x.across != nil {
		return nil // what comes is waited for on the host, in Wait
	}
	return x.receiveAll()
}

// receiveAll queues what all subdomains receive.
func (x *Exchanger) receiveAll() error {
	for _, l := range x.channels {
		if l == nil {
			continue
		}
		if err := l.receive(); err != nil {
			return err
		}
	}
	return nil
}

// fail returns the error of an exchange that was queued in part: what ghosts hold then nobody
// knows, and so the exchanger is of no use any more.
func (x *Exchanger) fail(err error) error {
	if err == nil {
		return nil
	}
	x.release()
	err = x.tell(err)
	x.failed = fmt.Errorf("halo: an exchange has failed before, and left ghosts undefined: %w", err)
	return err
}

// Wait makes the streams wait, on the devices, until the exchange that Start
// began has brought the ghosts of each and no longer needs its points. The host
// does not wait, but for messages of other processes to come. Until then the fields cannot be
// closed.
func (x *Exchanger) Wait(at []*streams.Stream) error {
	if err := x.check(at, true); err != nil {
		return err
	}
	x.release()
	if x.across != nil {
		if err := x.receiveAll(); err != nil {
			return x.fail(err)
		}
	}
	for rank, l := range x.channels {
		if l == nil {
			continue
		}
		done := l.received // after all that it sends and receives
		if x.direct != nil {
			done = l.sent
		}
		if err := at[rank].Wait(done); err != nil {
			return x.fail(err)
		}
	}
	return nil
}

// Exchange is Start and Wait. Where an exchange is one kernel a GPU, it queues
// that on the streams themselves.
func (x *Exchanger) Exchange(at []*streams.Stream) error {
	if !x.IsDirect() {
		if err := x.Start(at); err != nil {
			return err
		}
		return x.Wait(at)
	}
	if err := x.check(at, false); err != nil {
		return err
	}
	for rank, s := range at {
		if err := x.direct[rank].Queue(s); err != nil {
			return x.fail(err)
		}
	}
	return nil
}

// check returns an error unless a call with these streams makes sense now.
func (x *Exchanger) check(at []*streams.Stream, started bool) error {
	if err := x.usable(); err != nil {
		return err
	}
	switch {
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
		if d == nil {
			continue
		}
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
	if x.across != nil {
		l.waits = x.across.waits
	}
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

// connect gives each channel the work of all transfers of its subdomain. Copies of all
// messages are one launch; additions, which may meet in a point, one after another.
func (x *Exchanger) connect(channels []*channel) error {
	for rank, l := range channels {
		if l == nil {
			continue
		}
		l.out = end{rank: rank, work: streams.Pack, name: "send"}
		l.in = end{rank: rank, work: streams.Unpack, name: "receive"}
	}
	for i, m := range x.plan.Messages {
		t, from, to := x.transfers[i], channels[m.From], channels[m.To]
		if from != nil {
			from.out.join(&t.out)
		}
		if to != nil {
			to.in.join(&t.in)
		}
		if from != nil && to != nil && !slices.Contains(from.to, to) {
			from.to, to.from = append(from.to, to), append(to.from, from)
		}
	}
	for _, l := range channels {
		if l == nil {
			continue
		}
		if err := x.ready(&l.out); err != nil {
			return err
		}
		if err := x.ready(&l.in); err != nil {
			return err
		}
	}
	return nil
}
