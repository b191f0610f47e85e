package mpi

import "github.com/halox/halox/streams"

// Sender sends the bytes of a span of device memory to another process, any number of times. One
// thread uses it.
type Sender struct {
	*message
	sent int64
}

// NewSender makes a sender to a rank, whose Receiver has the same tag and length. whom names the
// message and the other process, for errors. Close frees it.
func (p *Processes) NewSender(src streams.Span, to, tag int, whom string) (*Sender, error) {
	m, err := p.newMessage(src, to, tag, whom)
	if err != nil {
		return nil, err
	}
	if err := m.start(true); err != nil {
		return nil, err
	}
	return &Sender{message: m}, nil
}

// Ready makes s wait until what was sent last has left the span, which may then be written.
func (t *Sender) Ready(c *streams.WorkerGroup, s *streams.Stream) error {
	if t.sent == 0 {
		return nil
	}
	return t.follow(c, s, t.sent)
}

// Send sends what the span holds when all work queued on s is done. Before the next Send, Ready
// must be called.
func (t *Sender) Send(s *streams.Stream) error {
	if err := s.Record(t.ready); err != nil {
		return err
	}
	t.sent++
	t.begin(s)
	return nil
}

// Close ends the sender. Closing twice is no error.
func (t *Sender) Close() error { return t.close() }
