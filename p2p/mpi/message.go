package mpi

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	binding "github.com/halox/halox/internal/mpi"
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

// A carrier takes the bytes of a message from its span to the other process, or brings them from there into its span.
// Each engine has its own. Only the thread of the message calls it, except for quiet, which is called when that has
// ended.
type carrier interface {
	// carry makes one turn, behind what was queued before the event ready of the message. It calls over once all that
	// this side does with the span is queued on the stream, and returns when the next turn may begin. Every wait in it
	// has the limit of the processes, and ends with their first failure.
	carry() error

	// progress has the network go on with what comes for turns that are not asked for yet. An error is that of the next
	// turn.
	progress()

	// quiet reports whether nothing else uses memory of the carrier or the span any more, so that it can be freed.
	quiet() bool
}

// newMessage returns the part that both ends share, without the carrier. The name is for errors.
func (p *Processes) newMessage(span streams.Span, other, tag int, name string) (m *message, err error) {
	if other < 0 || other >= p.Size() || other == p.Rank {
		return nil, fmt.Errorf("mpi: a message between ranks %d and %d of %d", p.Rank, other, p.Size())
	}
	if span.Memory == nil || span.Length < 1 || span.Memory.Pinned() {
		return nil, fmt.Errorf("mpi: a message of %v", span)
	}
	m = &message{
		processes: p, other: other, tag: tag, span: span,
		asked: make(chan int64, 2), ended: make(chan struct{}),
		turns: streams.Counter{Name: name},
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

// next waits for the turn that is asked for next; it is the last where ok is false. Between the steps of GPUs it polls:
// host devices need their cores to compute.
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
	err = fmt.Errorf("mpi: %s: %w", m.turns.Name, err)
	m.failed.Store(&err)
	_ = m.processes.Fail(err) // which has it too
	m.turns.Set(math.MaxInt64)
}

// sent notes for a trace that the network has had the message since some time.
func (m *message) sent(since time.Time) {
	m.lane.Note(streams.Operation{Name: "message", Work: streams.CopyWork, Step: m.stream.Step(), Bytes: m.span.Length},
		since, time.Now())
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

// pieces carry messages through a ring of buffers of pinned memory, so that a piece is copied while MPI has the one
// before. Pieces are numbered from the first message on, through all turns: the buffers of one turn are filled while
// MPI still has the last pieces of the turn before. Every wait also looks at MPI, which may carry what it has within
// calls alone.
type pieces struct {
	*message
	slots []*slot
	first int   // the number of the first piece of the turn
	lost  error // of a request that progress looked at
}

// slot is a buffer that one piece goes through.
type slot struct {
	memory  *streams.Memory
	bytes   []byte
	copied  *streams.Event
	request binding.Request
}

const (
	mostSent   = 2 // pieces that MPI has at a time: the handshake of one goes on while it carries the one before
	mostSlots  = 3
	leastPiece = 512 << 10 // bytes; a shorter one costs more than its copy hides
	fairPiece  = 1 << 20   // bytes; to copy as many takes as long as a piece costs, see pieceSize
)

// newPieces makes the buffers.
func newPieces(m *message) (p *pieces, err error) {
	p = &pieces{message: m}
	size := pieceSize(m.span.Length, m.processes.options.Piece)
	for range min(mostSlots, ceilDiv(m.span.Length, size)+mostSent) {
		s, err := p.newSlot(m.span.Memory.Device(), size)
		if err != nil {
			return nil, err
		}
		p.slots = append(p.slots, s)
	}
	return p, nil
}

// pieceSize returns the bytes of a piece, at most so many; the last of a message may be shorter. Nothing hides the copy
// of the first piece at the sender and that of the last at the receiver, so pieces are to be short. Each piece costs
// handshakes and calls of the driver, so there are to be few. The sum of both is least for pieces as long as the root
// of the message times fairPiece.
func pieceSize(length, most int64) int64 {
	size := min(length, most, max(leastPiece, int64(math.Sqrt(float64(length)*fairPiece))))
	return ceilDiv(length, ceilDiv(length, size))
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// newSlot allocates a buffer that MPI may know beyond a call: pinned memory of a GPU's driver,
// and for host devices, whose pinned memory is Go's, memory that is not.
func (p *pieces) newSlot(d *streams.Device, bytes int64) (s *slot, err error) {
	s = &slot{}
	if s.copied, err = d.NewEvent(); err != nil {
		return nil, err
	}
	p.resources.Add(s.copied)
	if !d.HostMemory {
		if s.memory, err = d.AllocPinned(bytes); err != nil {
			return nil, err
		}
		p.resources.Add(s.memory)
		s.bytes = s.memory.Bytes()
		return s, nil
	}
	block, err := binding.NewMemory(int(bytes))
	if err != nil {
		return nil, err
	}
	p.resources.Add(closer(block.Free))
	if s.memory, err = d.WrapBytes(block.Bytes); err != nil {
		return nil, err
	}
	p.resources.Add(s.memory)
	s.bytes = block.Bytes
	return s, nil
}

// closer is a function that gives something back.
type closer func()

func (c closer) Close() error { c(); return nil }

// count returns how many pieces a message has.
func (p *pieces) count() int { return int(ceilDiv(p.span.Length, int64(len(p.slots[0].bytes)))) }

// piece returns the bytes of the message that go as piece i, one of the turn's.
func (p *pieces) piece(i int) streams.Span {
	size := int64(len(p.slots[0].bytes))
	at := int64(i-p.first) * size
	return p.span.Memory.Span(p.span.Offset+at, min(size, p.span.Length-at))
}

// slot returns the buffer that piece i goes through.
func (p *pieces) slot(i int) *slot { return p.slots[i%len(p.slots)] }

// done waits until MPI is done with the buffer of piece i, or of none before the first.
func (p *pieces) done(i int) error {
	if i < 0 {
		return nil
	}
	return p.slot(i).request.Wait(p.processes.failure.ctx, p.processes.options.Limit)
}

// copy queues the copy of a piece.
func (p *pieces) copy(s *slot, dst, src streams.Span) error {
	if err := p.stream.Copy(dst, src); err != nil {
		return err
	}
	return p.stream.Record(s.copied)
}

// copied waits until the copy of piece i is done, and meanwhile has MPI carry piece j.
func (p *pieces) copied(i, j int) error {
	s, limit := p.slot(i), p.processes.options.Limit
	look := func() (bool, error) {
		if done, err := s.copied.Done(); done || err != nil || j < 0 {
			return done, err
		}
		_, err := p.slot(j).request.Test()
		return false, err
	}
	late := func() error {
		return fmt.Errorf("%v: a copy by way of pinned memory is not done after %v", s.copied.Device(), limit)
	}
	return p.processes.library.Await(p.processes.failure.ctx, limit, look, late)
}

// progress implements carrier.
func (p *pieces) progress() {
	if _, err := p.slot(p.first).request.Test(); err != nil {
		p.lost = err
	}
}

// quiet implements carrier.
func (p *pieces) quiet() bool {
	for _, s := range p.slots {
		if done, err := s.request.Test(); !done || err != nil {
			return false
		}
	}
	return true
}

// piecesIn receive. Buffers that are free are always MPI's to receive into, so that pieces come before the turn that
// takes them is asked for.
type piecesIn struct {
	*pieces
	posted int // pieces that MPI has got buffers for
}

// carry receives all pieces of a turn: while one is copied, MPI brings the next.
func (p *piecesIn) carry() error {
	if p.lost != nil {
		return p.lost
	}
	if err := p.post(p.first); err != nil {
		return err
	}
	if err := p.stream.Wait(p.ready); err != nil {
		return err
	}
	end := p.first + p.count()
	for i := p.first; i < end; i++ {
		if err := p.done(i); err != nil {
			return err
		}
		s, piece := p.slot(i), p.piece(i)
		if err := p.copy(s, piece, s.memory.Span(0, piece.Length)); err != nil {
			return err
		}
		if err := p.post(i); err != nil {
			return err
		}
	}
	if err := p.over(); err != nil {
		return err
	}
	p.first = end
	return p.post(end)
}

// post has MPI receive into the buffers of all pieces before piece i, once these are copied.
func (p *piecesIn) post(i int) error {
	for ; p.posted < i+len(p.slots); p.posted++ {
		if before := p.posted - len(p.slots); before >= 0 {
			if err := p.copied(before, before+1); err != nil {
				return err
			}
		}
		s := p.slot(p.posted)
		if err := p.processes.data.Irecv(&s.request, s.bytes, p.other, p.tag); err != nil {
			return err
		}
	}
	return nil
}

// quiet implements carrier. What MPI was to receive for turns that were not asked for is given up.
func (p *piecesIn) quiet() bool {
	for _, s := range p.slots {
		if s.request.Cancel() != nil {
			return false
		}
	}
	for end := time.Now().Add(p.processes.options.Limit / 4); !p.pieces.quiet(); time.Sleep(time.Millisecond) {
		if p.processes.Err() != nil || time.Now().After(end) {
			return false
		}
	}
	return true
}

// piecesOut send.
type piecesOut struct {
	*pieces
	began time.Time // when MPI got the first piece of the turn
}

// carry sends all pieces: while MPI has some, the next is copied. It ends when MPI is done with them, or before where
// the next turn is asked for: the waits of that one go on with what is left.
func (p *piecesOut) carry() error {
	if p.lost != nil {
		return p.lost
	}
	if err := p.stream.Wait(p.ready); err != nil {
		return err
	}
	end := p.first + p.count()
	if err := p.fetch(p.first, end); err != nil {
		return err
	}
	for i := p.first; i < end; i++ {
		if err := p.send(i); err != nil {
			return err
		}
		if err := p.fetch(i+1, end); err != nil {
			return err
		}
	}
	p.first = end
	return p.settle()
}

// fetch queues the copy of a piece of the turn into its buffer, once MPI is done with that.
func (p *piecesOut) fetch(i, end int) error {
	if i == end {
		return nil
	}
	if err := p.done(i - len(p.slots)); err != nil {
		return err
	}
	s, piece := p.slot(i), p.piece(i)
	if err := p.copy(s, s.memory.Span(0, piece.Length), piece); err != nil {
		return err
	}
	if i == end-1 {
		return p.over()
	}
	return nil
}

// send gives a piece to MPI, once it is copied. It waits for MPI first: to ask the driver for the copy takes time from
// MPI.
func (p *piecesOut) send(i int) error {
	if err := p.done(i - mostSent); err != nil {
		return err
	}
	if err := p.copied(i, i-1); err != nil {
		return err
	}
	if i == p.first {
		p.began = time.Now()
	}
	s := p.slot(i)
	return p.processes.data.Isend(&s.request, s.bytes[:p.piece(i).Length], p.other, p.tag)
}

// settle waits until MPI is done with all pieces, or another turn is asked for.
func (p *piecesOut) settle() error {
	limit := p.processes.options.Limit
	look := func() (bool, error) {
		for _, s := range p.slots {
			if done, err := s.request.Test(); !done || err != nil {
				return err == nil && len(p.asked) > 0, err
			}
		}
		return true, nil
	}
	late := func() error { return fmt.Errorf("a message was not sent within %v", limit) }
	err := p.processes.library.Await(p.processes.failure.ctx, limit, look, late)
	p.sent(p.began)
	return err
}
