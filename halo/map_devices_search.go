package halo

import (
	"math"
	"slices"
)

// load is what the messages among the ranks placed so far cost every device.
type load struct {
	sent, got []float64 // by distinct device
	total     float64
}

func (s *search) newLoad() load {
	return load{sent: make([]float64, len(s.distinct)), got: make([]float64, len(s.distinct))}
}

func (l load) clone() load { return load{slices.Clone(l.sent), slices.Clone(l.got), l.total} }

func (l load) cost() Cost { return Cost{max(slices.Max(l.sent), slices.Max(l.got)), l.total} }

// add adds the messages of a flow; order gives ranks their place.
func (s *search) add(l *load, order []int, flows []flow) {
	for _, f := range flows {
		from, to := s.devices[order[f.from]], s.devices[order[f.to]]
		c := s.cost(f, from, to)
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
// leaves a branch when what is placed, and the least that the rest can cost, is no
// less than the best order known.
func (s *search) exact(beat []int) []int {
	best, bestCost := beat, s.of(beat)
	least := s.least()
	var branch func(order []int, l load)
	branch = func(order []int, l load) {
		rank := len(order)
		c := l.cost()
		if c = (Cost{max(c.Busiest, least[0].Busiest), c.Total + least[rank].Total}); !c.less(bestCost) {
			return
		}
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

// least returns what no order can go below, were each message to take the cheapest
// link that it might: by rank, the total of the messages that come with it and the
// ranks after it, and what the busiest of all ranks sends or gets.
func (s *search) least() []Cost {
	n := len(s.devices)
	sent, got, least := make([]float64, n), make([]float64, n), make([]Cost, n+1)
	for rank := n - 1; rank >= 0; rank-- {
		least[rank].Total = least[rank+1].Total
		for _, f := range s.flows[rank] {
			c := s.cheapest(f)
			sent[f.from] += c
			got[f.to] += c
			least[rank].Total += c
		}
	}
	for rank := range least {
		least[rank].Busiest = max(slices.Max(sent), slices.Max(got))
	}
	return least
}

// cheapest returns the least that a message costs between any devices that its two
// ranks may get.
func (s *search) cheapest(f flow) float64 {
	least := math.Inf(1)
	apart := len(s.distinct) == len(s.devices) // no two ranks share a device
	for from := range s.distinct {
		for to := range s.distinct {
			if f.from == f.to && from != to || f.from != f.to && from == to && apart {
				continue
			}
			least = min(least, s.cost(f, from, to))
		}
	}
	return least
}
