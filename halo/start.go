package halo

import (
	"fmt"

	"github.com/halox/halox/streams"
)

// lane is what Start has on the device of one subdomain: a stream to send on and
// one to receive on, and the points in their work that others wait for.
type lane struct {
	send, receive      *streams.Stream
	ready, left, taken *streams.Event
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
	if x.lanes == nil {
		if err := x.makeLanes(); err != nil {
			return err
		}
	}
	x.started = true
	if x.swaps != nil {
		return x.startSwaps(at)
	}
	for rank, l := range x.lanes {
		if err := at[rank].Record(l.ready); err != nil {
			return err
		}
	}
	for i, m := range x.plan.Messages {
		if err := x.sendFrom(x.lanes[m.From], x.lanes[m.To], x.transfers[i]); err != nil {
			return err
		}
	}
	for i, m := range x.plan.Messages {
		if err := x.receiveAt(x.lanes[m.To], x.transfers[i]); err != nil {
			return err
		}
	}
	for _, l := range x.lanes {
		if err := l.send.Record(l.left); err != nil {
			return err
		}
		if err := l.receive.Record(l.taken); err != nil {
			return err
		}
	}
	return nil
}

func (x *Exchanger) sendFrom(from, to *lane, t *Transfer) error {
	if err := from.send.Wait(from.ready); err != nil {
		return err
	}
	if to != from {
		if err := from.send.Wait(to.ready); err != nil {
			return err
		}
	}
	return t.Send(from.send)
}

func (x *Exchanger) receiveAt(to *lane, t *Transfer) error {
	t.received++
	if err := t.sent.After(to.receive); err != nil {
		return err
	}
	return t.place(to.receive)
}

// Wait makes the streams wait, on the devices, until the exchange that Start
// began has brought the ghosts of each and no longer needs its points. The host
// does not wait.
func (x *Exchanger) Wait(at []*streams.Stream) error {
	if err := x.check(at, true); err != nil {
		return err
	}
	x.started = false
	for rank, l := range x.lanes {
		if err := at[rank].Wait(l.left); err != nil {
			return err
		}
		if x.swaps != nil {
			continue
		}
		if err := at[rank].Wait(l.taken); err != nil {
			return err
		}
	}
	return nil
}

// Exchange is Start and Wait. Where an exchange is one kernel a GPU, it queues
// that on the streams themselves.
func (x *Exchanger) Exchange(at []*streams.Stream) error {
	if x.swaps != nil {
		if err := x.check(at, false); err != nil {
			return err
		}
		for rank, s := range at {
			if err := x.ExchangeOn(rank, s); err != nil {
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
	return x.plan.Placement.suits(at)
}

func (x *Exchanger) makeLanes() error {
	var lanes []*lane
	for _, d := range x.plan.Placement.Devices {
		l := &lane{}
		for _, s := range []**streams.Stream{&l.send, &l.receive} {
			made, err := d.NewStream(streams.Urgent)
			if err != nil {
				return err
			}
			x.Add(made)
			*s = made
		}
		for _, e := range []**streams.Event{&l.ready, &l.left, &l.taken} {
			made, err := d.NewEvent()
			if err != nil {
				return err
			}
			x.Add(made)
			*e = made
		}
		lanes = append(lanes, l)
	}
	x.lanes = lanes
	return nil
}
