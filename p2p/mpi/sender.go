package mpi

import "github.com/halox/halox/streams"

// Sender sends the bytes of a span of device memory to another process, any number of times. One
// thread uses it.
type Sender struct {
	*message
	packed *streams.Event
	sent   int64
}

// NewSender makes a sender to a rank, whose Receiver has the same tag and length. whom names the
// message and the other process, for errors. Close frees it.
func (p *Processes) NewSender(src streams.Span, to, tag int, whom string) (*Sender, error) {
	m, err := p.newMessage(src, to, tag, whom)
	if err != nil {
		return nil, err
	}
	t := &Sender{message: m}
	if t.packed, err = src.Memory.Device().NewEvent(); err != nil {
		return nil, err
	}
	m.resources.Add(t.packed)
	go m.carry(t.turn)
	return t, nil
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
	if err := s.Record(t.packed); err != nil {
		return err
	}
	t.sent++
	t.begin(s)
	return nil
}

// turn sends all pieces: while MPI has one, the next is copied.
func (t *Sender) turn() error {
	if err := t.stream.Wait(t.packed); err != nil {
		return err
	}
	last := t.pieces() - 1
	for k := range t.pieces() {
		s, piece := t.slots[k%2], t.piece(k)
		if err := t.done(s); err != nil {
			return err
		}
		if err := t.stream.Copy(s.memory.Span(0, piece.Length), piece); err != nil {
			return err
		}
		if err := t.stream.Record(s.copied); err != nil {
			return err
		}
		if k == last {
			if err := t.stream.Record(t.event); err != nil {
				return err
			}
			t.turns.Add()
		}
		if err := s.copied.Sync(t.processes.options.Limit); err != nil {
			return err
		}
		if err := t.processes.data.Isend(&s.request, s.bytes[:piece.Length], t.other, t.tag); err != nil {
			return err
		}
	}
	for _, s := range t.slots {
		if err := t.done(s); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the sender. Closing twice is no error.
func (t *Sender) Close() error { return t.close() }
