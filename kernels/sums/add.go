package sums

import (
	"math"
)

// atOnce is the number of terms added before lanes may overflow the digits of a bin.
const atOnce = 1 << 15

// add adds terms.
func (s *Sum) add(terms []float64) {
	largest := uint64(0)
	for _, x := range terms {
		largest = max(largest, math.Float64bits(x)&^(1<<63))
	}
	s.AddUpTo(terms, math.Float64frombits(largest))
}

// AddUpTo adds terms whose largest magnitude is given; NaN if one is NaN.
func (s *Sum) AddUpTo(terms []float64, largest float64) { s.addBy(assembly, terms, largest) }

func (s *Sum) addBy(assembly bool, terms []float64, largest float64) {
	s.raise(windowOf(math.Float64bits(largest) &^ (1 << 63)))
	if s.window == notFinite {
		s.count(terms)
		return
	}
	for unit := unit(int(s.window)); len(terms) > 0; {
		var l lanes
		some := min(len(terms), atOnce)
		bin(assembly, &l, terms[:some], unit)
		for i := range l {
			var sum int64
			for _, digits := range l[i] {
				sum += int64(digits)
			}
			s.addBin(i, uint64(sum), int16(sum>>63))
		}
		terms = terms[some:]
	}
}

// windowOf returns the window of a sum whose largest term has the given bits.
func windowOf(largest uint64) int16 {
	const exponentOfNone, tooLarge = 0x7ff, binCount*binBits - 1074 + 1023 // for window 0
	exponent := int(largest >> 52)
	if exponent == exponentOfNone {
		return notFinite
	}
	return int16(max(0, exponent-tooLarge+binBits) / binBits)
}

// unit returns 1 over the unit of the highest bin of a window.
func unit(window int) float64 { return math.Ldexp(1, 1074-binBits*(window+binCount-1)) }

// count counts the non-finite terms.
func (s *Sum) count(terms []float64) {
	for _, x := range terms {
		switch {
		case math.IsNaN(x):
			s.addBin(0, 1, 0)
		case math.IsInf(x, -1):
			s.addBin(1, 1, 0)
		case math.IsInf(x, 1):
			s.addBin(2, 1, 0)
		}
	}
}

// Mode selects how sums are computed.
type Mode string

// The modes. Reproducible sums are described in the package doc. Fast sums depend on the order of the sweeps; they
// cost less. The empty mode is Reproducible.
const (
	Reproducible Mode = "reproducible"
	Fast         Mode = "fast"
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Reproducible, Fast} }

// Defines returns the build options of kernels that include sums.cuh.
func (m Mode) Defines() []string {
	if m == Fast {
		return []string{"FAST_SUMS"}
	}
	return nil
}

// Add adds terms to a sum. All additions to a sum must use the same mode.
func (m Mode) Add(s *Sum, terms []float64) {
	if m != Fast {
		s.add(terms)
		return
	}
	total := 0.0
	for _, x := range terms {
		total += x
	}
	s.Join(Plain(total))
}
