package halo

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/p2p"
)

// NewPlan plans the exchange of the ghosts of all fields of a placement together.
// Every message takes the path that is wanted. With Auto that is the Path of the placement, or where
// it has none the fastest that its link has for a message of its size, or Direct for all where one
// kernel a GPU does the whole exchange in less time. It is an error to want a path that a link cannot give,
// and to need more layers than a neighbour owns.
func NewPlan(p *Placement, links *p2p.Links, want p2p.Path, specs ...Spec) (*Plan, error) {
	plan, err := planMessages(p, specs)
	if err != nil {
		return nil, err
	}
	if links == nil {
		return nil, fmt.Errorf("halo: a plan without links: see p2p.Discover")
	}
	if err := plan.choosePaths(links, p.wanted(want)); err != nil {
		return nil, err
	}
	plan.joinDirect()
	return plan, nil
}

// planMessages plans messages that have no paths yet. It looks at no device.
func planMessages(p *Placement, specs []Spec) (*Plan, error) {
	if err := p.usable(); err != nil {
		return nil, err
	}
	plan := &Plan{Placement: p}
	if len(specs) == 0 {
		return nil, fmt.Errorf("halo: a plan for no field")
	}
	for _, s := range specs {
		s = s.filled()
		if err := s.check(p.Decomposition); err != nil {
			return nil, err
		}
		plan.Specs = append(plan.Specs, s)
		plan.cuts = append(plan.cuts, p.Staggered(s.Stagger))
	}
	if err := plan.checkSize(); err != nil {
		return nil, err
	}
	for _, s := range p.Subdomains {
		if err := plan.addFrom(s.Rank); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// maxPlanBytes is how many bytes the fields of a plan have together: each point goes in 26 directions at most, so
// that sums over messages stay within 64 bits.
const maxPlanBytes = 1 << 58

// checkSize returns an error if the fields have more.
func (p *Plan) checkSize() error {
	sum := 0.0
	for i, s := range p.Specs {
		count, bytes := s.Arrays()
		for _, sub := range p.cuts[i].Subdomains {
			l, err := domain.NewLayout(sub.Box, s.Width, bytes)
			if err != nil {
				return err
			}
			sum += float64(count) * float64(l.Bytes())
		}
	}
	if sum > maxPlanBytes {
		return fmt.Errorf("halo: a plan for fields of %g bytes; up to 2^58 are possible", sum)
	}
	return nil
}

// addFrom adds the messages of a subdomain.
func (p *Plan) addFrom(rank int) error {
	var all []Message // one a direction
	for _, dir := range domain.Directions(p.Placement.Grid.Dims) {
		to, ok := p.Placement.Neighbour(rank, dir)
		if !ok {
			continue
		}
		m := p.message(rank, to, dir)
		if len(m.Parts) == 0 {
			continue // nobody needs it
		}
		var err error
		if m.Contiguous, err = p.contiguous(m); err != nil {
			return err
		}
		all = append(all, m)
	}
	p.Messages = append(p.Messages, joinPacked(all)...)
	return nil
}

// message returns what goes from one subdomain to its neighbour in a direction;
// it has no parts if no field needs any.
func (p *Plan) message(from, to int, dir domain.Direction) Message {
	m := Message{From: from, To: to, Dir: dir}
	for i, s := range p.Specs {
		if !reaches(s, dir) {
			continue
		}
		cut := p.cuts[i]
		count, _ := s.Arrays()
		for c := range count {
			send := domain.SendBox(cut.Subdomains[from].Box, dir, s.WidthOf(c))
			if send.Empty() {
				continue
			}
			ghost := domain.GhostBox(cut.Subdomains[to].Box, dir.Opposite(), s.WidthOf(c))
			m.add(Part{Dir: dir, Field: i, Component: c, Send: send, Ghost: ghost, Bytes: send.Points() * s.moved()})
		}
	}
	return m
}

// reaches reports whether the field has neighbours in that direction.
func reaches(s Spec, dir domain.Direction) bool {
	return dir[0]*dir[0]+dir[1]*dir[1]+dir[2]*dir[2] <= int(s.Connectivity)+1
}

// contiguous reports whether the message can travel as it lies at both ends.
func (p *Plan) contiguous(m Message) (bool, error) {
	if len(m.Parts) != 1 {
		return false, nil
	}
	part := m.Parts[0]
	s := p.Specs[part.Field]
	if s.hasGaps() {
		return false, nil
	}
	cut := p.cuts[part.Field]
	_, bytes := s.Arrays()
	idle := p.idleAxes()
	var length [2]int64
	for i, end := range []struct {
		rank int
		box  domain.Box
	}{{m.From, part.Send}, {m.To, part.Ghost}} {
		l, err := domain.NewLayout(cut.Subdomains[end.rank].Box, s.Width, bytes)
		if err != nil {
			return false, err
		}
		if !l.Contiguous(end.box, idle) {
			return false, nil
		}
		_, length[i] = l.Range(end.box)
	}
	return length[0] == length[1], nil
}

// idleAxes returns the axes along which nothing is exchanged.
func (p *Plan) idleAxes() (idle [3]bool) {
	for a := range idle {
		idle[a] = p.Placement.Parts[a] == 1 && !p.Placement.Grid.Periodic[a]
	}
	return idle
}
