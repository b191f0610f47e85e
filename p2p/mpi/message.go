package mpi

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/streams"
)

// message is what both ends of a message have: a thread that carries it, a turn for each time,
// and two buffers through which its pieces go.
type message struct {
	processes  *Processes
	other, tag int
	span       streams.Span    // of device memory
	stream     *streams.Stream // on which pieces are copied
	slots      [2]*slot
	asked      chan int64      // a turn of that step is to begin; closed at the end
	turns      streams.Counter // for which all copies of this side are queued
	event      *streams.Event  // after the copies of the last such turn
	failed     atomic.Pointer[error]
	ended      chan struct{}
	resources  streams.Resources
}

// slot is a buffer that one piece goes through.
type slot struct {
	memory  *streams.Memory
	bytes   []byte
	copied  *streams.Event
	request binding.Request
}

// newMessage makes what both ends have. whom says what the message is, for errors.
func (p *Processes) newMessage(span streams.Span, other, tag int, whom string) (m *message, err error) {
	if other < 0 || other >= p.Size() || other == p.Rank {
		return nil, fmt.Errorf("mpi: a message between ranks %d and %d of %d", p.Rank, other, p.Size())
	}
	if span.Memory == nil || span.Length < 1 || span.Memory.Pinned() {
		return nil, fmt.Errorf("mpi: a message of %v", span)
	}
	m = &message{
		processes: p, other: other, tag: tag, span: span,
		asked: make(chan int64, 2), ended: make(chan struct{}),
		turns: streams.Counter{Whom: whom},
	}
	if err := m.allocate(span.Memory.Device()); err != nil {
		return nil, errors.Join(err, m.resources.Close())
	}
	return m, nil
}

// allocate makes the stream, the events and the buffers.
func (m *message) allocate(d *streams.Device) (err error) {
	if m.stream, err = d.NewStream(streams.Urgent); err != nil {
		return err
	}
	m.stream.SetName("wire")
	m.resources.Add(m.stream)
	if m.event, err = d.NewEvent(); err != nil {
		return err
	}
	m.resources.Add(m.event)
	for i := range m.slots {
		if m.slots[i], err = m.newSlot(d, min(m.span.Length, m.processes.options.Piece)); err != nil {
			return err
		}
	}
	return nil
}

// newSlot allocates a buffer that MPI may know beyond a call: pinned memory of a GPU's driver,
// and for host devices, whose pinned memory is Go's, memory that is not.
func (m *message) newSlot(d *streams.Device, bytes int64) (s *slot, err error) {
	s = &slot{}
	if s.copied, err = d.NewEvent(); err != nil {
		return nil, err
	}
	m.resources.Add(s.copied)
	if !d.HostMemory {
		if s.memory, err = d.AllocPinned(bytes); err != nil {
			return nil, err
		}
		m.resources.Add(s.memory)
		s.bytes = s.memory.Bytes()
		return s, nil
	}
	block, err := binding.NewMemory(int(bytes))
	if err != nil {
		return nil, err
	}
	m.resources.Add(closer(block.Free))
	if s.memory, err = d.WrapBytes(block.Bytes); err != nil {
		return nil, err
	}
	m.resources.Add(s.memory)
	s.bytes = block.Bytes
	return s, nil
}

// closer is a function that gives something back.
type closer func()

func (c closer) Close() error { c(); return nil }

// carry runs turns until the message is closed or fails.
func (m *message) carry(turn func() error) {
	defer close(m.ended)
	for step := range m.asked {
		m.stream.BeginStep(step)
		err := m.processes.Err()
		if err == nil {
			err = turn()
		}
		if err != nil {
			m.fail(err)
			return
		}
	}
}

// fail tells all processes, and who waits here.
func (m *message) fail(err error) {
	if first := m.processes.Err(); first != nil {
		err = first
	}
	err = fmt.Errorf("mpi: %s: %w", m.turns.Whom, err)
	m.failed.Store(&err)
	_ = m.processes.Fail(err) // which has it too
	m.turns.Set(math.MaxInt64)
}

// begin has a turn begin, of the step of a stream, unless the thread has ended by a failure.
func (m *message) begin(s *streams.Stream) {
	select {
	case m.asked <- s.Step():
	case <-m.ended:
	}
}

// follow makes s wait for the copies of the n-th turn, once they are queued. The host waits for
// that.
func (m *message) follow(c *streams.WorkerGroup, s *streams.Stream, n int64) error {
	if err := c.Await(&m.turns, n); err != nil {
		return err
	}
	if err := m.failed.Load(); err != nil {
		return *err
	}
	return s.Wait(m.event)
}

// piece returns the bytes of the message that go as number k.
func (m *message) piece(k int) streams.Span {
	size := int64(len(m.slots[0].bytes))
	at := int64(k) * size
	return m.span.Memory.Span(m.span.Offset+at, min(size, m.span.Length-at))
}

// pieces returns how many there are.
func (m *message) pieces() int {
	size := int64(len(m.slots[0].bytes))
	return int((m.span.Length + size - 1) / size)
}

// done waits until MPI is done with the buffer of a slot.
func (m *message) done(s *slot) error {
	return s.request.Wait(m.processes.failure.ctx, m.processes.options.Limit)
}

// close ends the thread and frees the buffers. What was begun ends first, within the limit.
// Where MPI may still write into a buffer, which is so after a failure, nothing is freed.
// Closing twice is no error.
func (m *message) close() error {
	if m.asked == nil {
		return nil
	}
	close(m.asked)
	<-m.ended
	m.asked = nil
	for _, s := range m.slots {
		if done, err := s.request.Test(); !done || err != nil {
			return m.stream.Close()
		}
	}
	return m.resources.Close()
}
