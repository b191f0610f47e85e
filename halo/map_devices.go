package halo

import (
	"errors"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

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
