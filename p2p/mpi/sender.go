package mpi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/streams"
)

// Use has messages that are made from now on carried by one network between processes of one host, and by one between
// hosts. Without it both are Pieces. All processes must call it, with the same.
func (p *Processes) Use(sameHost, interHost Network) error {
	for _, n := range []Network{sameHost, interHost} {
		if !slices.Contains(networks, n) {
			return fmt.Errorf("mpi: there is no network %q", n)
		}
		if n == NCCL && p.pairs == nil {
			return errors.New("mpi: network nccl is not open, see TryNCCL")
		}
	}
	p.sameHost, p.interHost = sameHost, interHost
	return nil
}

// Used returns the networks of messages to processes of the same host, and of others.
func (p *Processes) Used() (sameHost, interHost Network) { return p.sameHost, p.interHost }

// networkTo returns the network of messages between this process and another.
func (p *Processes) networkTo(other int) Network {
	if p.Nodes[p.Rank] == p.Nodes[other] {
		return p.sameHost
	}
	return p.interHost
}

// newCarrier makes what carries a message, at the end that sends or at the other one.
func (m *message) newCarrier(sends bool) (carrier, error) {
	network := m.processes.networkTo(m.other)
	if network != Pieces && m.span.Memory.Device().HostMemory {
		return nil, fmt.Errorf("mpi: network %s: %w", network, errNoDeviceMemory)
	}
	switch network {
	case Device:
		return &whole{message: m, sends: sends}, nil
	case NCCL:
		return newLinked(m, m.processes.pairs, sends)
	}
	p, err := newPieces(m)
	switch {
	case err != nil:
		return nil, err
	case sends:
		return &piecesOut{pieces: p}, nil
	}
	return &piecesIn{pieces: p}, nil
}

// startMessage makes a message and its carrier, which it runs.
func (p *Processes) startMessage(span streams.Span, other, tag int, name string, sends bool) (*message, error) {
	m, err := p.newMessage(span, other, tag, name)
	if err != nil {
		return nil, err
	}
	if sends {
		m.stream.SetName("copies for rank %d", other)
		m.lane = span.Memory.Device().NewLane("to rank %d", other)
	} else {
		m.stream.SetName("copies from rank %d", other)
	}
	c, err := m.newCarrier(sends)
	if err != nil {
		return nil, errors.Join(err, m.resources.Close())
	}
	m.run(c)
	return m, nil
}

// Sender sends the bytes of a span of device memory to another process, any number of times. One
// thread uses it.
type Sender struct {
	*message
	sent int64
}

// NewSender makes a sender to a rank, whose Receiver has the same tag and length. name names the
// message and the other process, for errors. Close frees it.
func (p *Processes) NewSender(src streams.Span, to, tag int, name string) (*Sender, error) {
	m, err := p.startMessage(src, to, tag, name, true)
	return &Sender{message: m}, err
}

// Ready makes the stream wait until what was sent last has left the span, which may then be written.
func (s *Sender) Ready(group *streams.WorkerGroup, stream *streams.Stream) error {
	if s.sent == 0 {
		return nil
	}
	return s.follow(group, stream, s.sent)
}

// Send sends what the span holds when all work queued on the stream is done. Before the next Send, Ready
// must be called.
func (s *Sender) Send(stream *streams.Stream) error {
	if err := stream.Record(s.ready); err != nil {
		return err
	}
	s.sent++
	s.begin(stream)
	return nil
}

// Close ends the sender. Closing twice is no error.
func (s *Sender) Close() error { return s.close() }

// Receiver receives messages of a Sender of another process into a span of device memory. One
// thread uses it.
type Receiver struct {
	*message
	expected int64
}

// NewReceiver makes a receiver from a rank, whose Sender has the same tag and length. name names
// the message and the other process, for errors. Close frees it.
func (p *Processes) NewReceiver(dst streams.Span, from, tag int, name string) (*Receiver, error) {
	m, err := p.startMessage(dst, from, tag, name, false)
	return &Receiver{message: m}, err
}

// Expect begins to receive one message, in the step of the stream that Receive will have wait. What Done was called for
// last is waited for before the span is written.
func (r *Receiver) Expect(s *streams.Stream) {
	r.expected++
	r.begin(s)
}

// Receive makes s wait until the message expected last lies in the span. The host waits until
// all of it has come.
func (r *Receiver) Receive(c *streams.WorkerGroup, s *streams.Stream) error {
	return r.follow(c, s, r.expected)
}

// Done says that what was queued on s is the last to read the message. It comes before the next
// Expect.
func (r *Receiver) Done(s *streams.Stream) error { return s.Record(r.ready) }

// Close ends the receiver. Closing twice is no error.
func (r *Receiver) Close() error { return r.close() }
