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

// MapDevices decides which subdomain goes to which device. It minimizes the communication of the busiest
// device, and then the total cost of all messages. cost is the cost of a message from one device to another,
// or to itself, in any unit; +Inf means that there is no path. A negative or NaN cost is an error, and so is
// a panic. cost is called once per pair of devices and message size. MapDevices takes the better of a greedy
// order and, for up to 8 subdomains, the best of all orders; if that saves less than 5 %, the devices keep
// the given order. There must be as many devices as subdomains; a device may occur more than once.
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
		return nil, Explanation{}, errors.New("halo: MapDevices: the cost function is nil")
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

// explain runs the search.
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

// search has the messages of a plan whose ranks have no devices yet.
type search struct {
	devices  []int // by position in the given order: index of the distinct device
	distinct []*streams.Device
	flows    [][]flow // by the higher of the two ranks
	ask      func(from, to *streams.Device, bytes int64) float64
	sizes    []int64     // distinct message sizes
	costs    [][]float64 // by size, then by the two distinct devices; NaN if not yet requested
	err      error       // the first invalid cost
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

// cost returns the cost of a message between two distinct devices.
func (s *search) cost(f flow, from, to int) float64 {
	known := &s.costs[f.size][from*len(s.distinct)+to]
	if math.IsNaN(*known) {
		a, b, bytes := s.distinct[from], s.distinct[to], s.sizes[f.size]
		c, err := s.asked(a, b, bytes)
		if err == nil && !(c >= 0) {
			err = fmt.Errorf("halo: cost of %d bytes from device %v to %v must be at least 0, got %v", bytes, a, b, c)
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

// load is the cost for every device of the messages between the ranks placed so far.
type load struct {
	sent, got []float64 // by distinct device
	total     float64
}

func (s *search) newLoad() load {
	return load{sent: make([]float64, len(s.distinct)), got: make([]float64, len(s.distinct))}
}

func (l load) clone() load { return load{slices.Clone(l.sent), slices.Clone(l.got), l.total} }

func (l load) cost() Cost { return Cost{max(slices.Max(l.sent), slices.Max(l.got)), l.total} }

// add adds the messages of a flow; order gives the position of each rank.
func (s *search) add(l *load, order []int, flows []flow) {
	for _, f := range flows {
		from, to := s.devices[order[f.from]], s.devices[order[f.to]]
		c := s.cost(f, from, to)
		l.sent[from] += c
		l.got[to] += c
		l.total += c
	}
}

// of returns the cost of a complete order.
func (s *search) of(order []int) Cost {
	l := s.newLoad()
	for _, flows := range s.flows {
		s.add(&l, order, flows)
	}
	return l.cost()
}

// greedy gives each rank, one by one, the position that is cheapest with the ranks before it; the first one
// on ties.
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

// exact returns the best of all orders, or the given one if none is better (branch and bound): it abandons a
// branch if the cost so far, plus a lower bound for the rest, is not below the best known order.
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

// least returns lower bounds, as if each message took its cheapest possible link: by rank, the total of the
// messages added by it and the ranks after it, and the traffic of the busiest rank.
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

// cheapest returns the lowest cost of a message between any devices that its two ranks may get.
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
