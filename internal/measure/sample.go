// Package measure repeats measurements until their median is known well enough, and summarizes them.
//
// It assumes nothing about the distribution of times: a [Sample] has the median, quartiles and an interval of order
// statistics. [Repeat] is the loop.
package measure

import (
	"math"
	"slices"
)

// A Sample summarizes repeated measurements of one quantity. For a single number, see [Exact], N is 1.
type Sample struct {
	N        int
	Median   float64
	Q1, Q3   float64 // quartiles
	Min, Max float64

	// Lo and Hi are order statistics between which the median lies with a probability of at least 95%, for any
	// distribution; see [Sample.Interval].
	Lo, Hi float64
}

// Exact returns the sample of a single number.
func Exact(v float64) Sample { return NewSample([]float64{v}) }

// NewSample summarizes measurements in any order. Quartiles are interpolated linearly between the two adjacent
// measurements (R's type 7). N is 0 if there are no measurements.
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

// quantile returns the p-quantile of sorted numbers.
func quantile(all []float64, p float64) float64 {
	place := p * float64(len(all)-1)
	i := int(place)
	if i+1 == len(all) {
		return all[i]
	}
	part := place - float64(i)
	return all[i]*(1-part) + all[i+1]*part
}

// rank returns the largest r for which the median of a distribution lies between the r-th smallest and the r-th largest
// of n samples with a probability of 95%: the number of samples below the median is binomial with p = 1/2. It is 0 for
// n below fewestRanked, if there is none.
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

// Interval returns the bounds of the median's 95% confidence interval; ok is false for fewer than 6 measurements. Its
// time does not depend on N, which in a file may be any number.
func (s Sample) Interval() (lo, hi float64, ok bool) { return s.Lo, s.Hi, s.N >= fewestRanked }

// Repeated reports whether there is more than one measurement.
func (s Sample) Repeated() bool { return s.N > 1 }

// Converged reports whether both bounds of the median's confidence interval are within the fraction rel of the median.
func (s Sample) Converged(rel float64) bool {
	lo, hi, ok := s.Interval()
	return ok && max(s.Median-lo, hi-s.Median) <= rel*math.Abs(s.Median)
}

// Finite reports whether all numbers are finite, as files require.
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

// Under returns the sample of a positive number divided by each of the positive measurements, such as a rate from
// times: the first quartile becomes the third. For an even number of measurements the median is approximate, and so are
// quartiles in general.
func (s Sample) Under(number float64) Sample {
	t := s.each(func(v float64) float64 { return number / v })
	t.Q1, t.Q3, t.Min, t.Max, t.Lo, t.Hi = t.Q3, t.Q1, t.Max, t.Min, t.Hi, t.Lo
	if _, _, ok := s.Interval(); !ok {
		t.Lo, t.Hi = 0, 0
	}
	return t
}

// Over returns the ratio of two positive quantities that were measured independently: its spread is that of both, added
// as relative errors are, and it has an interval if both have one. The ratio of a sample to itself is exactly 1.
func (s Sample) Over(t Sample) Sample {
	if s == t {
		return Exact(1)
	}
	end := func(sign, of, to float64) float64 { // of the ratio, away from that of the medians by both relative errors
		return s.Median / t.Median * math.Exp(sign*math.Hypot(math.Log(s.Median/max(of, 0)), math.Log(t.Median/max(to, 0))))
	}
	r := Sample{N: min(s.N, t.N), Median: s.Median / t.Median, Q1: end(-1, s.Q1, t.Q3), Q3: end(1, s.Q3, t.Q1),
		Min: end(-1, s.Min, t.Max), Max: end(1, s.Max, t.Min)}
	if _, _, ok := r.Interval(); ok {
		r.Lo, r.Hi = end(-1, s.Lo, t.Hi), end(1, s.Hi, t.Lo)
	}
	return r
}

func (s Sample) each(f func(float64) float64) Sample {
	t := Sample{N: s.N, Median: f(s.Median), Q1: f(s.Q1), Q3: f(s.Q3), Min: f(s.Min), Max: f(s.Max)}
	if _, _, ok := s.Interval(); ok {
		t.Lo, t.Hi = f(s.Lo), f(s.Hi)
	}
	return t
}
