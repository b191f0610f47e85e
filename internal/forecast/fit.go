package forecast

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/optimize"

	"github.com/halox/halox/domain"
)

// Sample is a step that was measured, on devices of one host.
type Sample struct {
	Grid  domain.Grid
	Parts domain.Vec // that the grid was cut into, one a device
	Step  time.Duration
}

// errTooFew is wrapped by the errors of Fit for samples that say too little.
var errTooFew = errors.New("too few measured steps")

// fewest is how many samples a fit needs: as many as the model has parameters.
const fewest = 6

// Fit fits a model to steps that were measured: it minimises the squares of the logarithms of predicted over measured
// times. It needs steps of one device of two sizes, and of several devices.
func Fit(p Problem, samples []Sample) (Model, error) {
	if err := sufficient(samples); err != nil {
		return Model{}, err
	}
	var loads []load
	least, point := math.Inf(1), 0.
	for _, s := range samples {
		l := s.load(p)
		loads = append(loads, l)
		if took := s.Step.Seconds(); l.messages == 0 {
			least, point = min(least, took), max(point, float64(l.points)/took)
		}
	}
	cost := func(x []float64) (sum float64) {
		m := modelOf(x)
		for i, s := range samples {
			off := math.Log(m.step(loads[i], Network{}) / s.Step.Seconds())
			sum += off * off
		}
		return sum
	}
	best := Model{}
	bestCost := math.Inf(1)
	for _, begin := range begins(least, 1/point) {
		r, err := optimize.Minimize(optimize.Problem{Func: cost}, begin, &optimize.Settings{FuncEvaluations: 4000}, &optimize.NelderMead{})
		if r != nil && r.F < bestCost {
			best, bestCost = modelOf(r.X), r.F
		} else if r == nil && err != nil {
			return Model{}, err
		}
	}
	if math.IsInf(bestCost, 1) {
		return Model{}, errors.New("the measured steps fit no model")
	}
	return best, nil
}

// begins returns where searches begin: times of messages from a store to a queue of the host, rates from a network's to a link's.
func begins(least, point float64) (all [][]float64) {
	for _, message := range []float64{1e-6, 15e-6} {
		for _, rate := range []float64{10e9, 150e9} {
			for _, hidden := range []float64{-1, 2} {
				all = append(all, []float64{math.Log(least), math.Log(point), math.Log(message), math.Log(message), math.Log(rate), hidden})
			}
		}
	}
	return all
}

// modelOf returns the model of an unbounded vector: times and rates are above 0, a share is from 0 to 1.
func modelOf(x []float64) Model {
	bounded := func(v float64) float64 { return math.Exp(min(max(v, -60), 60)) }
	return Model{
		Least: bounded(x[0]), Point: bounded(x[1]), Together: bounded(x[2]), Message: bounded(x[3]), Within: bounded(x[4]), Hidden: 1 / (1 + bounded(-x[5])),
	}
}

// sufficient returns an error for samples that leave parameters open.
func sufficient(samples []Sample) error {
	var alone []int64
	several := 0
	for _, s := range samples {
		if s.Step <= 0 || s.Parts.Product() < 1 {
			return fmt.Errorf("a step of %v on %v devices", s.Step, s.Parts)
		}
		if s.Parts.Product() > 1 {
			several++
		} else if points := s.Grid.Points(); !slices.Contains(alone, points) {
			alone = append(alone, points)
		}
	}
	if len(samples) < fewest || len(alone) < 2 || several < 2 {
		return fmt.Errorf("%w: %d, of %d sizes on one device and %d of several devices; %d, 2 and 2 are needed", errTooFew, len(samples), len(alone), several, fewest)
	}
	return nil
}

// load returns the work of the busiest device.
func (s Sample) load(p Problem) load {
	p.Grid = s.Grid
	return p.loadOf(Cut{domain.Vec{1, 1, 1}, s.Parts})
}

// FewestPoints returns the least that the busiest device had in any of some samples.
func FewestPoints(samples []Sample) int64 {
	fewest := int64(math.MaxInt64)
	for _, s := range samples {
		fewest = min(fewest, s.load(Problem{}).points)
	}
	return fewest
}
