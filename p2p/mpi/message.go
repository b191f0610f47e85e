package mpi

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/halox/halox/streams"
)

// message is what both ends of a message have: a thread, which has the bytes carried in a turn for each time.
type message struct {
	processes  *Processes
	other, tag int
	span       streams.Span    // of device memory
	stream     *streams.Stream // of what the carrier queues
	lane       *streams.Lane   // of a trace, for what is sent
	ready      *streams.Event  // after what was queued before the turn that is asked for
	asked      chan int64      // a turn of that step is to begin; closed at the end
	turns      streams.Counter // that are over for this side, see over
	event      *streams.Event  // after what the last such turn queued
	failed     atomic.Pointer[error]
	ended      chan struct{}
	carrier    carrier
	resources  streams.Resources
}

// A carrier takes the bytes of a message from its span to the other process, or brings them from there into its span. Each
// engine has its own. The thread of the message alone calls it, but for quiet, which is called when that has ended.
type carrier interface {
	// carry makes one turn, behind what was queued before the event ready of the message. It calls over once all that this
	// side does with the span is queued on the stream, and returns when the next turn may begin. Every wait in it has the
	// limit of the processes, and ends with their first failure.
	carry() error

	// progress has the network go on with what comes for turns that are not asked for yet. An error is that of the next turn.
	progress()

	// quiet reports whether nobody else may use memory of the carrier or the span any more, so that it can be freed.
	quiet() bool
}

// newMessage makes what both ends have, but for the carrier. whom says what the message is, for errors.
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

// allocate makes the stream and the events.
func (m *message) allocate(d *streams.Device) (err error) {
	if m.stream, err = d.NewStream(streams.Urgent); err != nil {
		return err
	}
	m.resources.Add(m.stream)
	for _, e := range []**streams.Event{&m.event, &m.ready} {
		if *e, err = d.NewEvent(); err != nil {
			return err
		}
		m.resources.Add(*e)
	}
	return nil
}

// run makes turns with a carrier until the message is closed or fails.
func (m *message) run(c carrier) {
	m.carrier = c
	go func() {
		defer close(m.ended)
		for {
			step, ok := m.next()
			if !ok {
				return
			}
			m.stream.BeginStep(step)
			err := m.processes.Err()
			if err == nil {
				err = c.carry()
			}
			if err != nil {
				m.fail(err)
				return
			}
		}
	}()
}

// next waits for the turn that is asked for next; it is the last where ok is false. Between the steps of GPUs it polls: host devices
// need their cores to compute.
func (m *message) next() (step int64, ok bool) {
	came := func() bool {
		select {
		case step, ok = <-m.asked:
			return true
		default:
			m.carrier.progress()
			return false
		}
	}
	if m.span.Memory.Device().HostMemory || !m.processes.library.Linger(came) {
		step, ok = <-m.asked
	}
	return step, ok
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

// sent notes for a trace that the network has had the message since some time.
func (m *message) sent(since time.Time) {
	m.lane.Note(streams.Operation{Name: "message", Work: streams.CopyWork, Step: m.stream.Step(), Bytes: m.span.Length}, since, time.Now())
}

// begin has a turn begin, of the step of a stream, unless the thread has ended by a failure.
func (m *message) begin(s *streams.Stream) {
	select {
	case m.asked <- s.Step():
	case <-m.ended:
	}
}

// over lets those go on who wait for the turn: behind what is queued on the stream until now.
func (m *message) over() error {
	if err := m.stream.Record(m.event); err != nil {
		return err
	}
	m.turns.Add()
	return nil
}

// follow makes s wait for what the n-th turn has queued, once it is over. The host waits for that.
func (m *message) follow(c *streams.WorkerGroup, s *streams.Stream, n int64) error {
	if err := c.Await(&m.turns, n); err != nil {
		return err
	}
	if err := m.failed.Load(); err != nil {
		return *err
	}
	return s.Wait(m.event)
}

// close ends the thread and frees the buffers. What was begun ends first, within the limit.
// Where another may still use them, which is so after a failure, nothing is freed.
// Closing twice is no error.
func (m *message) close() error {
	if m.asked == nil {
		return nil
	}
	close(m.asked)
	<-m.ended
	m.asked = nil
	if !m.carrier.quiet() {
		return m.stream.Close()
	}
	return m.resources.Close()
}
