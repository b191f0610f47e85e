package halo

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// mostSearched is the largest number of subdomains whose orders are all searched.
const mostSearched = 8

// margin is what share of the cost another order must save to be taken in place of
// the given one: links that are alike never measure quite alike.
const margin = 0.05

// Cost is what an exchange costs under an order of the devices, in the unit of the
// cost function. A device sends its messages one after the other, and gets its
// messages one after the other at the same time.
type Cost struct {
	Busiest float64 // what the busiest device sends, or gets, whichever is more
	Total   float64 // of all messages
}

// less compares the busiest devices, and among equals the totals.
func (c Cost) less(d Cost) bool {
	const same = 1e-9 // costs are sums in any order
	if c.Busiest < d.Busiest*(1-same) {
		return true
	}
	return c.Busiest <= d.Busiest*(1+same) && c.Total < d.Total*(1-same)
}

// worthwhile reports whether c saves enough of d.
func (c Cost) worthwhile(d Cost) bool {
	const most = 1 - margin
	return c.Busiest < most*d.Busiest || c.Busiest <= d.Busiest && c.Total < most*d.Total
}

// Explanation says how Arrange came to its order.
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
	exact := fmt.Sprintf("not searched beyond %d subdomains", mostSearched)
	if e.Searched {
		exact = fmt.Sprintf("%.4g", e.Exact.Busiest)
	}
	taken := fmt.Sprintf("subdomains lie on devices %v of those given", e.Order)
	if e.Kept {
		taken = "the devices stay in the order given"
	}
	return fmt.Sprintf("cost of the busiest device: as given %.4g, greedy %.4g, exact %s: %s", e.Given.Busiest, e.Greedy.Busiest, exact, taken)
}

// Arrange decides which subdomain goes to which device, so that the busiest device
// has least to exchange of the fields, and then that all messages together cost
// least. cost is what a message costs from one device to another, or to itself, in
// any unit. It takes the better of a greedy order and, of up to 8 subdomains, the
// best of all; where that saves no 5 % the devices stay in the order given. There
// must be as many devices as subdomains; one may come more than once.
func Arrange(d *domain.Decomposition, devices []*streams.Device, cost func(from, to *streams.Device, bytes int64) float64, specs ...Spec) (*Placement, Explanation, error) {
	given, err := Place(d, devices)
	if err != nil {
		return nil, Explanation{}, err
	}
	plan, err := planMessages(given, specs)
	if err != nil {
		return nil, Explanation{}, err
	}
	s := newSearch(plan, devices, cost)
	e := s.explain()
	place := &Placement{Decomposition: d}
	for _, i := range e.Order {
		place.Devices = append(place.Devices, devices[i])
	}
	return place, e, nil
}

// explain searches.
func (s *search) explain() Explanation {
	same := make([]int, len(s.devices))
	for i := range same {
		same[i] = i
	}
	e := Explanation{Given: s.of(same), Searched: len(same) <= mostSearched}
	best := s.greedy()
	e.Greedy = s.of(best)
	if e.Searched {
		best = s.exact(best)
	}
	e.Exact = s.of(best)
	e.Kept = !e.Exact.worthwhile(e.Given)
	e.Order = best
	if e.Kept {
		e.Order = same
	}
	return e
}

// search is the messages of a plan whose ranks have no devices yet.
type search struct {
	devices  []int // by place in the order given: which of the distinct devices
	distinct int
	flows    [][]flow                                // by the higher of the two ranks
	cost     func(from, to int, bytes int64) float64 // between distinct devices
}

// flow is a message between two ranks.
type flow struct {
	from, to int
	bytes    int64
}

func newSearch(p *Plan, devices []*streams.Device, cost func(from, to *streams.Device, bytes int64) float64) *search {
	s := &search{flows: make([][]flow, len(devices))}
	var distinct []*streams.Device
	for _, d := range devices {
		if !slices.Contains(distinct, d) {
			distinct = append(distinct, d)
		}
		s.devices = append(s.devices, slices.Index(distinct, d))
	}
	s.distinct = len(distinct)
	s.cost = func(from, to int, bytes int64) float64 { return cost(distinct[from], distinct[to], bytes) }
	for _, m := range p.Messages {
		late := max(m.From, m.To)
		s.flows[late] = append(s.flows[late], flow{m.From, m.To, m.Bytes})
	}
	return s
}
