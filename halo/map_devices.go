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

// maxSearched is the largest number of subdomains whose orders are all searched.
const maxSearched = 8

// margin is what share of the cost another order must save to be taken in place of
// the given one: links that are alike never measure quite alike.
const margin = 0.05

// same is the relative difference of two costs that are taken for equal: they are
// sums in any order.
const same = 1e-9

// Cost is what an exchange costs under an order of the devices, in the unit of the
// cost function. A device sends its messages one after the other, and gets its
// messages one after the other at the same time.
type Cost struct {
	Busiest float64 // what the busiest device sends, or gets, whichever is more
	Total   float64 // of all messages
}

// less compares the busiest devices, and among equals the totals.
func (c Cost) less(d Cost) bool {
	if c.Busiest < d.Busiest*(1-same) {
		return true
	}
	return c.Busiest <= d.Busiest*(1+same) && c.Total < d.Total*(1-same)
}

// worthwhile reports whether c saves enough of d.
func (c Cost) worthwhile(d Cost) bool {
	const most = 1 - margin
	return c.Busiest < most*d.Busiest || c.Busiest <= d.Busiest*(1+same) && c.Total < most*d.Total
}

// Explanation says how MapDevices came to its order.
type Explanation struct {
	Given    Cost  // of subdomain i on device i
	Greedy   Cost  // of the greedy order
	Exact    Cost  // of the best order of all; as Greedy where they are too many
	Searched bool  // all orders were searched
	Kept     bool  // the given order stays
	Order    []int // by rank, an index into the devices given
}

// String gives the costs and the order in one line.
func (e Explanation) String() string {
	exact := fmt.Sprintf("not searched beyond %d subdomains", maxSearched)
	if e.Searched {
		exact = fmt.Sprintf("%.4g", e.Exact.Busiest)
	}
	taken := fmt.Sprintf("subdomains lie on devices %v of those given", e.Order)
	if e.Kept {
		taken = "the devices stay in the order given"
	}
	return fmt.Sprintf("cost of the busiest device: as given %.4g, greedy %.4g, exact %s: %s", e.Given.Busiest, e.Greedy.Busiest, exact, taken)
}

// MapDevices decides which subdomain goes to which device, so that the busiest device
// has least to exchange of the fields, and then that all messages together cost
// least. cost is what a message costs from one device to another, or to itself, in
// any unit: not negative and not NaN, which is an error, but +Inf where there is no
// way. It is asked once for each pair of devices and size. MapDevices takes the better
// of a greedy order and, of up to 8 subdomains, the best of all; where that saves no
// 5 % the devices stay in the order given. There must be as many devices as
// subdomains; one may come more than once.
func MapDevices(d *domain.Decomposition, devices []*streams.Device, cost func(from, to *streams.Device, bytes int64) float64, specs ...Spec) (*Placement, Explanation, error) {
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
	place := &Placement{Decomposition: d}
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
		*known = s.ask(a, b, bytes)
		if c := *known; !(c >= 0) {
			*known = 0
			s.err = cmp.Or(s.err, fmt.Errorf("halo: the cost of %d bytes from device %v to %v is %v: it must be a number, not negative", bytes, a, b, c))
		}
	}
	return *known
}
