package halo

import (
	"cmp"
	"slices"

	"github.com/halox/halox/domain"
)

// minAsItLies is how many bytes a message that can travel as it lies has at least to do so beside
// one that is packed, see Plan.
const minAsItLies = 64 << 10

// oneOf returns one message of several from one subdomain to another, with the parts field by field.
func oneOf(all []Message) Message {
	m := all[0]
	if len(all) == 1 {
		return m
	}
	m.Parts, m.Bytes, m.Contiguous = nil, 0, false
	var directions []domain.Direction
	var parts []Part
	for _, one := range all {
		parts = append(parts, one.Parts...)
	}
	slices.SortStableFunc(parts, func(p, q Part) int { return cmp.Compare(p.Field, q.Field) })
	for _, p := range parts {
		directions = append(directions, p.Dir)
		m.add(p)
	}
	m.Dir = domain.Leading(m.From, m.To, directions)
	return m
}

// joinPacked joins the messages of a subdomain, one a direction, to one for each neighbour, but
// for those that are better sent as they lie.
func joinPacked(all []Message) []Message {
	isLong := func(m Message) bool { return m.Contiguous && m.Bytes >= minAsItLies }
	worth := map[int]bool{}
	short := map[int]int{} // to a neighbour, that could travel as they lie
	for _, m := range all {
		if m.Contiguous && !isLong(m) {
			short[m.To]++
		}
		worth[m.To] = worth[m.To] || !m.Contiguous || short[m.To] > copiesOfPacked
	}
	return joinWhere(all, func(m Message) bool { return !isLong(m) && worth[m.To] })
}

// copiesOfPacked is how many copies a message may have in place of being packed, sent and
// unpacked.
const copiesOfPacked = 2

// joinDirect joins the messages of each pair that are stored into ghosts.
func (p *Plan) joinDirect() {
	p.Messages = joinWhere(p.Messages, Message.isStored)
}

// joinWhere joins the messages from one subdomain to another of which join is true. What is
// joined takes the place of the first.
func joinWhere(all []Message, join func(Message) bool) (left []Message) {
	groups := map[[2]int][]Message{}
	for _, m := range all {
		if join(m) {
			groups[[2]int{m.From, m.To}] = append(groups[[2]int{m.From, m.To}], m)
		}
	}
	for _, m := range all {
		if !join(m) {
			left = append(left, m)
			continue
		}
		if group := groups[[2]int{m.From, m.To}]; len(group) > 0 {
			left = append(left, oneOf(group))
			groups[[2]int{m.From, m.To}] = nil
		}
	}
	return left
}
