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
	Parts   domain.Vec    // a cut for machines with as many devices; 0 where there is none
}

// Cut is a grid over a machine, first over its hosts and then over their devices.
type Cut struct {
	Hosts, Devices domain.Vec // parts
}

// CutOver returns the cut over so many hosts of so many devices, as processes on them have it: that of the problem where it
// is one of so many parts, else that of domain.NestedParts.
func (p Problem) CutOver(hosts, devices int) (Cut, error) {
	cut := func() (outer, inner domain.Vec, err error) {
		return domain.NestedParts(p.Grid, hosts, devices, p.Width)
	}
	if p.Parts.Product() == int64(hosts)*int64(devices) {
		cut = func() (outer, inner domain.Vec, err error) { return domain.NestedAs(p.Grid, p.Parts, devices, p.Width) }
	}
	over, parts, err := cut()
	if err != nil {
		return Cut{}, fmt.Errorf("%d hosts: %w", hosts, err)
	}
	return Cut{over, parts}, nil
}

// grown returns the problem that gives each of so many hosts the grid of this one, by about as many along each axis, and its
// cut.
func (p Problem) grown(hosts, devices int) (Problem, Cut, error) {
	all := factors(hosts, p.Grid.Dims)
	over := slices.MinFunc(all, func(a, b domain.Vec) int { return cmp.Compare(a[0]+a[1]+a[2], b[0]+b[1]+b[2]) })
	for a := range p.Grid.Size {
		p.Grid.Size[a] *= over[a]
	}
	c, err := p.CutOver(hosts, devices)
	return p, c, err
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

// loadOf returns the work of the busiest device: one at a face of its host, where other hosts are beyond it. Of bytes within the
// host, those of a device between two others are more; it sends as many messages.
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
		if c.Devices[a] > 2 {
			within = 2
		}
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
