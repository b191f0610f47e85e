package mpi

import "time"

// inPieces receive. Buffers that are free are always MPI's to receive into, so that pieces come before the turn that takes them is asked for.
type inPieces struct {
	*pieces
	posted int // pieces that MPI has got buffers for
}

// carry receives all pieces of a turn: while one is copied, MPI brings the next.
func (p *inPieces) carry() error {
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
func (p *inPieces) post(i int) error {
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

// quiet implements carrier. What MPI was to receive for turns that nobody asked for is given up.
func (p *inPieces) quiet() bool {
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
