package forecast

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/optimize"

	"github.com/halox/halox/domain"
)

// deviations are the differences between predicted and measured times, as fractions of the measured ones.
type deviations struct {
	median, worst float64
	samples       int
}

// deviationsFrom compares a model with samples.
func (m model) deviationsFrom(p Problem, samples []sample) deviations {
	var off []float64
	for _, s := range samples {
		off = append(off, math.Abs(m.step(s.load(p), s.Network)/s.Step.Seconds()-1))
	}
	return summarize(off)
}

// deviationsUnseen compares measured steps with models that were fitted without any of their size. It omits the
// smallest and the largest size, since models do not extrapolate. It has no samples if too few remain to fit a model.
func deviationsUnseen(p Problem, samples []sample) deviations {
	bySize := map[int64][]sample{}
	for _, s := range samples {
		bySize[s.Grid.Points()] = append(bySize[s.Grid.Points()], s)
	}
	sizes := slices.Sorted(maps.Keys(bySize))
	var off []float64
	for _, size := range sizes[min(1, len(sizes)):max(1, len(sizes)-1)] {
		seen := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.Grid.Points() == size })
		m, err := fit(p, seen)
		if err != nil {
			continue
		}
		for _, s := range bySize[size] {
			off = append(off, math.Abs(m.step(s.load(p), s.Network)/s.Step.Seconds()-1))
		}
	}
	return summarize(off)
}

func summarize(off []float64) deviations {
	if len(off) == 0 {
		return deviations{}
	}
	slices.Sort(off)
	return deviations{(off[(len(off)-1)/2] + off[len(off)/2]) / 2, off[len(off)-1], len(off)}
}

// sample is a measured step.
type sample struct {
	Grid    domain.Grid
	Cut     Cut     // over hosts, and over the devices of each
	Network Network // between the hosts, if there are several
	Step    time.Duration
}

// fewest is the minimum number of samples of a fit: the number of parameters of the model.
const fewest = 8

// fit fits a model to measured steps: it minimizes the squares of the logarithms of predicted over measured times. It
// needs steps of two sizes on one device, and steps on several devices.
func fit(p Problem, samples []sample) (model, error) {
	if err := sufficient(samples); err != nil {
		return model{}, err
	}
	var loads []load
	least, rate, most := math.Inf(1), 0., int64(0)
	for _, s := range samples {
		l := s.load(p)
		loads = append(loads, l)
		if took := s.Step.Seconds(); l.messages == 0 {
			least, rate, most = min(least, took), max(rate, float64(l.points)/took), max(most, l.points)
		}
	}
	cost := func(x []float64) (sum float64) {
		m := modelOf(x)
		for i, s := range samples {
			off := math.Log(m.step(loads[i], s.Network) / s.Step.Seconds())
			sum += off * off
		}
		return sum
	}
	var best []float64
	bestCost := math.Inf(1)
	search := func(begin []float64) (better bool) {
		r, _ := optimize.Minimize(
			optimize.Problem{Func: cost}, begin, &optimize.Settings{FuncEvaluations: 3000}, &optimize.NelderMead{},
		) // a search that has not converged is not an error
		if r == nil || !(r.F < bestCost) {
			return false
		}
		best, bestCost = r.X, r.F
		return true
	}
	for _, begin := range begins(least, 1/rate, float64(most)) {
		search(begin)
	}
	for range 10 { // a search that has shrunk to a point starts again around it
		if best == nil || !search(best) {
			break
		}
	}
	if best == nil {
		return model{}, errors.New("no model fits the measured steps")
	}
	return modelOf(best), nil
}

// begins returns the starting points of searches: messages from a store over a link to sleeping threads and a slow
// network, and caches that hold a small or a large part of the largest measured size.
func begins(least, point, most float64) (all [][]float64) {
	for _, sent := range []struct{ message, rate float64 }{{1e-6, 150e9}, {15e-6, 10e9}, {200e-6, 1e9}} {
		for _, hidden := range []float64{-1, 2} {
			for _, cached := range []float64{most / 256, most / 16} {
				all = append(all, []float64{
					math.Log(least), math.Log(point), math.Log(sent.message), math.Log(sent.message),
					math.Log(sent.rate), hidden, math.Log(cached), math.Log(1.5),
				})
			}
		}
	}
	return all
}

// modelOf returns the model of an unbounded vector: times and rates are above 0, a share is from 0 to 1, and a point
// from memory takes no less than one from the caches.
func modelOf(x []float64) model {
	bounded := func(v float64) float64 { return math.Exp(min(max(v, -60), 60)) }
	return model{
		Least: bounded(x[0]), Near: bounded(x[1]), Together: bounded(x[2]), Message: bounded(x[3]),
		Within: bounded(x[4]), Hidden: 1 / (1 + bounded(-x[5])), Cached: bounded(x[6]),
		Point: bounded(x[1]) * max(1, bounded(x[7])),
	}
}

// sufficient returns an error if the samples do not determine all parameters.
func sufficient(samples []sample) error {
	var alone []int64
	several := 0
	for _, s := range samples {
		hosts := s.Cut.Hosts.Product()
		if s.Step <= 0 || hosts*s.Cut.Devices.Product() < 1 {
			return fmt.Errorf("a step of %v on %v devices of %v hosts", s.Step, s.Cut.Devices, s.Cut.Hosts)
		}
		if hosts > 1 && s.Network.Bandwidth <= 0 {
			return fmt.Errorf("a step on %v hosts without a network", s.Cut.Hosts)
		}
		if hosts*s.Cut.Devices.Product() > 1 {
			several++
		} else if points := s.Grid.Points(); !slices.Contains(alone, points) {
			alone = append(alone, points)
		}
	}
	if len(samples) < fewest || len(alone) < 2 || several < 2 {
		return fmt.Errorf("too few measured steps: %d, with %d sizes on one device and %d on several devices; "+
			"must be at least %d, 2 and 2", len(samples), len(alone), several, fewest)
	}
	return nil
}

// load returns the work of the busiest device.
func (s sample) load(p Problem) load {
	p.Grid = s.Grid
	return p.loadOf(s.Cut)
}
