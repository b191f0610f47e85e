package halo

import "slices"

// load is what the messages among the ranks placed so far cost every device.
type load struct {
	sent, got []float64 // by distinct device
	total     float64
}

func (s *search) newLoad() load {
	return load{sent: make([]float64, s.distinct), got: make([]float64, s.distinct)}
}

func (l load) clone() load { return load{slices.Clone(l.sent), slices.Clone(l.got), l.total} }

func (l load) cost() Cost { return Cost{max(slices.Max(l.sent), slices.Max(l.got)), l.total} }

// add adds the messages of a flow; order gives ranks their place.
func (s *search) add(l *load, order []int, flows []flow) {
	for _, f := range flows {
		from, to := s.devices[order[f.from]], s.devices[order[f.to]]
		c := s.cost(from, to, f.bytes)
		l.sent[from] += c
		l.got[to] += c
		l.total += c
	}
}

// of returns the cost of a whole order.
func (s *search) of(order []int) Cost {
	l := s.newLoad()
	for _, flows := range s.flows {
		s.add(&l, order, flows)
	}
	return l.cost()
}

// greedy gives each rank in turn the place that is cheapest with the ranks before
// it; among equals the first.
func (s *search) greedy() []int {
	var order []int
	l := s.newLoad()
	for rank := range s.devices {
		var best load
		place := -1
		for p := range s.devices {
			if slices.Contains(order, p) {
				continue
			}
			next := l.clone()
			s.add(&next, append(order, p), s.flows[rank])
			if place < 0 || next.cost().less(best.cost()) {
				best, place = next, p
			}
		}
		order, l = append(order, place), best
	}
	return order
}

// exact returns the best of all orders, or the one to beat if none is better. It
// leaves a branch when what is placed costs as much as the best order known: costs
// only grow.
func (s *search) exact(beat []int) []int {
	best, bestCost := beat, s.of(beat)
	var branch func(order []int, l load)
	branch = func(order []int, l load) {
		if !l.cost().less(bestCost) {
			return
		}
		rank := len(order)
		if rank == len(s.devices) {
			best, bestCost = slices.Clone(order), l.cost()
			return
		}
		for p := range s.devices {
			if slices.Contains(order, p) {
				continue
			}
			next := l.clone()
			longer := append(slices.Clone(order), p)
			s.add(&next, longer, s.flows[rank])
			branch(longer, next)
		}
	}
	branch(nil, s.newLoad())
	return best
}
