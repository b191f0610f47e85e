package mpi

import (
	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/streams"
)

// pieces carry a message through two buffers of pinned memory, so that a piece is copied while MPI has the one before.
type pieces struct {
	*message
	slots [2]*slot
}

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
	for i := range p.slots {
		if p.slots[i], err = p.newSlot(m.span.Memory.Device(), min(m.span.Length, m.processes.options.Piece)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

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
func (p *pieces) count() int {
	size := int64(len(p.slots[0].bytes))
	return int((p.span.Length + size - 1) / size)
}

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

// carry sends all pieces: while MPI has one, the next is copied.
func (p outPieces) carry() error {
	if err := p.stream.Wait(p.ready); err != nil {
		return err
	}
	last := p.count() - 1
	for k := range p.count() {
		s, piece := p.slots[k%2], p.piece(k)
		if err := p.done(s); err != nil {
			return err
		}
		if err := p.copy(s, s.memory.Span(0, piece.Length), piece); err != nil {
			return err
		}
		if k == last {
			if err := p.over(); err != nil {
				return err
			}
		}
		if err := s.copied.Sync(p.processes.options.Limit); err != nil {
			return err
		}
		if err := p.processes.data.Isend(&s.request, s.bytes[:piece.Length], p.other, p.tag); err != nil {
			return err
		}
	}
	for _, s := range p.slots {
		if err := p.done(s); err != nil {
			return err
		}
	}
	return nil
}

// inPieces receive.
type inPieces struct{ *pieces }

// carry receives all pieces: while one is copied, MPI brings the next.
func (p inPieces) carry() error {
	n := p.count()
	for k := range min(2, n) {
		if err := p.post(k); err != nil {
			return err
		}
	}
	if err := p.stream.Wait(p.ready); err != nil {
		return err
	}
	for k := range n {
		s, piece := p.slots[k%2], p.piece(k)
		if err := p.done(s); err != nil {
			return err
		}
		if err := p.copy(s, piece, s.memory.Span(0, piece.Length)); err != nil {
			return err
		}
		if k+2 < n {
			if err := s.copied.Sync(p.processes.options.Limit); err != nil {
				return err
			}
			if err := p.post(k + 2); err != nil {
				return err
			}
		}
	}
	if err := p.over(); err != nil {
		return err
	}
	return p.event.Sync(p.processes.options.Limit) // the buffers can be written again
}

// post has MPI receive a piece.
func (p inPieces) post(k int) error {
	s, piece := p.slots[k%2], p.piece(k)
	return p.processes.data.Irecv(&s.request, s.bytes[:piece.Length], p.other, p.tag)
}
