package halo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Start queues an exchange and returns. at has a stream for every subdomain, by
// rank, of its device: the exchange begins when what was queued there before is
// done, on the stream of the sender and on that of the receiver. Until Wait, work
// queued on these streams may read the fields except their ghosts, and must not
// write the points that are sent to neighbours.
func (e *Exchanger) Start(at []*streams.Stream) error {
	if err := e.hold(); err != nil {
		return err
	}
	err := e.check(at)
	if err == nil && e.channels == nil {
		err = e.makeChannels()
	}
	if err == nil {
		err = e.fail(e.begin(at))
	}
	if err != nil {
		e.release()
		return err
	}
	e.started.Store(true)
	return nil
}

// begin queues what Start does.
func (e *Exchanger) begin(at []*streams.Stream) error {
	for _, c := range e.channels {
		c.in.expect(at[c.rank])
		c.sendStream.Follow(at[c.rank])
		c.receiveStream.Follow(at[c.rank])
		if err := at[c.rank].Record(c.ready); err != nil {
			return err
		}
	}
	for _, c := range e.channels {
		if err := e.send(c); err != nil {
			return err
		}
	}
	if e.remote != nil || e.direct != nil {
		return nil // what other processes send is waited for on the host, in Wait
	}
	return e.receive()
}

// send queues what a subdomain sends, and all of an exchange by one kernel per GPU.
func (e *Exchanger) send(c *channel) error {
	if e.direct == nil {
		return c.send()
	}
	if err := c.sendStream.Wait(c.ready); err != nil {
		return err
	}
	if err := e.direct[c.rank].Queue(c.sendStream); err != nil {
		return err
	}
	return c.sendStream.Record(c.sent)
}

// receive queues what all subdomains receive.
func (e *Exchanger) receive() error {
	for _, c := range e.channels {
		if err := c.receive(); err != nil {
			return err
		}
	}
	return nil
}

// fail returns the error of an exchange that was queued in part, and tells the other processes. The
// content of the ghosts is undefined then, and so the exchanger cannot be used any more.
func (e *Exchanger) fail(err error) error {
	if err == nil {
		return nil
	}
	if e.remote != nil {
		switch first := e.remote.processes.Err(); {
		case first == nil:
			err = e.remote.processes.Fail(err)
		case !errors.Is(err, first):
			err = errors.Join(err, first)
		}
	}
	failed := fmt.Errorf("halo: an exchange has failed before, and left ghosts undefined: %w", err)
	e.failed.Store(&failed)
	return err
}

// Wait makes the streams wait, on the devices, until the exchange that Start
// began has brought the ghosts of each and no longer needs its points. The host
// waits only for messages of other processes to arrive. Until then the fields cannot be
// closed.
func (e *Exchanger) Wait(at []*streams.Stream) error {
	if err := e.check(at); err != nil {
		return err
	}
	if !e.started.CompareAndSwap(true, false) {
		return fmt.Errorf("halo: no exchange is under way: call Start before Wait")
	}
	defer e.release()
	if e.remote != nil {
		if err := e.receive(); err != nil {
			return e.fail(err)
		}
	}
	for _, c := range e.channels {
		done := c.received // after all that it sends and receives
		if e.direct != nil {
			done = c.sent
		}
		if err := at[c.rank].Wait(done); err != nil {
			return e.fail(err)
		}
	}
	return nil
}

// Exchange is Start and Wait. Where an exchange is one kernel per GPU, it queues that on the streams themselves.
// Ghosts behind physical faces keep their values, or get those that a neighbor has of the same places:
// see docs/reference/boundaries.md.
func (e *Exchanger) Exchange(at []*streams.Stream) error {
	if !e.IsDirect() {
		if err := e.Start(at); err != nil {
			return err
		}
		return e.Wait(at)
	}
	if err := e.hold(); err != nil {
		return err
	}
	defer e.release()
	if err := e.check(at); err != nil {
		return err
	}
	for rank, s := range at {
		if err := e.direct[rank].Queue(s); err != nil {
			return e.fail(err)
		}
	}
	return nil
}

// check returns an error unless the exchanger can be used, with these streams.
func (e *Exchanger) check(at []*streams.Stream) error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.Err(); err != nil {
		return err
	}
	return e.plan.Placement.Suits(at)
}

