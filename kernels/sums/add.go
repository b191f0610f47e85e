package sums

import "math"

// atOnce is how many terms are added before bins of 64 bits may overflow.
const atOnce = 1 << 22

const (
	mantissaBits = 52
	exponentMask = 0x7ff
	signBit      = 1 << 63
	binMask      = 1<<binBits - 1
)

// Add adds terms.
func (s *Sum) Add(terms []float64) {
	for len(terms) > atOnce {
		s.Add(terms[:atOnce])
		terms = terms[atOnce:]
	}
	largest := uint64(0)
	for _, x := range terms {
		largest = max(largest, math.Float64bits(x)&^signBit)
	}
	s.raise(windowOf(largest))
	if s.window == notFinite {
		s.count(terms)
		return
	}
	for i, sum := range binned(terms, int(s.window)) {
		s.add(i, uint64(sum), int16(sum>>63))
	}
}

// windowOf returns the window of a sum whose largest term has such bits.
func windowOf(largest uint64) int16 {
	const lowest = binCount*binBits - 1074 + 1023 // the exponent of what is too large for window 0
	exponent := int(largest >> mantissaBits)
	if exponent == exponentMask {
		return notFinite
	}
	return int16(max(0, exponent-lowest+binBits) / binBits)
}

// binned returns the sums of the digits of the terms in each bin of a window.
func binned(terms []float64, window int) [binCount]int64 {
	var b0, b1, b2 int64
	for _, x := range terms {
		bits := math.Float64bits(x)
		exponent, m := int(bits>>mantissaBits)&exponentMask, bits&(1<<mantissaBits-1)
		if exponent > 0 {
			m |= 1 << mantissaBits
			exponent--
		}
		// The term is m 2^at units of the lowest bin. Shifts by more than 63, also by a negative number made
		// unsigned, leave 0.
		at := exponent - binBits*window
		d0 := int64((m<<uint(at) | m>>uint(-at)) & binMask)
		d1 := int64((m<<uint(at-binBits) | m>>uint(binBits-at)) & binMask)
		d2 := int64(m >> uint(2*binBits-at))
		sign := int64(bits) >> 63
		b0 += d0 ^ sign - sign
		b1 += d1 ^ sign - sign
		b2 += d2 ^ sign - sign
	}
	return [binCount]int64{b0, b1, b2}
}

// count counts the terms that are not finite.
func (s *Sum) count(terms []float64) {
	for _, x := range terms {
		switch {
		case math.IsNaN(x):
			s.add(0, 1, 0)
		case math.IsInf(x, -1):
			s.add(1, 1, 0)
		case math.IsInf(x, 1):
			s.add(2, 1, 0)
		}
	}
}
