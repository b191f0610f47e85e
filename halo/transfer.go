package halo

import (
	"errors"

	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Transfer carries one message, any number of times.
//
// The sender's worker calls Send and the receiver's worker calls Receive, equally often, each on a stream of
// its device. A message may overwrite the previous one: when the n-th Send is queued, the work before it must
// depend on the receiver having used the previous message. Start ensures that. So do sweeps between two
// exchanges if every message has one in the opposite direction and two fields alternate. A message to another
// process waits for its buffers.
//
// A message from or to another process has only one end here, and only that end is called.
type Transfer struct {
	usable   func() error // returns an error if there is no such message, or the exchanger cannot be used
	out, in  end
	sent     *streams.Signal      // nil if the other end is in another process
	waits    *streams.WorkerGroup // waits until sends to another process have left; nil without such sends
	received int64
}

var errNoStream = errors.New("halo: the stream is nil")

// Send queues the sender's part on a stream of the sender. It must be called once per exchange.
func (t *Transfer) Send(s *streams.Stream) error {
	if err := t.usable(); err != nil {
		return err
	}
	if s == nil {
		return errNoStream
	}
	if err := t.out.send(t.waits, s); err != nil || t.sent == nil {
		return err
	}
	return t.sent.Record(s)
}

// Receive queues the receiver's part on a stream of the receiver. The host waits until the sender's worker
// has queued its part or, if the sender is another process, until the message has arrived.
func (t *Transfer) Receive(group *streams.WorkerGroup, s *streams.Stream) error {
	if err := t.usable(); err != nil {
		return err
	}
	if s == nil {
		return errNoStream
	}
	if t.sent == nil {
		t.in.expect(s)
		return t.in.receive(group, s)
	}
	t.received++
	if err := t.sent.Wait(group, s, t.received); err != nil {
		return err
	}
	return t.in.receive(group, s)
}

// end is the work of the device at one end of one message (for a Transfer) or of all messages that a
// subdomain sends or receives (for Start). The sender packs and then pushes; the receiver pulls and then
// unpacks. On path direct the sender's copies store into the ghosts, and nothing is pushed.
type end struct {
	rank     int
	work     streams.Work
	name     string
	copies   []pack.Copy // joined into one launch with the copies of other messages
	separate []operation // separate launches, in this order, after the copies
	routes   []*p2p.Route
	queue    []operation // all launches, see Exchanger.ready

	// Messages to and from other processes.
	senders   []sender
	receivers []receiver
}

// sender is the sending end of messages to another process, see mpi.Sender, which packs into a buffer.
type sender interface {
	Ready(group *streams.WorkerGroup, s *streams.Stream) error
	Send(s *streams.Stream) error
}

// receiver is the receiving end, see mpi.Receiver, which is unpacked from a buffer.
type receiver interface {
	Expect(s *streams.Stream)
	Receive(group *streams.WorkerGroup, s *streams.Stream) error
	Done(s *streams.Stream) error
}

// operation is work that can be queued any number of times.
type operation interface{ Queue(s *streams.Stream) error }

// launch is an operation of one kernel.
type launch struct{ *streams.Kernel }

// Queue implements operation.
func (l launch) Queue(s *streams.Stream) error { return s.Launch(l.Kernel) }

// join adds the work of the end of another message.
func (e *end) join(other *end) {
	e.copies = append(e.copies, other.copies...)
	e.separate = append(e.separate, other.separate...)
	e.routes = append(e.routes, other.routes...)
	e.senders = append(e.senders, other.senders...)
	e.receivers = append(e.receivers, other.receivers...)
}

// send queues the sender's part. A buffer for another process is packed again only after its previous content
// has left; the host waits for that with the group.
func (e *end) send(group *streams.WorkerGroup, s *streams.Stream) error {
	for _, t := range e.senders {
		if err := t.Ready(group, s); err != nil {
			return err
		}
	}
	if err := e.launch(s); err != nil {
		return err
	}
	for _, t := range e.senders {
		if err := t.Send(s); err != nil {
			return err
		}
	}
	for _, r := range e.routes {
		if err := r.Push(s); err != nil {
			return err
		}
	}
	return nil
}

// expect begins receiving from other processes, in the step of a stream.
func (e *end) expect(s *streams.Stream) {
	for _, t := range e.receivers {
		t.Expect(s)
	}
}

// receive queues the receiver's part. The host waits, with the group, until the messages expected from other
// processes have arrived.
func (e *end) receive(group *streams.WorkerGroup, s *streams.Stream) error {
	for _, t := range e.receivers {
		if err := t.Receive(group, s); err != nil {
			return err
		}
	}
	for _, r := range e.routes {
		if err := r.Pull(s); err != nil {
			return err
		}
	}
	if err := e.launch(s); err != nil {
		return err
	}
	for _, t := range e.receivers {
		if err := t.Done(s); err != nil {
			return err
		}
	}
	return nil
}

// launch queues the launches.
func (e *end) launch(s *streams.Stream) error {
	for _, o := range e.queue {
		if err := o.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

// channel holds the streams, events and launches of one subdomain for Start and Wait. The channels of
// neighbors wait for the events.
type channel struct {
	rank                      int
	sendStream, receiveStream *streams.Stream
	ready, sent, received     *streams.Event
	out, in                   end        // of all its messages
	to, from                  []*channel // the neighbors it sends to and receives from, possibly itself
	waits                     *streams.WorkerGroup
}

// send queues the sends of the channel, after all receivers are ready.
func (c *channel) send() error {
	if err := c.sendStream.Wait(c.ready); err != nil {
		return err
	}
	for _, to := range c.to {
		if err := c.sendStream.Wait(to.ready); err != nil {
			return err
		}
	}
	if err := c.out.send(c.waits, c.sendStream); err != nil {
		return err
	}
	return c.sendStream.Record(c.sent)
}

// receive queues the receives of the channel, after all senders have sent. Other processes cannot know what
// is ready here, so this end waits for that.
func (c *channel) receive() error {
	if len(c.in.receivers) > 0 {
		if err := c.receiveStream.Wait(c.ready); err != nil {
			return err
		}
	}
	for _, from := range c.from {
		if err := c.receiveStream.Wait(from.sent); err != nil {
			return err
		}
	}
	if err := c.in.receive(c.waits, c.receiveStream); err != nil {
		return err
	}
	if err := c.receiveStream.Wait(c.sent); err != nil {
		return err
	}
	return c.receiveStream.Record(c.received)
}
