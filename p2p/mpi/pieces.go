package mpi

import (
	"fmt"
	"time"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/streams"
)

// pieces carry a message through a ring of buffers of pinned memory, so that a piece is copied while MPI has those before. Every
// wait also looks at MPI, which may carry what it has within calls alone.
type pieces struct {
	*message
	slots []*slot
}

const (
	mostSlots  = 4
	ahead      = mostSlots / 2 // pieces that are copied, or wait for their copy, while MPI has as many
	leastPiece = 128 << 10     // below it a piece costs more than its copy hides
)

// slot is a buffer that one piece goes through.
type slot struct {
	memory  *streams.Memory
	bytes   []byte
	copied  *streams.Event
	request binding.Request
}

// newPieces makes the buffers.
func newPieces(m *message) (p *pieces, err error) {
	p = &pieces{message: m}
	size := pieceSize(m.span.Length, m.processes.options.Piece)
	for range min(mostSlots, ceilDiv(m.span.Length, size)) {
		s, err := p.newSlot(m.span.Memory.Device(), size)
		if err != nil {
			return nil, err
		}
		p.slots = append(p.slots, s)
	}
	return p, nil
}

// pieceSize returns how many bytes of a message go at once, at most so many: a part of them for each buffer, but not too few.
func pieceSize(length, most int64) int64 {
	return min(length, most, max(leastPiece, ceilDiv(length, mostSlots)))
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

// piece returns the bytes of the message that go as number k.
func (p *pieces) piece(k int) streams.Span {
	size := int64(len(p.slots[0].bytes))
	at := int64(k) * size
	return p.span.Memory.Span(p.span.Offset+at, min(size, p.span.Length-at))
}

// count returns how many there are.
func (p *pieces) count() int { return int(ceilDiv(p.span.Length, int64(len(p.slots[0].bytes)))) }

// slot returns the buffer that piece k goes through.
func (p *pieces) slot(k int) *slot { return p.slots[k%len(p.slots)] }

// done waits until MPI is done with the buffer of a slot.
func (p *pieces) done(s *slot) error {
	return s.request.Wait(p.processes.failure.ctx, p.processes.options.Limit)
}

// copy queues the copy of a piece.
func (p *pieces) copy(s *slot, dst, src streams.Span) error {
	if err := p.stream.Copy(dst, src); err != nil {
		return err
	}
	return p.stream.Record(s.copied)
}

// copied waits until the copy of piece k is done, and meanwhile has MPI carry the piece before.
func (p *pieces) copied(k int) error {
	s, limit := p.slot(k), p.processes.options.Limit
	before := &p.slot(k + len(p.slots) - 1).request
	look := func() (bool, error) {
		if done, err := s.copied.Done(); done || err != nil {
			return done, err
		}
		_, err := before.Test()
		return false, err
	}
	late := func() error {
		return fmt.Errorf("%v: a copy by way of pinned memory is not done after %v", s.copied.Device(), limit)
	}
	return p.processes.library.Await(p.processes.failure.ctx, limit, look, late)
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

// outPieces send.
type outPieces struct{ *pieces }

// carry sends all pieces: while MPI has some, the next are copied.
func (p outPieces) carry() error {
	if err := p.stream.Wait(p.ready); err != nil {
		return err
	}
	n := p.count()
	for k := range min(ahead, n) {
		if err := p.fetch(k); err != nil {
			return err
		}
	}
	var began time.Time
	for k := range n {
		if err := p.copied(k); err != nil {
			return err
		}
		if k == 0 {
			began = time.Now()
		}
		s, piece := p.slot(k), p.piece(k)
		if err := p.processes.data.Isend(&s.request, s.bytes[:piece.Length], p.other, p.tag); err != nil {
			return err
		}
		if k+ahead < n {
			if err := p.fetch(k + ahead); err != nil {
				return err
			}
		}
	}
	for _, s := range p.slots {
		if err := p.done(s); err != nil {
			return err
		}
	}
	p.sent(began)
	return nil
}

// fetch queues the copy of a piece into its buffer, once MPI is done with that.
func (p outPieces) fetch(k int) error {
	s, piece := p.slot(k), p.piece(k)
	if err := p.done(s); err != nil {
		return err
	}
	if err := p.copy(s, s.memory.Span(0, piece.Length), piece); err != nil {
		return err
	}
	if k == p.count()-1 {
		return p.over()
	}
	return nil
}

// inPieces receive.
type inPieces struct{ *pieces }

// carry receives all pieces: while some are copied, MPI brings the next.
func (p inPieces) carry() error {
	n := p.count()
	for k := range min(len(p.slots), n) {
		if err := p.post(k); err != nil {
			return err
		}
	}
	if err := p.stream.Wait(p.ready); err != nil {
		return err
	}
	for k := range n {
		s, piece := p.slot(k), p.piece(k)
		if err := p.done(s); err != nil {
			return err
		}
		if err := p.copy(s, piece, s.memory.Span(0, piece.Length)); err != nil {
			return err
		}
		if err := p.again(k-ahead, n); err != nil {
			return err
		}
	}
	if err := p.over(); err != nil {
		return err
	}
	return p.event.Sync(p.processes.options.Limit) // the buffers can be written again
}

// again has MPI receive another of n pieces into the buffer of piece k, once that is copied.
func (p inPieces) again(k, n int) error {
	next := k + len(p.slots)
	if k < 0 || next >= n {
		return nil
	}
	if err := p.copied(k); err != nil {
		return err
	}
	return p.post(next)
}

// post has MPI receive a piece.
func (p inPieces) post(k int) error {
	s, piece := p.slot(k), p.piece(k)
	return p.processes.data.Irecv(&s.request, s.bytes[:piece.Length], p.other, p.tag)
}