// makeChannels creates what Start needs in addition to the transfers: a channel for each subdomain of this process,
// with the work of all its transfers. Copies of all messages are one launch; additions, which may overlap,
// are launched one after another.
func (e *Exchanger) makeChannels() error {
	byRank := map[int]*channel{}
	var channels []*channel
	for rank, d := range e.plan.Placement.Devices {
		if d == nil {
			continue
		}
		c, err := e.newChannel(rank, d)
		if err != nil {
			return err
		}
		byRank[rank], channels = c, append(channels, c)
	}
	for i, m := range e.plan.Messages {
		t, from, to := e.transfers[i], byRank[m.From], byRank[m.To]
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
	for _, c := range channels {
		if e.direct != nil {
			break
		}
		if err := errors.Join(e.ready(&c.out), e.ready(&c.in)); err != nil {
			return err
		}
	}
	e.channels = channels
	return nil
}

func (e *Exchanger) newChannel(rank int, d *streams.Device) (*channel, error) {
	c := &channel{
		rank: rank,
		out:  end{rank: rank, work: streams.Pack, name: "send"},
		in:   end{rank: rank, work: streams.Unpack, name: "receive"},
	}
	if e.remote != nil {
		c.waits = e.remote.waits
	}
	for _, s := range []**streams.Stream{&c.sendStream, &c.receiveStream} {
		made, err := d.NewStream(streams.Urgent)
		if err != nil {
			return nil, err
		}
		e.resources.Add(made)
		*s = made
	}
	c.sendStream.SetName("send")
	c.receiveStream.SetName("receive")
	for _, event := range []**streams.Event{&c.ready, &c.sent, &c.received} {
		made, err := d.NewEvent()
		if err != nil {
			return nil, err
		}
		e.resources.Add(made)
		*event = made
	}
	return c, nil
}

// ExchangeRank queues the part of one subdomain in an exchange on a stream of its
// device, for callers that have a thread per device: the stream continues when the
// ghosts have arrived and the points are no longer needed. It must be called equally
// often for every rank, in any order, and only where IsDirect is true.
func (e *Exchanger) ExchangeRank(rank int, s *streams.Stream) error {
	return e.queueRank(rank, s, (*pack.DirectExchange).Queue)
}

// BeginRank and EndRank are ExchangeRank in two halves, for callers whose kernels store all that the subdomain sends
// into the ghosts of the neighbours. What is queued between the halves may store there; after the second half the
// ghosts of the subdomain have arrived. They are for subdomains that send nothing to themselves. The first half only
// waits until all neighbours have read their ghosts. Where work queued before ensures that, it may be left out, for all
// ranks.
func (e *Exchanger) BeginRank(rank int, s *streams.Stream) error {
	return e.queueRank(rank, s, (*pack.DirectExchange).Begin)
}

// EndRank is the second half, see BeginRank.
func (e *Exchanger) EndRank(rank int, s *streams.Stream) error {
	return e.queueRank(rank, s, (*pack.DirectExchange).End)
}

func (e *Exchanger) queueRank(
	rank int, s *streams.Stream, queue func(*pack.DirectExchange, *streams.Stream) error,
) error {
	switch err := e.usable(); {
	case err != nil:
		return err
	case e.direct == nil:
		return errors.New("halo: the exchange is not one kernel per GPU, see IsDirect: a rank cannot be queued alone")
	case rank < 0 || rank >= len(e.direct):
		return fmt.Errorf("halo: rank %d of %d", rank, len(e.direct))
	case e.direct[rank].Err() != nil:
		return e.direct[rank].Err()
	}
	if err := e.plan.Placement.suits(rank, s); err != nil {
		return err
	}
	return queue(e.direct[rank], s)
}

// SetLimit sets how long a GPU waits for a neighbour in exchanges that are queued from now on; the default is two
// minutes. After the limit Err returns an error. It changes nothing where IsDirect is false.
func (e *Exchanger) SetLimit(limit time.Duration) {
	if e == nil {
		return
	}
	for _, s := range e.direct {
		s.SetLimit(limit)
	}
}

// IsDirect reports whether the exchange is one kernel per GPU: there are messages, all take path
// direct, and every subdomain has its own GPU.
func (e *Exchanger) IsDirect() bool { return e != nil && e.direct != nil }
