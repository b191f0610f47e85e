package halo

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
)

// Message is what one subdomain sends another in one exchange.
type Message struct {
	From, To   int              // ranks
	Dir        domain.Direction // from the sender's side
	Send       domain.Box       // owned by the sender
	Ghost      domain.Box       // of the receiver
	Bytes      int64
	Contiguous bool     // travels as it lies, unpacked
	Path       p2p.Path // between the two devices
	Why        string   // why that path
}

// Plan lists the messages of a face exchange.
type Plan struct {
	Placement   *Placement
	Width       domain.Radius
	ElementSize int // bytes
	Messages    []Message
}

// NewPlan plans an exchange of ghosts of the given width, for fields with
// elements of elementSize bytes. Every message takes the path that is wanted,
// or with Auto the best that its link can do. It is an error to want a path
// that a link cannot give, and to need more layers than a neighbour owns.
func NewPlan(p *Placement, width domain.Radius, elementSize int, links *p2p.Links, want p2p.Path) (*Plan, error) {
	if err := p.CheckWidth(width); err != nil {
		return nil, err
	}
	plan := &Plan{Placement: p, Width: width, ElementSize: elementSize}
	for _, s := range p.Subdomains {
		for _, dir := range domain.Faces(p.Grid.Dims) {
			to, ok := p.Neighbour(s.Rank, dir)
			send := domain.SendBox(s.Box, dir, width)
			if !ok || send.Empty() {
				continue
			}
			m := Message{
				From: s.Rank, To: to, Dir: dir, Send: send,
				Ghost: domain.GhostBox(p.Subdomains[to].Box, dir.Opposite(), width),
				Bytes: send.Points() * int64(elementSize),
			}
			var err error
			if m.Path, m.Why, err = links.Choose(want, p.Devices[s.Rank], p.Devices[to]); err != nil {
				return nil, err
			}
			if m.Contiguous, err = plan.contiguous(m); err != nil {
				return nil, err
			}
			plan.Messages = append(plan.Messages, m)
		}
	}
	return plan, nil
}

// contiguous reports whether the message can travel as it lies at both ends.
func (p *Plan) contiguous(m Message) (bool, error) {
	idle := p.idleAxes()
	var length [2]int64
	for i, end := range []struct {
		rank int
		box  domain.Box
	}{{m.From, m.Send}, {m.To, m.Ghost}} {
		l, err := domain.NewLayout(p.Placement.Subdomains[end.rank].Box, p.Width, p.ElementSize)
		if err != nil {
			return false, err
		}
		if !l.Contiguous(end.box, idle) {
			return false, nil
		}
		_, length[i] = l.Range(end.box)
	}
	if length[0] != length[1] {
		return false, fmt.Errorf("halo: message %v to %v: %d elements leave and %d arrive", m.Send, m.Ghost, length[0], length[1])
	}
	return true, nil
}

// idleAxes returns the axes along which nothing is exchanged.
func (p *Plan) idleAxes() (idle [3]bool) {
	for a := range idle {
		idle[a] = p.Placement.Parts[a] == 1 && !p.Placement.Grid.Periodic[a]
	}
	return idle
}

// Bytes returns what one exchange sends from one device to another. What a
// subdomain sends itself around a periodic axis does not count.
func (p *Plan) Bytes() int64 {
	sum := int64(0)
	for _, m := range p.Messages {
		if p.Placement.Devices[m.From] != p.Placement.Devices[m.To] {
			sum += m.Bytes
		}
	}
	return sum
}

// Path returns the path that all messages between different devices take, ""
// if there are none, and "mixed" where they differ.
func (p *Plan) Path() string {
	path := ""
	for _, m := range p.Messages {
		switch {
		case p.Placement.Devices[m.From] == p.Placement.Devices[m.To]:
		case path == "":
			path = string(m.Path)
		case path != string(m.Path):
			return "mixed"
		}
	}
	return path
}
