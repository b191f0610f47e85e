package forecast

import (
	"math"
	"time"
)

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

// Strong returns steps of one grid on more and more hosts, up to the first number that it cannot be cut for, whose error it
// returns too.
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

// curve returns a step for each number of hosts, with its efficiency: ideal is the part of the first step's time that it would
// take at best.
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
