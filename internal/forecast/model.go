// Package forecast predicts the time of a step on machines that are not available: hosts with several devices each,
// connected by a network. A model with few parameters is fitted to measured steps, and its errors are reported.
package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
)

// model predicts the time of a step. A device sweeps all its points in the larger of two times: the minimum of a step,
// and the sum over its points, where the first Cached points take Near each, and the others Point. If it has neighbors,
// Together is added, and the time by which its exchange exceeds the fraction Hidden of the sweep:
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
	Cached   float64 // points that fit into the caches
	Point    float64 // each other point
	Together float64 // synchronization of devices
	Message  float64 // time of a message of a device, in addition to its bytes
	Within   float64 // bytes/s from device to device of a host
	Hidden   float64 // share of a sweep that can hide an exchange, 0 to 1
}

// sharpness defines the transition between Least and the time of all points: the power of their norm.
const sharpness = 4

// sweep returns the time of a device's sweep.
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
	Parts   domain.Vec    // decomposition for machines with as many devices; 0: none
}

// Cut is a decomposition over a machine, first over its hosts and then over their devices.
type Cut struct {
	Hosts, Devices domain.Vec // parts
}

// CutOver returns the decomposition over the given numbers of hosts and devices per host, as processes on them choose
// it: that of the problem if it has as many parts, otherwise that of domain.NestedParts.
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

// grown returns the problem in which each host has a grid of the size of this one, with about as many hosts along each
// axis, and its decomposition.
func (p Problem) grown(hosts, devices int) (Problem, Cut, error) {
	all := factors(hosts, p.Grid.Dims)
	over := slices.MinFunc(all, func(a, b domain.Vec) int { return cmp.Compare(a[0]+a[1]+a[2], b[0]+b[1]+b[2]) })
	for a := range p.Grid.Size {
		p.Grid.Size[a] *= over[a]
	}
	c, err := p.CutOver(hosts, devices)
	return p, c, err
}

// factors returns all decompositions along some axes into the given number of parts, in descending order of the parts
// along the slowest axis.
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

// load is the work of the busiest device in a step.
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
		beyond := neighbors(c.Hosts[a], p.Grid.Periodic[a])
		within, outside := 0, beyond
		if c.Devices[a] > 1 {
			within, outside = 1, min(1, beyond)
			if beyond == 0 {
				within = neighbors(c.Devices[a], p.Grid.Periodic[a])
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

// neighbors returns the maximum number of neighbors of a part along an axis.
func neighbors(parts int, periodic bool) int {
	if periodic && parts > 1 {
		return 2
	}
	return min(parts-1, 2)
}

// parted returns the length of the longest of some parts.
func parted(length, parts int) int { return (length + parts - 1) / parts }
