// Package measure repeats measurements until they say enough, and sums them up.
//
// It assumes nothing about how times are distributed: a [Sample] is medians,
// quartiles and an interval of order statistics. [Repeat] is the loop.
package measure

import (
	"math"
	"slices"
)

// A Sample sums up repeated measurements of one quantity. One of a single number,
// see [Exact], has that as its median and N of 1.
type Sample struct {
	N        int
	Median   float64
	Q1, Q3   float64 // quartiles
	Min, Max float64

	// Lo and Hi are order statistics between which the median lies with a probability
	// of 95% at least, whatever the distribution; see [Sample.Interval].
	Lo, Hi float64
}

// Exact is the sample of a number that was not repeated.
func Exact(v float64) Sample { return NewSample([]float64{v}) }

// NewSample sums up measurements in any order. Quartiles lie between the two
// measurements next to them, in proportion (R's type 7). It has N of 0 where there
// are no measurements.
func NewSample(all []float64) Sample { return sorted(slices.Sorted(slices.Values(all))) }

func sorted(all []float64) Sample {
	n := len(all)
	if n == 0 {
		return Sample{}
	}
	s := Sample{
		N: n, Min: all[0], Max: all[n-1],
		Q1: quantile(all, 0.25), Median: quantile(all, 0.5), Q3: quantile(all, 0.75),
	}
	if r := rank(n); r > 0 {
		s.Lo, s.Hi = all[r-1], all[n-r]
	}
	return s
}

// quantile returns the number below which a fraction p of the sorted ones lies.
func quantile(all []float64, p float64) float64 {
	place := p * float64(len(all)-1)
	i := int(place)
	if i+1 == len(all) {
		return all[i]
	}
	part := place - float64(i)
	return all[i]*(1-part) + all[i+1]*part
}

// rank returns the largest r for which the median of what n numbers are drawn from
// lies between the r-th smallest and the r-th largest of them with a probability
// of 95%: the number of draws below the median is binomial with one half. It is 0
// where n is too small for any, below fewestRanked.
func rank(n int) int {
	const outside = 0.025 // on either side
	r, below := 0, 0.0
	top, _ := math.Lgamma(float64(n + 1))
	for k := 0; k < n/2; k++ {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		if below += math.Exp(top - a - b - float64(n)*math.Ln2); below > outside {
			break
		}
		r = k + 1
	}
	return r
}

// fewestRanked is the smallest number whose rank is above 0.
const fewestRanked = 6

// Interval returns the bounds of the median's 95% confidence interval. It is false
// for fewer than 6 measurements, which have none. It takes no longer for more of them: a file may claim any number.
func (s Sample) Interval() (lo, hi float64, ok bool) { return s.Lo, s.Hi, s.N >= fewestRanked }

// Repeated reports whether there is more than one measurement.
func (s Sample) Repeated() bool { return s.N > 1 }

// Converged reports whether the median's confidence interval reaches no further
// from the median than the fraction rel of it, to either side.
func (s Sample) Converged(rel float64) bool {
	lo, hi, ok := s.Interval()
	return ok && max(s.Median-lo, hi-s.Median) <= rel*math.Abs(s.Median)
}

// Finite reports whether all of it are numbers that a file can hold.
func (s Sample) Finite() bool {
	for _, v := range []float64{s.Median, s.Q1, s.Q3, s.Min, s.Max, s.Lo, s.Hi} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// Scale returns the sample of the measurements times a positive factor.
func (s Sample) Scale(factor float64) Sample {
	return s.each(func(v float64) float64 { return v * factor })
}

// Under returns the sample of a positive number over each of the measurements,
// which are positive, such as a rate from times: what was the first quartile
// becomes the third. Of an even number of measurements its median, and any
// quartile, is that of the quotients only nearly.
func (s Sample) Under(number float64) Sample {
	t := s.each(func(v float64) float64 { return number / v })
	t.Q1, t.Q3, t.Min, t.Max, t.Lo, t.Hi = t.Q3, t.Q1, t.Max, t.Min, t.Hi, t.Lo
	if _, _, ok := s.Interval(); !ok {
		t.Lo, t.Hi = 0, 0
	}
	return t
}

func (s Sample) each(f func(float64) float64) Sample {
	t := Sample{N: s.N, Median: f(s.Median), Q1: f(s.Q1), Q3: f(s.Q3), Min: f(s.Min), Max: f(s.Max)}
	if _, _, ok := s.Interval(); ok {
		t.Lo, t.Hi = f(s.Lo), f(s.Hi)
	}
	return t
}
