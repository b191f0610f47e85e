package halo

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
)

// Message is what one subdomain sends a neighbour in one exchange: points of
// every field, in one piece, for all directions in which it is the neighbour. Faces that
// travel as they lie are messages of their own, see Plan.
type Message struct {
	From, To   int              // ranks
	Dir        domain.Direction // from the sender's side; of several directions one, see domain.Leading
	Parts      []Part
	Bytes      int64    // with what aligns the parts
	Contiguous bool     // a single part, which travels as it lies, not packed
	Path       p2p.Path // between the two devices
	Why        string   // why that path
}

// isStored reports whether the sender stores the message straight into the ghosts.
func (m Message) isStored() bool { return m.Path.Traits().Stored }

// Part is what a message carries of one array in one direction.
type Part struct {
	Dir              domain.Direction // from the sender's side
	Field, Component int
	Send             domain.Box // owned by the sender
	Ghost            domain.Box // of the receiver, of the same size
	Offset, Bytes    int64      // in the message
}

// Plan lists the messages of an exchange of some fields: one from a subdomain to each neighbour,
// be it that in several directions, as around a ring of two, or its own.
//
// But what can travel as it lies, in one piece at both ends, is a message of its own if it has
// 64 KiB or more: joined, its bytes would be read and written once more at either end, and the
// launch of a copy that is spared takes no longer than to move about that many. Shorter ones are
// if they are the only ones of a pair, one or two: a joined message is packed, copied and unpacked.
// Over path direct, where nothing is packed, all of a pair is one message.
type Plan struct {
	Placement *Placement
	Specs     []Spec
	Messages  []Message
	cuts      []*domain.Decomposition // by field: of its own points
}

// Bytes returns what one exchange sends of points from device to device. What stays on a
// device does not count, nor what aligns parts in a message.
func (p *Plan) Bytes() int64 {
	sum := int64(0)
	for _, m := range p.Messages {
		if p.Placement.onOneDevice(m.From, m.To) {
			continue
		}
		for _, part := range m.Parts {
			sum += part.Bytes
		}
	}
	return sum
}

// partAlignment is what parts are aligned to within a message.
const partAlignment = 16

// add adds a part behind those that the message has.
func (m *Message) add(p Part) {
	p.Offset = (m.Bytes + partAlignment - 1) / partAlignment * partAlignment
	m.Parts = append(m.Parts, p)
	m.Bytes = p.Offset + p.Bytes
}

// hasGaps reports whether a field of the plan has values with gaps.
func (p *Plan) hasGaps() bool {
	for _, s := range p.Specs {
		if s.hasGaps() {
			return true
		}
	}
	return false
}
