package mpi

import "github.com/halox/halox/streams"

// Receiver receives messages of a Sender of another process into a span of device memory. One
// thread uses it.
type Receiver struct {
	*message
	expected int64
}

// NewReceiver makes a receiver from a rank, whose Sender has the same tag and length. whom names
// the message and the other process, for errors. Close frees it.
func (p *Processes) NewReceiver(dst streams.Span, from, tag int, whom string) (*Receiver, error) {
	m, err := p.newMessage(dst, from, tag, whom)
	if err != nil {
		return nil, err
	}
	if err := m.start(false); err != nil {
		return nil, err
	}
	return &Receiver{message: m}, nil
}

// Expect begins to receive one message, in the step of the stream that Receive will have wait. What Done was called for last is
// waited for before the span is written.
func (t *Receiver) Expect(s *streams.Stream) {
	t.expected++
	t.begin(s)
}

// Receive makes s wait until the message expected last lies in the span. The host waits until
// all of it has come.
func (t *Receiver) Receive(c *streams.WorkerGroup, s *streams.Stream) error {
	return t.follow(c, s, t.expected)
}

// Done says that what was queued on s is the last to read the message. It comes before the next
// Expect.
func (t *Receiver) Done(s *streams.Stream) error { return s.Record(t.ready) }

// Close ends the receiver. Closing twice is no error.
func (t *Receiver) Close() error { return t.close() }
