package mpi

import (
	"fmt"
	"time"
)

// outPieces send.
type outPieces struct {
	*pieces
	began time.Time // when MPI got the first piece of the turn
}

// carry sends all pieces: while MPI has some, the next is copied. It ends when MPI is done with them, or before where the next turn is asked
// for: the waits of that one go on with what is left.
func (p *outPieces) carry() error {
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
func (p *outPieces) fetch(i, end int) error {
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

// send gives a piece to MPI, once it is copied. It waits for MPI first: to ask the driver for the copy takes time from MPI.
func (p *outPieces) send(i int) error {
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
func (p *outPieces) settle() error {
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
