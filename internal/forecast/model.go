// Package forecast says how long a step takes on machines that are not there: hosts with some devices each, joined by a
// network. A model with few parameters is fitted to steps that were measured, and says how far it is from those.
package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/domain"
)

// Model says how long a step takes. A device sweeps all its points in the larger of two times: the least that a step
// takes, and that of its points, of which each takes Near where all fit into the caches; of more points than Cached
// those beyond take Point. Where it has neighbours, Together is added, and of its exchange what lasts longer than the
// share Hidden of the sweep:
//
//	step = sweep + Together + max(0, exchange - Hidden sweep)
//	exchange = messages Message + max(bytes within the host / Within, network)
//	network = Latency + messages to other hosts times the network's Message + bytes that leave the host / Bandwidth of its adapters
//
// Times are in seconds.
type Model struct {
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
func (m Model) sweep(points int64) float64 {
	n := float64(points)
	all := m.Near*min(n, m.Cached) + m.Point*max(0, n-m.Cached)
	return math.Pow(math.Pow(m.Least, sharpness)+math.Pow(all, sharpness), 1./sharpness)
}

// step returns the time of a step of the busiest device.
func (m Model) step(l load, n Network) float64 {
	sweep := m.sweep(l.points)
	if l.messages == 0 {
		return sweep
	}
	return sweep + m.Together + max(0, m.exchange(l, n)-m.Hidden*sweep)
}

func (m Model) exchange(l load, n Network) float64 {
	within, network := float64(l.within)/m.Within, 0.
	if l.abroad > 0 {
		network = n.Latency.Seconds() + float64(l.abroad)*n.Message.Seconds() + float64(l.fromHost)/(n.Bandwidth*float64(n.Adapters))
	}
	return float64(l.messages)*m.Message + max(within, network)
}

// Candidate is a way to make steps, with the model that was fitted to its measured ones.
type Candidate struct {
	Name   string
	Model  Model
	Fewest int64 // points of a device, of those that were measured
}

// Step is a predicted one.
type Step struct {
	By             string // the fastest candidate
	Hosts, Devices int    // of all hosts
	Cut            Cut
	Points         int64         // of the busiest device
	Time           time.Duration // of a step
	Sweep          time.Duration // what it would take without neighbours
	Bytes          int64         // that the busiest host sends to others
	Efficiency     float64       // against the first number of hosts
	Beyond         bool          // a device has fewer points than any that was measured
}

// Strong returns steps of one grid on more and more hosts, up to the first number that it cannot be cut for, whose
// error it returns too.
func Strong(p Problem, on Machine, hosts []int, by []Candidate) ([]Step, error) {
	return curve(hosts, func(n int) (Step, error) {
		c, err := p.CutOver(n, on.Devices)
		return p.fastest(c, on, by), err
	}, func(first, s Step) float64 { return float64(first.Hosts) / float64(s.Hosts) })
}

// Weak returns steps of a grid that grows with the hosts, each of which has as much as one has alone.
func Weak(p Problem, on Machine, hosts []int, by []Candidate) ([]Step, error) {
	return curve(hosts, func(n int) (Step, error) {
		larger, c, err := p.grown(n, on.Devices)
		return larger.fastest(c, on, by), err
	}, func(first, s Step) float64 { return 1 })
}

// curve returns a step for each number of hosts, with its efficiency: ideal is the part of the first step's time that
// it would take at best.
func curve(hosts []int, step func(n int) (Step, error), ideal func(first, s Step) float64) (all []Step, err error) {
	for _, n := range hosts {
		s, err := step(n)
		if err != nil {
			return all, err
		}
		all = append(all, s)
		s.Efficiency = all[0].Time.Seconds() * ideal(all[0], s) / s.Time.Seconds()
		all[len(all)-1] = s
	}
	return all, nil
}

// fastest returns the step of the fastest candidate.
func (p Problem) fastest(c Cut, on Machine, by []Candidate) (best Step) {
	if c.Hosts.Product() == 0 { // there is none
		return best
	}
	l, hosts := p.loadOf(c), int(c.Hosts.Product())
	for _, one := range by {
		took := seconds(one.Model.step(l, on.Network))
		if best.By != "" && took >= best.Time {
			continue
		}
		best = Step{
			By: one.Name, Hosts: hosts, Devices: hosts * on.Devices, Cut: c, Points: l.points, Time: took, Sweep: seconds(one.Model.sweep(l.points)),
			Bytes: l.fromHost, Beyond: l.points < one.Fewest,
		}
	}
	return best
}

// seconds is the longest duration that there is for longer ones.
func seconds(s float64) time.Duration {
	if ns := math.Round(s * 1e9); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// Below returns the fewest hosts of which the efficiency is below a share, between two of the steps by the line through
// their logarithms, and false if it is below in none.
func Below(steps []Step, share float64) (hosts int, found bool) {
	for i, s := range steps {
		if s.Efficiency >= share {
			continue
		}
		if i == 0 {
			return s.Hosts, true
		}
		before := steps[i-1]
		at := (before.Efficiency - share) / (before.Efficiency - s.Efficiency)
		low, high := math.Log(float64(before.Hosts)), math.Log(float64(s.Hosts))
		return min(s.Hosts, max(before.Hosts+1, int(math.Ceil(math.Exp(low+at*(high-low)))))), true
	}
	return 0, false
}

// Doubled returns 1, 2, 4 and so on, and the last.
func Doubled(last int) (all []int) {
	for n := 1; n < last; n *= 2 {
		all = append(all, n)
	}
	return append(all, last)
}

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
