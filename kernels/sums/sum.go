// Package sums adds float64 values so that the bits of a sum depend only on the terms, not on their order or on
// how partial sums are joined. It is the Go counterpart of sums.cuh.
//
// Binary digits are divided at fixed places into bins of 40: bin n holds multiples of 2^(40n-1074). A sum has
// three bins, starting with that of its window. The window is the lowest one whose bins hold the largest term,
// which is below 2^(40(window+3)-1074); digits of a term below these bins are dropped. So the largest term alone
// determines where terms are cut, the bins sum integers, which is exact, and the sum is rounded once, to the
// nearest float64. The bins are those of Demmel and Nguyen, Parallel Reproducible Summation (2015).
//
// With n terms, the largest of magnitude m, the sum is within n m 2^-80 of the exact one before it is rounded.
package sums

import (
	"math"
	"math/bits"
)

const (
	binCount = 3
	binBits  = 40
	// notFinite is the window of a sum with non-finite terms, so far above all others that their bins do not matter.
	// Its bins count NaNs, negative and positive infinities.
	notFinite = 60
	// plain is the window of a sum that is one float64, stored in its lowest bin.
	plain = -1
)

// Sum is a sum of up to 2^39 terms, as written by kernels: struct StoredSum of sums.cuh. The zero value is the
// empty sum.
type Sum struct {
	low    [binCount]uint64 // bins, the lowest first, whose integers have 80 bits
	high   [binCount]int16
	window int16
}

// Plain returns a sum computed in mode Fast.
func Plain(value float64) Sum {
	return Sum{low: [binCount]uint64{math.Float64bits(value)}, window: plain}
}

// Bytes is the size of a Sum.
const Bytes = 32

// Join adds the terms of another sum of the same mode. The empty sum has both modes.
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

// raise moves the window up to a higher one.
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

// Value returns the sum, rounded to the nearest float64: NaN if a term was NaN, or if there were infinities of
// both signs.
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

// infinite returns the value of a sum with non-finite terms.
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

// wide is an integer of 192 bits, the lowest first, in two's complement.
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

// length returns the number of digits of a non-negative integer.
func (w wide) length() int {
	for k := len(w) - 1; k >= 0; k-- {
		if w[k] != 0 {
			return 64*k + bits.Len64(w[k])
		}
	}
	return 0
}

// rounded returns the integer divided by 2^drop, which fits in 53 bits, rounded to nearest, ties to even.
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

// digits returns 64 digits, starting with the given one.
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

// nextBin is the unit of a bin in units of the bin below.
const nextBin = 1 << binBits

// lanes are the sums of the digits of every eighth term in each bin. The assembly depends on the layout.
type lanes [binCount][width]float64

// bin adds the digits of terms in each bin. unit is 1 over the unit of the highest bin. The result is exact except
// for digits below the lowest bin.
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
