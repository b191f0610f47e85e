package forecast

import (
	"math"
	"slices"
)

// Errors say how far predicted times are from measured ones, as parts of these.
type Errors struct {
	Median, Worst float64
	Samples       int
}

// ErrorsOf compares a model with what it was fitted to.
func (m Model) ErrorsOf(p Problem, samples []Sample) Errors {
	var off []float64
	for _, s := range samples {
		off = append(off, m.off(p, s))
	}
	return summed(off)
}

// ErrorsOfUnseen compares measured steps with models that were fitted without any of their size, but for the smallest and
// the largest: nobody has said how a step ends beyond these. There are no samples where too few are left.
func ErrorsOfUnseen(p Problem, samples []Sample) Errors {
	var sizes []int64
	for _, s := range samples {
		if n := s.Grid.Points(); !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	var off []float64
	for _, size := range sizes[min(1, len(sizes)):max(1, len(sizes)-1)] {
		seen := slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return s.Grid.Points() == size })
		m, err := Fit(p, seen)
		if err != nil {
			continue
		}
		for _, s := range samples {
			if s.Grid.Points() == size {
				off = append(off, m.off(p, s))
			}
		}
	}
	return summed(off)
}

// off returns how far the model is from a sample.
func (m Model) off(p Problem, s Sample) float64 {
	return math.Abs(m.step(s.load(p), s.Network)/s.Step.Seconds() - 1)
}

func summed(off []float64) Errors {
	if len(off) == 0 {
		return Errors{}
	}
	slices.Sort(off)
	middle := (off[(len(off)-1)/2] + off[len(off)/2]) / 2
	return Errors{middle, off[len(off)-1], len(off)}
}
