package halo

import (
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// end is the work of the device at one end of some messages: of one, as a Transfer queues it, or
// of all that a subdomain sends or receives, as Start does. The sender packs and then pushes; the
// receiver pulls and then unpacks. Over path direct the sender's copies store into the ghosts, and
// there is nothing to push.
type end struct {
	rank   int
	work   streams.Work
	name   string
	copies []pack.Copy // which may be one launch, also with those of other messages
	apart  []operation // which are launches of their own, in this order, after the copies
	routes []*p2p.Route
	queue  []operation // all launches, see ready

	// Of messages to and from other processes.
	senders   []*mpi.Sender
	receivers []*mpi.Receiver
}

// operation is work that was made ready to be queued any number of times.
type operation interface{ Queue(s *streams.Stream) error }

// launch is an operation of one kernel.
type launch struct{ *streams.Kernel }

// Queue implements operation.
func (l launch) Queue(s *streams.Stream) error { return s.Launch(l.Kernel) }

// join adds the work of another message's end.
func (e *end) join(other *end) {
	e.copies = append(e.copies, other.copies...)
	e.apart = append(e.apart, other.apart...)
	e.routes = append(e.routes, other.routes...)
	e.senders = append(e.senders, other.senders...)
	e.receivers = append(e.receivers, other.receivers...)
}

// send queues the sender's part. What goes to other processes is packed once it has left the
// buffer the last time, for which the host waits with the group.
func (e *end) send(c *streams.WorkerGroup, s *streams.Stream) error {
	for _, t := range e.senders {
		if err := t.Ready(c, s); err != nil {
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

// expect begins to receive from other processes, in the step of a stream.
func (e *end) expect(s *streams.Stream) {
	for _, t := range e.receivers {
		t.Expect(s)
	}
}

// receive queues the receiver's part. The host waits, with the group, until what was expected
// from other processes has come.
func (e *end) receive(c *streams.WorkerGroup, s *streams.Stream) error {
	for _, t := range e.receivers {
		if err := t.Receive(c, s); err != nil {
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
