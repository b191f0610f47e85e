// Package sums adds float64 so that the bits of a sum depend on the terms alone: not on their order, nor
// on who adds which of them before the parts are joined. It is the host version of sums.cuh.
//
// Binary digits are cut at fixed places into bins of 40: bin n holds multiples of 2^(40n-1074). A sum has
// three bins, from that of its window on. The window is the lowest one whose bins hold the largest term,
// which is below 2^(40(window+3)-1074); what of a term lies below these bins is cut off. So the largest term
// alone says where terms are cut, the bins sum integers, which is exact, and the sum is rounded once, to the
// nearest float64. See Demmel and Nguyen, Parallel Reproducible Summation (2015), whose bins these are.
//
// With n terms, the largest of magnitude m, the sum is within n m 2^-80 of the exact one before it is
// rounded.
package sums

import (
	"math"
	"math/bits"
)

const (
	binCount = 3
	binBits  = 40
	// notFinite is the window of a sum with terms that are not finite, which lies so far above all others
	// that nothing of these is left. Its bins count NaNs, negative and positive infinities.
	notFinite = 60
	// plain is the window of a sum that is one float64, in place of its lowest bin.
	plain = -1
)

// Sum is a sum of up to 2^39 terms, as kernels write it: struct StoredSum of sums.cuh. The zero value is the
// sum of none.
type Sum struct {
	low    [binCount]uint64 // bins, the lowest first, whose integers have 80 bits
	high   [binCount]int16
	window int16
}

// Plain is a sum taken in mode Fast.
func Plain(value float64) Sum {
	return Sum{low: [binCount]uint64{math.Float64bits(value)}, window: plain}
}

// Bytes is the size of a Sum.
const Bytes = 32

// Join adds the terms of another sum of the same mode. The sum of none is of both.
func (s *Sum) Join(other Sum) {
	if s.window == plain || other.window == plain {
		*s = Plain(s.Value() + other.Value())
		return
	}
	s.raise(other.window)
	other.raise(s.window)
	for i := range s.low {
		s.addBin(i, other.low[i], other.high[i])
	}
}

// addBin adds an integer of 80 bits to a bin.
func (s *Sum) addBin(bin int, low uint64, high int16) {
	sum, carry := bits.Add64(s.low[bin], low, 0)
	s.low[bin] = sum
	s.high[bin] += high + int16(carry)
}

// raise moves the window up to another, unless it is there.
func (s *Sum) raise(window int16) {
	shift := int(window - s.window)
	if shift <= 0 {
		return
	}
	moved := Sum{window: window}
	for i := shift; i < binCount; i++ {
		moved.low[i-shift], moved.high[i-shift] = s.low[i], s.high[i]
	}
	*s = moved
}

// Value returns the sum, rounded to the nearest float64: NaN if a term was, or if infinities of both signs
// were.
func (s Sum) Value() float64 {
	switch s.window {
	case plain:
		return math.Float64frombits(s.low[0])
	case notFinite:
		return s.infinite()
	}
	total := s.integer()
	negative := int64(total[2]) < 0
	if negative {
		total = total.negated()
	}
	length := total.length()
	drop := max(0, length-53)
	mantissa := total.rounded(drop)
	value := math.Ldexp(float64(mantissa), drop+binBits*int(s.window)-1074)
	if negative {
		return -value
	}
	return value
}

// infinite is the value of a sum with terms that are not finite.
func (s Sum) infinite() float64 {
	some := func(bin int) bool { return s.low[bin] != 0 || s.high[bin] != 0 }
	switch {
	case some(0) || some(1) && some(2):
		return math.NaN()
	case some(1):
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// wide is an integer of 192 bits, the lowest first, as two's complement.
type wide [3]uint64

// integer returns the sum of all bins, in units of the lowest.
func (s Sum) integer() (total wide) {
	for i := range s.low {
		sign := uint64(int64(s.high[i]) >> 63)
		bin := wide{s.low[i], uint64(int64(s.high[i])), sign}.shifted(uint(binBits * i))
		var carry uint64
		for k := range total {
			total[k], carry = bits.Add64(total[k], bin[k], carry)
		}
	}
	return total
}

// shifted returns the integer times 2^by.
func (w wide) shifted(by uint) (r wide) {
	words, rest := int(by/64), by%64
	for k := words; k < len(w); k++ {
		r[k] = w[k-words] << rest
		if k > words {
			r[k] |= w[k-words-1] >> (64 - rest)
		}
	}
	return r
}

func (w wide) negated() (r wide) {
	var borrow uint64
	for k := range w {
		r[k], borrow = bits.Sub64(0, w[k], borrow)
	}
	return r
}

// length is the number of digits of an integer that is not negative.
func (w wide) length() int {
	for k := len(w) - 1; k >= 0; k-- {
		if w[k] != 0 {
			return 64*k + bits.Len64(w[k])
		}
	}
	return 0
}

// rounded returns the integer divided by 2^drop, which fits into 53 bits, to nearest, ties to even.
func (w wide) rounded(drop int) uint64 {
	if drop == 0 {
		return w[0]
	}
	whole := w.digits(drop)
	half := w.digits(drop-1) & 1
	below := false
	for k := range w {
		if first := 64 * k; first < drop-1 {
			below = below || w[k]<<max(0, 64-(drop-1-first)) != 0
		}
	}
	if half == 1 && (below || whole&1 == 1) {
		whole++
	}
	return whole
}

// digits returns 64 of them, from one on.
func (w wide) digits(from int) (r uint64) {
	word, rest := from/64, uint(from%64)
	r = w[word] >> rest
	if word+1 < len(w) {
		r |= w[word+1] << (64 - rest)
	}
	return r
}

//go:generate go run ./gen -pkg sums -out sums_amd64.s -stubs sums_amd64.go

// width is the number of lanes: two AVX2 registers of float64.
const width = 8

// nextBin is a unit of a bin in units of the bin below.
const nextBin = 1 << binBits

// lanes are the sums of the digits of every eighth term in each bin. The assembly knows the layout.
type lanes [binCount][width]float64

// bin adds the digits that terms have in each bin. unit is 1 over the unit of the highest bin. All that it
// computes is exact except for digits below the lowest bin.
func (l *lanes) bin(terms []float64, unit float64) {
	for i, x := range terms {
		lane := i % width
		x = float64(x * unit)
		digits := math.Trunc(x)
		l[2][lane] += digits
		x = float64((x - digits) * nextBin)
		digits = math.Trunc(x)
		l[1][lane] += digits
		l[0][lane] += math.Trunc(float64((x - digits) * nextBin))
	}
}
