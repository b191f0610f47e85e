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

// message is the common part of both ends of a message. Its thread transfers the bytes once per turn.
type message struct {
	processes  *Processes
	other, tag int
	span       streams.Span    // device memory
	stream     *streams.Stream // for the copies of the carrier
	lane       *streams.Lane   // trace of sent messages
	ready      *streams.Event  // after the work queued before the requested turn
	asked      chan int64      // step of a turn to begin; closed at the end
	turns      streams.Counter // number of completed turns of this side, see over
	event      *streams.Event  // after the work queued by the last completed turn
	failed     atomic.Pointer[error]
	ended      chan struct{}
	carrier    carrier
	resources  streams.Resources
}

// A carrier transfers the bytes of a message from its span to the other process, or from there into its span. Each
// network has its own carrier. Only the thread of the message calls it, except for quiet, which is called after
// the thread has ended.
type carrier interface {
	// carry runs one turn, after the work before the event ready of the message. It calls over once all accesses to
	// the span are queued on the stream, and returns when the next turn may begin. Every wait in it has the limit of
	// the processes, and ends with their first failure.
	carry() error

	// progress lets the network continue with turns that are not requested yet. Errors are returned by the next turn.
	progress()

	// quiet reports whether the memory of the carrier and the span are no longer in use, so that they can be freed.
	quiet() bool
}

// newMessage returns the common part of both ends, without the carrier. name is for errors.
func (p *Processes) newMessage(span streams.Span, other, tag int, name string) (m *message, err error) {
	if other < 0 || other >= p.Size() || other == p.Rank {
		return nil, fmt.Errorf("mpi: message: rank must be another one below %d, got %d on rank %d",
			p.Size(), other, p.Rank)
	}
	if span.Memory == nil || span.Length < 1 || span.Memory.Pinned() {
		return nil, fmt.Errorf("mpi: message: must be device memory, got %v", span)
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

// allocate creates the stream and the events.
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

// run runs turns with a carrier until the message is closed or fails.
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

// next waits for the next requested turn; ok is false after the last. For GPUs it polls between steps. CPU devices
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

// fail reports an error to all processes, and to local waiters.
func (m *message) fail(err error) {
	if first := m.processes.Err(); first != nil {
		err = first
	}
	err = fmt.Errorf("mpi: %s: %w", m.turns.Name, err)
	m.failed.Store(&err)
	_ = m.processes.Fail(err) // which keeps it too
	m.turns.Set(math.MaxInt64)
}

// sent records in the trace how long the network had the message.
func (m *message) sent(since time.Time) {
	m.lane.Note(streams.Operation{Name: "message", Work: streams.CopyWork, Step: m.stream.Step(), Bytes: m.span.Length},
		since, time.Now())
}

// begin begins a turn in the step of a stream, unless the thread has failed.
func (m *message) begin(s *streams.Stream) {
	select {
	case m.asked <- s.Step():
	case <-m.ended:
	}
}

// over releases the waiters for the turn: they wait for the work queued on the stream so far.
func (m *message) over() error {
	if err := m.stream.Record(m.event); err != nil {
		return err
	}
	m.turns.Add()
	return nil
}

// follow makes s wait for the work of the n-th turn, once it is over. The host waits for that.
func (m *message) follow(c *streams.WorkerGroup, s *streams.Stream, n int64) error {
	if err := c.Await(&m.turns, n); err != nil {
		return err
	}
	if err := m.failed.Load(); err != nil {
		return *err
	}
	return s.Wait(m.event)
}

// close ends the thread and frees the buffers. Turns that have begun end first, within the limit. Buffers that may
// still be in use, as after a failure, are not freed. Closing twice is allowed.
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

// pieces transfers messages through a ring of buffers of pinned memory, so that one piece is copied while MPI
// sends the one before. Pieces are numbered across turns: the buffers of one turn are filled while MPI still sends
// the last pieces of the turn before. Every wait also calls MPI, which may make progress only within calls.
type pieces struct {
	*message
	slots []*slot
	first int   // number of the first piece of the turn
	lost  error // error of a request seen by progress
}

// slot is the buffer of one piece.
type slot struct {
	memory  *streams.Memory
	bytes   []byte
	copied  *streams.Event
	request binding.Request
}

const (
	mostSent   = 2 // pieces that MPI sends at a time: the handshake of one overlaps with the transfer of the one before
	mostSlots  = 3
	leastPiece = 512 << 10 // bytes; a shorter piece costs more than its copy hides
	fairPiece  = 1 << 20   // bytes; the copy takes as long as the overhead of a piece, see pieceSize
)

// newPieces allocates the buffers.
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

// pieceSize returns the size of a piece in bytes, at most the given one; the last piece of a message may be
// shorter. Nothing hides the copy of the first piece on the sender and of the last on the receiver, so pieces
// should be short. Each piece has overhead for handshakes and driver calls, so there should be few. The sum is
// minimal for the square root of the message size times fairPiece.
func pieceSize(length, most int64) int64 {
	size := min(length, most, max(leastPiece, int64(math.Sqrt(float64(length)*fairPiece))))
	return ceilDiv(length, ceilDiv(length, size))
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// newSlot allocates a buffer that MPI may hold beyond a call: pinned memory for a GPU. Pinned memory of CPU
// devices is Go memory, so they use other memory.
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

// closer adapts a function to io.Closer.
type closer func()

func (c closer) Close() error { c(); return nil }

// count returns the number of pieces of a message.
func (p *pieces) count() int { return int(ceilDiv(p.span.Length, int64(len(p.slots[0].bytes)))) }

// piece returns the bytes of piece i of the turn.
func (p *pieces) piece(i int) streams.Span {
	size := int64(len(p.slots[0].bytes))
	at := int64(i-p.first) * size
	return p.span.Memory.Span(p.span.Offset+at, min(size, p.span.Length-at))
}

// slot returns the buffer of piece i.
func (p *pieces) slot(i int) *slot { return p.slots[i%len(p.slots)] }

// done waits until MPI no longer uses the buffer of piece i; there is none before the first.
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

// copied waits until the copy of piece i is done, while MPI sends piece j.
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
		return fmt.Errorf("%v: a copy through pinned memory is not done after %v", s.copied.Device(), limit)
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

// piecesIn receives. MPI always has all free buffers to receive into, so that pieces arrive before their turn is
// requested.
type piecesIn struct {
	*pieces
	posted int // pieces with a buffer posted to MPI
}

// carry receives all pieces of a turn: one is copied while MPI receives the next.
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

// post posts the buffers of all pieces before piece i to MPI, once their copies are done.
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

// quiet implements carrier. It cancels receives for turns that were not requested.
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

// piecesOut sends.
type piecesOut struct {
	*pieces
	began time.Time // when MPI got the first piece of the turn
}

// carry sends all pieces: the next is copied while MPI sends. It ends when MPI has sent them, or as soon as the
// next turn is requested, whose waits complete the rest.
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

// fetch queues the copy of a piece of the turn into its buffer, once MPI no longer uses it.
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

// send passes a piece to MPI, once it is copied. It waits for MPI first: querying the driver for the copy delays
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

// settle waits until MPI has sent all pieces, or another turn is requested.
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
