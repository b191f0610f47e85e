package mpi

import "github.com/halox/halox/streams"

// Receiver receives messages of a Sender of another process into a span of device memory. One
// thread uses it.
type Receiver struct {
	*message
	used     *streams.Event
	expected int64
}

// NewReceiver makes a receiver from a rank, whose Sender has the same tag and length. whom names
// the message and the other process, for errors. Close frees it.
func (p *Processes) NewReceiver(dst streams.Span, from, tag int, whom string) (*Receiver, error) {
	m, err := p.newMessage(dst, from, tag, whom)
	if err != nil {
		return nil, err
	}
	t := &Receiver{message: m}
	if t.used, err = dst.Memory.Device().NewEvent(); err != nil {
		return nil, err
	}
	m.resources.Add(t.used)
	go m.carry(t.turn)
	return t, nil
}

// Expect begins to receive one message, in the step of the stream that Receive will have wait. What Done was called for last is
// waited for, on the device, before the span is written.
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
func (t *Receiver) Done(s *streams.Stream) error { return s.Record(t.used) }

// turn receives all pieces: while one is copied, MPI brings the next.
func (t *Receiver) turn() error {
	n := t.pieces()
	for k := range min(2, n) {
		if err := t.post(k); err != nil {
			return err
		}
	}
	if err := t.stream.Wait(t.used); err != nil {
		return err
	}
	for k := range n {
		s, piece := t.slots[k%2], t.piece(k)
		if err := t.done(s); err != nil {
			return err
		}
		if err := t.stream.Copy(piece, s.memory.Span(0, piece.Length)); err != nil {
			return err
		}
		if err := t.stream.Record(s.copied); err != nil {
			return err
		}
		if k+2 < n {
			if err := s.copied.Sync(t.processes.options.Limit); err != nil {
				return err
			}
			if err := t.post(k + 2); err != nil {
				return err
			}
		}
	}
	return t.finish()
}

// post has MPI receive a piece.
func (t *Receiver) post(k int) error {
	s, piece := t.slots[k%2], t.piece(k)
	return t.processes.data.Irecv(&s.request, s.bytes[:piece.Length], t.other, t.tag)
}

// finish lets those who wait go on, and waits until the buffers can be written again.
func (t *Receiver) finish() error {
	if err := t.stream.Record(t.event); err != nil {
		return err
	}
	t.turns.Add()
	return t.event.Sync(t.processes.options.Limit)
}

// Close ends the receiver. Closing twice is no error.
func (t *Receiver) Close() error { return t.close() }
