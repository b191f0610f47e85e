package forecast

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
)

// Machine is hosts with equally many devices.
type Machine struct {
	Hosts, Devices int // hosts; devices of each
	Network        Network
}

// Problem is what a step exchanges.
type Problem struct {
	Grid    domain.Grid
	Width   domain.Radius // of the ghosts
	Element int           // bytes of a point, of all fields that are exchanged
}

// Cut is a grid over a machine, first over its hosts and then over their devices.
type Cut struct {
	Hosts, Devices domain.Vec // parts
}

// cutOver returns the cut over so many hosts of so many devices of which the fewest bytes leave a host. It is an error if
// no cut leaves each device the layers that its neighbours need.
func (p Problem) cutOver(hosts, devices int) (best Cut, err error) {
	least := int64(-1)
	for _, over := range factors(hosts, p.Grid.Dims) {
		c, failed := p.within(over, devices)
		if failed != nil {
			err = failed
		} else if bytes := p.loadOf(c).fromHost; least < 0 || bytes < least {
			best, least = c, bytes
		}
	}
	if least < 0 {
		return best, fmt.Errorf("%v points over %d hosts: %w", p.Grid.Size, hosts, err)
	}
	return best, nil
}

// grown returns the problem that gives each of so many hosts the grid of this one, by about as many along each axis, and its
// cut.
func (p Problem) grown(hosts, devices int) (Problem, Cut, error) {
	all := factors(hosts, p.Grid.Dims)
	over := slices.MinFunc(all, func(a, b domain.Vec) int { return cmp.Compare(a[0]+a[1]+a[2], b[0]+b[1]+b[2]) })
	for a := range p.Grid.Size {
		p.Grid.Size[a] *= over[a]
	}
	c, err := p.within(over, devices)
	return p, c, err
}

// within cuts what a host has, of a cut over hosts, over its devices.
func (p Problem) within(over domain.Vec, devices int) (Cut, error) {
	host := p.Grid
	for a := range host.Size {
		host.Size[a] /= over[a] // the smallest host has to be cut too
		host.Periodic[a] = host.Periodic[a] && over[a] == 1
		if over[a] > 1 && host.Size[a] < max(p.Width.Minus[a], p.Width.Plus[a], 1) {
			return Cut{}, fmt.Errorf("a host has %d layers along axis %d, and its neighbours need %d", host.Size[a], a, max(p.Width.Minus[a], p.Width.Plus[a], 1))
		}
	}
	parts, err := domain.AutoParts(host, devices, p.Width)
	return Cut{over, parts}, err
}

// factors returns all ways to cut along some axes into so many parts, those first that cut the slowest axis most.
func factors(n, dims int) (all []domain.Vec) {
	for x := 1; x <= n; x++ {
		for y := 1; n%x == 0 && y <= n/x; y++ {
			v := domain.Vec{x, y, n / x / y}
			if n%(x*y) == 0 && (dims > 2 || v[2] == 1) && (dims > 1 || v[1] == 1) {
				all = append(all, v)
			}
		}
	}
	return all
}

// load is what a device has to do in a step, of those that have the most to do.
type load struct {
	points   int64 // that it owns
	messages int   // that it sends
	within   int64 // bytes to others of its host
	abroad   int   // of its messages, to other hosts
	fromHost int64 // bytes that its host sends to others
}

// loadOf returns the work of the busiest device: one at a face of its host, where other hosts are beyond it.
func (p Problem) loadOf(c Cut) (l load) {
	var box domain.Vec
	for a, n := range p.Grid.Size {
		box[a] = parted(parted(n, c.Hosts[a]), c.Devices[a])
	}
	l.points = box.Product()
	for a := range p.Grid.Dims {
		bytes := l.points / int64(box[a]) * int64(p.Element) * int64(max(p.Width.Minus[a], p.Width.Plus[a]))
		beyond := neighbours(c.Hosts[a], p.Grid.Periodic[a])
		within, outside := 0, beyond
		if c.Devices[a] > 1 {
			within, outside = 1, min(1, beyond)
			if beyond == 0 {
				within = neighbours(c.Devices[a], p.Grid.Periodic[a])
			}
		}
		l.messages, l.abroad = l.messages+within+outside, l.abroad+outside
		l.within += int64(within) * bytes
		l.fromHost += int64(beyond) * c.Devices.Product() / int64(c.Devices[a]) * bytes
	}
	return l
}

// neighbours returns how many a part has along an axis at most.
func neighbours(parts int, periodic bool) int {
	switch {
	case parts == 1:
		return 0
	case parts == 2 && !periodic:
		return 1
	}
	return 2
}

// parted returns the length of the longest of some parts.
func parted(length, parts int) int { return (length + parts - 1) / parts }
