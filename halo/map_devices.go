package halo

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// MapDevices decides which subdomain goes to which device, so that the busiest device
// has least to exchange of the fields, and then that all messages together cost
// least. cost is what a message costs from one device to another, or to itself, in
// any unit: not negative and not NaN, which is an error as a panic is, but +Inf where there is no
// way. It is asked once for each pair of devices and size. MapDevices takes the better
// of a greedy order and, of up to 8 subdomains, the best of all; where that saves no
// 5 % the devices stay in the order given. There must be as many devices as
// subdomains; one may come more than once.
func MapDevices(d *domain.Decomposition, devices []*streams.Device, cost func(from, to *streams.Device,
	bytes int64) float64, specs ...Spec) (*Placement, Explanation, error) {
	given, err := Place(d, devices)
	if err != nil {
		return nil, Explanation{}, err
	}
	plan, err := planMessages(given, specs)
	if err != nil {
		return nil, Explanation{}, err
	}
	if cost == nil {
		return nil, Explanation{}, errors.New("halo: a mapping of devices without a cost")
	}
	s := newSearch(plan, devices, cost)
	e := s.explain()
	if s.err != nil {
		return nil, Explanation{}, s.err
	}
	place := placeAlone(d, nil)
	for _, i := range e.Order {
		place.Devices = append(place.Devices, devices[i])
	}
	return place, e, nil
}

// explain searches.
func (s *search) explain() Explanation {
	given := make([]int, len(s.devices))
	for i := range given {
		given[i] = i
	}
	e := Explanation{Given: s.of(given), Searched: len(given) <= maxSearched}
	best := s.greedy()
	e.Greedy = s.of(best)
	if e.Searched {
		best = s.exact(best)
	}
	e.Exact = s.of(best)
	e.Kept = !e.Exact.worthwhile(e.Given)
	e.Order = best
	if e.Kept {
		e.Order = given
	}
	return e
}

// search is the messages of a plan whose ranks have no devices yet.
type search struct {
	devices  []int // by place in the order given: which of the distinct devices
	distinct []*streams.Device
	flows    [][]flow // by the higher of the two ranks
	ask      func(from, to *streams.Device, bytes int64) float64
	sizes    []int64     // of messages, each once
	costs    [][]float64 // by size, then by the two distinct devices; NaN where not asked for
	err      error       // the first cost that is none
}

// flow is a message between two ranks.
type flow struct {
	from, to int
	size     int // an index into the sizes
}

func newSearch(p *Plan, devices []*streams.Device, cost func(from, to *streams.Device, bytes int64) float64) *search {
	s := &search{flows: make([][]flow, len(devices)), ask: cost}
	for _, d := range devices {
		if !slices.Contains(s.distinct, d) {
			s.distinct = append(s.distinct, d)
		}
		s.devices = append(s.devices, slices.Index(s.distinct, d))
	}
	for _, m := range p.Messages {
		size := slices.Index(s.sizes, m.Bytes)
		if size < 0 {
			size = len(s.sizes)
			s.sizes = append(s.sizes, m.Bytes)
			s.costs = append(s.costs, slices.Repeat([]float64{math.NaN()}, len(s.distinct)*len(s.distinct)))
		}
		late := max(m.From, m.To)
		s.flows[late] = append(s.flows[late], flow{m.From, m.To, size})
	}
	return s
}

// cost returns what a message costs between two distinct devices.
func (s *search) cost(f flow, from, to int) float64 {
	known := &s.costs[f.size][from*len(s.distinct)+to]
	if math.IsNaN(*known) {
		a, b, bytes := s.distinct[from], s.distinct[to], s.sizes[f.size]
		c, err := s.asked(a, b, bytes)
		if err == nil && !(c >= 0) {
			err = fmt.Errorf("halo: the cost of %d bytes from device %v to %v is %v: it must be a number, not negative",
				bytes, a, b, c)
		}
		if err != nil {
			s.err, c = cmp.Or(s.err, err), 0
		}
		*known = c
	}
	return *known
}

// asked calls the cost function.
func (s *search) asked(from, to *streams.Device, bytes int64) (cost float64, err error) {
	defer streams.Caught(&err, "halo: the cost function of MapDevices for", fmt.Sprintf("%v to %v", from, to))
	return s.ask(from, to, bytes), nil
}

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
