package mpi

import (
	"fmt"
	"math"

	binding "github.com/halox/halox/internal/mpi"
	"github.com/halox/halox/streams"
)

// pieces carry messages through a ring of buffers of pinned memory, so that a piece is copied while MPI has the one before. Pieces are
// numbered from the first message on, through all turns: the buffers of one turn are filled while MPI still has the last pieces of the turn
// before. Every wait also looks at MPI, which may carry what it has within calls alone.
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

// pieceSize returns the bytes of a piece, at most so many; the last of a message may be shorter. Nothing hides the copy of the first piece at the sender
// and that of the last at the receiver, so pieces are to be short. Each piece costs handshakes and calls of the driver, so there are to be few. The sum
// of both is least for pieces as long as the root of the message times fairPiece.
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
