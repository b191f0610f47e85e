package mpi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/streams"
)

// Use selects the networks of messages created afterwards: one between processes of one host, and one between
// hosts. The default for both is Pieces. All processes must call it, with the same arguments.
func (p *Processes) Use(sameHost, interHost Network) error {
	for _, n := range []Network{sameHost, interHost} {
		if !slices.Contains(networks, n) {
			return fmt.Errorf("mpi: network: must be known, got %q", n)
		}
		if n == NCCL && p.pairs == nil {
			return errors.New("mpi: network nccl: must be opened by TryNCCL")
		}
	}
	if interHost == IPC {
		return errors.New("mpi: network ipc: must be within a host")
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

// Maps reports whether messages between two processes are HostMessages: both are on one host, and network IPC is used
// there.
func (p *Processes) Maps(from, to int) bool { return p.sameHost == IPC && p.Nodes[from] == p.Nodes[to] }

// newCarrier returns the carrier of a message, for the sending or the receiving end.
func (m *message) newCarrier(sends bool) (carrier, error) {
	network := m.processes.networkTo(m.other)
	if network != Pieces && m.span.Memory.Device().HostMemory {
		return nil, fmt.Errorf("mpi: network %s: %w", network, errNoDeviceMemory)
	}
	switch network {
	case IPC:
		return nil, errors.New("mpi: network ipc: must be used by NewHostMessages")
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

// startMessage creates a message and its carrier, and runs it.
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

// Sender sends the bytes of a span of device memory to another process, repeatedly. Only one thread uses it.
type Sender struct {
	*message
	sent int64
}

// NewSender creates a sender to a rank, whose Receiver has the same tag and length. name describes the message and
// the other process, for errors. Close frees it.
func (p *Processes) NewSender(src streams.Span, to, tag int, name string) (*Sender, error) {
	m, err := p.startMessage(src, to, tag, name, true)
	return &Sender{message: m}, err
}

// Ready makes the stream wait until the last message has left the span, which may then be overwritten.
func (s *Sender) Ready(group *streams.WorkerGroup, stream *streams.Stream) error {
	if s.sent == 0 {
		return nil
	}
	return s.follow(group, stream, s.sent)
}

// Send sends the content of the span after all work queued on the stream. Ready must be called before the next
// Send.
func (s *Sender) Send(stream *streams.Stream) error {
	if err := stream.Record(s.ready); err != nil {
		return err
	}
	s.sent++
	s.begin(stream)
	return nil
}

// Close ends the sender. Closing twice is allowed.
func (s *Sender) Close() error { return s.close() }

// Receiver receives messages of a Sender of another process into a span of device memory. Only one thread uses it.
type Receiver struct {
	*message
	expected int64
}

// NewReceiver creates a receiver from a rank, whose Sender has the same tag and length. name describes the message
// and the other process, for errors. Close frees it.
func (p *Processes) NewReceiver(dst streams.Span, from, tag int, name string) (*Receiver, error) {
	m, err := p.startMessage(dst, from, tag, name, false)
	return &Receiver{message: m}, err
}

// Expect begins to receive one message, in the step of the stream that will be passed to Receive. The span is
// written after the work of the last Done.
func (r *Receiver) Expect(s *streams.Stream) {
	r.expected++
	r.begin(s)
}

// Receive makes s wait until the last expected message is in the span. The host waits until all of it has arrived.
func (r *Receiver) Receive(c *streams.WorkerGroup, s *streams.Stream) error {
	return r.follow(c, s, r.expected)
}

// Done marks the work queued on s as the last to read the message. It must be called before the next Expect.
func (r *Receiver) Done(s *streams.Stream) error { return s.Record(r.ready) }

// Close ends the receiver. Closing twice is allowed.
func (r *Receiver) Close() error { return r.close() }
