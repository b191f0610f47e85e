package halo

import (
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/p2p"
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
}

// operation is work that was made ready to be queued any number of times.
type operation interface{ Queue(s *streams.Stream) error }

// launch is an operation of one kernel.
type launch struct{ *streams.Kernel }

func (l launch) Queue(s *streams.Stream) error { return s.Launch(l.Kernel) }

// join adds the work of another message's end.
func (e *end) join(other *end) {
	e.copies = append(e.copies, other.copies...)
	e.apart = append(e.apart, other.apart...)
	e.routes = append(e.routes, other.routes...)
}

// send queues the sender's part.
func (e *end) send(s *streams.Stream) error {
	if err := e.launch(s); err != nil {
		return err
	}
	for _, r := range e.routes {
		if err := r.Push(s); err != nil {
			return err
		}
	}
	return nil
}

// receive queues the receiver's part.
func (e *end) receive(s *streams.Stream) error {
	for _, r := range e.routes {
		if err := r.Pull(s); err != nil {
			return err
		}
	}
	return e.launch(s)
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
