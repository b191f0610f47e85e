package halo

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
)

// Memory is what fields and an exchange of them take, in bytes.
type Memory struct {
	Fields  int64 // on the device: owned points, ghosts and padding
	Buffers int64 // on the device: packed messages, where they leave and where they arrive
	Pinned  int64 // on the host: messages on their way through it
}

// Add returns the sum of the two.
func (m Memory) Add(n Memory) Memory {
	return Memory{m.Fields + n.Fields, m.Buffers + n.Buffers, m.Pinned + n.Pinned}
}

// Memory returns what one field of each Spec, and one Exchanger, take for the
// subdomain of the given rank. Nothing is allocated to find out.
func (p *Plan) Memory(rank int) (Memory, error) {
	var sum Memory
	for i, s := range p.Specs {
		count, bytes := s.arrays()
		l, err := domain.NewLayout(p.cuts[i].Subdomains[rank].Box, s.Width, bytes)
		if err != nil {
			return sum, err
		}
		sum.Fields += int64(count) * l.Bytes()
	}
	for _, m := range p.Messages {
		sum = sum.Add(p.buffers(m, rank))
	}
	return sum, nil
}

// buffers returns what a message takes of the memory of a rank. Its host memory
// belongs to the sender.
func (p *Plan) buffers(m Message, rank int) (sum Memory) {
	if m.Path == p2p.Direct {
		return sum
	}
	for _, end := range []int{m.From, m.To} {
		if end == rank && !m.Contiguous {
			sum.Buffers += m.Bytes
		}
	}
	if m.From == rank && m.Path == p2p.Staged {
		sum.Pinned += m.Bytes
	}
	return sum
}
