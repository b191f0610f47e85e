package halo

import (
	"fmt"

	"github.com/halox/halox/domain"
)

// Memory is what fields and an exchange of them take, in bytes.
type Memory struct {
	Fields  int64 // on the device: owned points, ghosts and padding
	Buffers int64 // on the device: packed messages, where they leave and where they arrive
	Pinned  int64 // on the host: staged messages, with the gaps between the rows of those that travel as they lie
}

// add returns the sum of the two.
func (m Memory) add(n Memory) Memory {
	return Memory{m.Fields + n.Fields, m.Buffers + n.Buffers, m.Pinned + n.Pinned}
}

// Memory returns what one field of each Spec, as NewField makes it, and one
// Exchanger take for the subdomain of the given rank. Nothing is allocated to find
// out. On a GPU an exchanger takes some hundred bytes a message beside it.
func (p *Plan) Memory(rank int) (Memory, error) {
	var sum Memory
	if p == nil {
		return sum, errNoPlan
	}
	if rank < 0 || rank >= len(p.Placement.Subdomains) {
		return sum, fmt.Errorf("halo: the memory of subdomain %d of %d", rank, len(p.Placement.Subdomains))
	}
	for i, s := range p.Specs {
		count, bytes := s.Arrays()
		l, err := domain.NewLayout(p.cuts[i].Subdomains[rank].Box, s.Width, bytes)
		if err != nil {
			return sum, err
		}
		sum.Fields += int64(count) * l.Bytes()
	}
	for _, m := range p.Messages {
		buffers, err := p.buffers(m, rank)
		if err != nil {
			return sum, err
		}
		sum = sum.add(buffers)
	}
	return sum, nil
}

// buffers returns what a message takes of the memory of a rank. Its host memory
// belongs to the sender.
func (p *Plan) buffers(m Message, rank int) (sum Memory, err error) {
	if m.To == rank && p.isBuffered(m) {
		sum.Buffers += m.Bytes
	}
	if m.From == rank && !m.isStored() && !m.Contiguous {
		sum.Buffers += m.Bytes
	}
	if hosts := m.Path.Traits().Pinned; m.From == rank && hosts > 0 {
		sum.Pinned, err = p.travelling(m)
		sum.Pinned *= int64(hosts)
	}
	return sum, err
}

// travelling returns the bytes of a message on its way: as it lies, it takes along
// what lies between its rows.
func (p *Plan) travelling(m Message) (int64, error) {
	if !m.Contiguous {
		return m.Bytes, nil
	}
	part := m.Parts[0]
	_, bytes := p.Specs[part.Field].Arrays()
	l, err := domain.NewLayout(p.cuts[part.Field].Subdomains[m.From].Box, p.Specs[part.Field].Width, bytes)
	_, length := l.Range(part.Send)
	return length * int64(bytes), err
}
