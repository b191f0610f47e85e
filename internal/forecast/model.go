// Package forecast says how long a step takes on machines that are not there: hosts with some devices each, joined by a
// network. A model with few parameters is fitted to steps that were measured, and says how far it is from those.
package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
)

// model says how long a step takes. A device sweeps all its points in the larger of two times: the least that a step
// takes, and that of its points, of which each takes Near where all fit into the caches; of more points than Cached
// those beyond take Point. Where it has neighbours, Together is added, and of its exchange what lasts longer than the
// share Hidden of the sweep:
//
//	step = sweep + Together + max(0, exchange - Hidden sweep)
//	exchange = messages Message + max(bytes within the host / Within, network)
//	network = Latency + messages to other hosts times the network's Message
//		+ bytes that leave the host / Bandwidth of its adapters
//
// Times are in seconds.
type model struct {
	Least    float64 // a step without points
	Near     float64 // a point of a subdomain that fits into the caches
	Cached   float64 // points that do
	Point    float64 // one beyond these
	Together float64 // devices keep in step
	Message  float64 // beside its bytes, of a device
	Within   float64 // bytes/s from device to device of a host
	Hidden   float64 // share of a sweep behind which an exchange hides, 0 to 1
}

// sharpness is how quickly Least and the time of all points take over from each other: the power of their norm.
const sharpness = 4

// sweep returns the time that a device sweeps.
func (m model) sweep(points int64) float64 {
	n := float64(points)
	all := m.Near*min(n, m.Cached) + m.Point*max(0, n-m.Cached)
	return math.Pow(math.Pow(m.Least, sharpness)+math.Pow(all, sharpness), 1./sharpness)
}

// step returns the time of a step of the busiest device.
func (m model) step(l load, n Network) float64 {
	sweep := m.sweep(l.points)
	if l.messages == 0 {
		return sweep
	}
	return sweep + m.Together + max(0, m.exchange(l, n)-m.Hidden*sweep)
}

func (m model) exchange(l load, n Network) float64 {
	within, network := float64(l.within)/m.Within, 0.
	if l.abroad > 0 {
		network = n.Latency.Seconds() + float64(l.abroad)*n.Message.Seconds() +
			float64(l.fromHost)/(n.Bandwidth*float64(n.Adapters))
	}
	return float64(l.messages)*m.Message + max(within, network)
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

// CutOver returns the cut over so many hosts of so many devices, as processes on them have it: that of the problem
// where it is one of so many parts, else that of domain.NestedParts.
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

// grown returns the problem that gives each of so many hosts the grid of this one, by about as many along each axis,
// and its cut.
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

// loadOf returns the work of the busiest device: one at a face of its host, where other hosts are beyond it. Of bytes
// within the host, those of a device between two others are more; it sends as many messages.
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
	if periodic && parts > 1 {
		return 2
	}
	return min(parts-1, 2)
}

// parted returns the length of the longest of some parts.
func parted(length, parts int) int { return (length + parts - 1) / parts }
