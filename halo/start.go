package halo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// Start queues an exchange and returns. at has a stream for every subdomain, by rank, on its device. The
// exchange begins after the work queued before, on the stream of the sender and on that of the receiver.
// Until Wait, work queued on these streams may read the fields except their ghosts, and must not write the
// points that are sent to neighbors.
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

// begin queues the work of Start.
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
		return nil // Wait waits on the host for messages of other processes
	}
	return e.receive()
}

// send queues the sends of a subdomain, or the whole exchange if it is one kernel per GPU.
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

// receive queues the receives of all subdomains.
func (e *Exchanger) receive() error {
	for _, c := range e.channels {
		if err := c.receive(); err != nil {
			return err
		}
	}
	return nil
}

// fail returns the error of a partly queued exchange, and notifies the other processes. The content of the
// ghosts is undefined then, and the exchanger cannot be used again.
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
	failed := fmt.Errorf("halo: an earlier exchange has failed and left ghosts undefined: %w", err)
	e.failed.Store(&failed)
	return err
}

// Wait makes the streams wait, on the devices, until the exchange begun by Start has updated the ghosts of
// each subdomain and has read its points. The host waits only for messages of other processes. The fields
// cannot be closed between Start and Wait.
func (e *Exchanger) Wait(at []*streams.Stream) error {
	if err := e.check(at); err != nil {
		return err
	}
	if !e.started.CompareAndSwap(true, false) {
		return fmt.Errorf("halo: no exchange is in progress: call Start before Wait")
	}
	defer e.release()
	if e.remote != nil {
		if err := e.receive(); err != nil {
			return e.fail(err)
		}
	}
	for _, c := range e.channels {
		done := c.received // after all sends and receives
		if e.direct != nil {
			done = c.sent
		}
		if err := at[c.rank].Wait(done); err != nil {
			return e.fail(err)
		}
	}
	return nil
}

// Exchange calls Start and Wait. If the exchange is one kernel per GPU, it queues that on the streams
// themselves. Ghosts outside physical boundaries keep their values, or get those that a neighbor has of the
// same places: see docs/reference/boundaries.md.
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

// check returns an error unless the exchanger can be used with these streams.
func (e *Exchanger) check(at []*streams.Stream) error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.Err(); err != nil {
		return err
	}
	return e.plan.Placement.Suits(at)
}

// makeChannels creates what Start needs in addition to the transfers: a channel for each subdomain of this
// process, with the work of all its transfers. All copies are one launch; additions, which may overlap, are
// launched one after another.
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

// ExchangeRank queues the part of one subdomain in an exchange on a stream of its device, for callers with
// one thread per device: the stream continues when the ghosts have arrived and the points have been read. It
// must be called equally often for every rank, in any order, and only if IsDirect is true.
func (e *Exchanger) ExchangeRank(rank int, s *streams.Stream) error {
	return e.queueRank(rank, s, (*pack.DirectExchange).Queue)
}

// BeginRank and EndRank are the two halves of ExchangeRank, for callers whose kernels store all that the
// subdomain sends into the ghosts of the neighbors. Work queued between the halves may store there; after the
// second half the ghosts of the subdomain have arrived. The subdomain must not be its own neighbor. The first
// half only waits until all neighbors have read their ghosts; it may be omitted, for all ranks, if earlier
// work ensures that.
func (e *Exchanger) BeginRank(rank int, s *streams.Stream) error {
	return e.queueRank(rank, s, (*pack.DirectExchange).Begin)
}

// EndRank is the second half of ExchangeRank, see BeginRank.
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
		return errors.New("halo: queuing a single rank needs an exchange that is one kernel per GPU, see IsDirect")
	case rank < 0 || rank >= len(e.direct):
		return fmt.Errorf("halo: the rank must be less than %d, got %d", len(e.direct), rank)
	case e.direct[rank].Err() != nil:
		return e.direct[rank].Err()
	}
	if err := e.plan.Placement.suits(rank, s); err != nil {
		return err
	}
	return queue(e.direct[rank], s)
}

// SetLimit sets how long a GPU waits for a neighbor in exchanges queued from now on; the default is two
// minutes. After the limit Err returns an error. It has no effect if IsDirect is false.
func (e *Exchanger) SetLimit(limit time.Duration) {
	if e == nil {
		return
	}
	for _, s := range e.direct {
		s.SetLimit(limit)
	}
}

// IsDirect reports whether the exchange is one kernel per GPU: there are messages, all take path direct, and
// every subdomain has its own GPU.
func (e *Exchanger) IsDirect() bool { return e != nil && e.direct != nil }
