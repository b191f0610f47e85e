package halo

import (
	"errors"

	"github.com/halox/halox/streams"
)

// Transfer carries one message, any number of times.
//
// The sender's worker calls Send and the receiver's Receive, each as often as
// the other and on a stream of its own device. What a transfer carries next
// may overwrite what it carried last: before the n-th Send is queued, the work
// before it must depend on the receiver having used what the Send before it
// brought. Start sees to that. So do sweeps between two exchanges, where every
// message has one in return and two fields take turns. A message to another process waits for
// its own buffers by itself.
//
// Of a message from or to another process this one has the one end, and calls only that.
type Transfer struct {
	usable   func() error // an error if there is no such message, or the exchanger is of no use
	out, in  end
	sent     *streams.Signal      // nil where the other end is another process's
	waits    *streams.WorkerGroup // for what was sent to another process to leave; nil where none is
	received int64
}

var errNoStream = errors.New("halo: the stream is nil")

// Send queues the sender's part on a stream of the sender.
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

// Receive queues the receiver's part on a stream of the receiver. It waits on
// the host until the sender's worker has queued its part, or, where that is one of another
// process, until the message has come.
func (t *Transfer) Receive(c *streams.WorkerGroup, s *streams.Stream) error {
	if err := t.usable(); err != nil {
		return err
	}
	if s == nil {
		return errNoStream
	}
	if t.sent == nil {
		t.in.expect(s)
		return t.in.receive(c, s)
	}
	t.received++
	if err := t.sent.Wait(c, s, t.received); err != nil {
		return err
	}
	return t.in.receive(c, s)
}
