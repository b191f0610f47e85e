package plot

import (
	"math"
	"strconv"
	"strings"
)

// A tick is a mark on an axis: a fraction of the way along it, and a number.
type tick struct {
	at    float64 // 0 to 1
	label string
}

// ticks marks about n round numbers on a span. A round number that lies outside
// by no more than reach is marked at the end.
func (s span) ticks(n int, reach float64) []tick {
	length := s.hi - s.lo
	if s.empty() {
		return nil
	}
	if length < 1e-300 || length > 1e300 {
		return s.endTicks()
	}
	step := roundStep(length / float64(n))
	first := math.Ceil((s.lo - reach) / step)
	count := int(math.Floor((s.hi+reach)/step) - first)
	var marks []tick
	for i := 0; i <= count; i++ {
		v := (first + float64(i)) * step
		at := min(max(0, s.fraction(v)), 1)
		marks = append(marks, tick{at, s.label(v, step)})
	}
	return marks
}

// endTicks marks the ends of a span with too little or too much between them
// for a step, or its middle where the ends are one.
func (s span) endTicks() []tick {
	label := func(v float64) string { return typeset(strconv.FormatFloat(v, 'g', 4, 64)) }
	if s.lo == s.hi {
		return []tick{{0.5, label(s.lo)}}
	}
	return []tick{{0, label(s.lo)}, {1, label(s.hi)}}
}

// roundStep is the smallest of 1, 2, 5 times a power of ten that is at least v.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, digit := range []float64{1, 2, 5} {
		if step := digit * power; step >= v*(1-1e-9) {
			return step
		}
	}
	return 10 * power
}

// label writes v with the digits that tell it from its neighbours a step away,
// with an exponent where the numbers are very large or small and that is shorter.
func (s span) label(v, step float64) string {
	if math.Abs(v) < step/2 {
		return "0"
	}
	largest := max(math.Abs(s.lo), math.Abs(s.hi))
	long := exponent(largest)-exponent(step) > 3 && largest < 1e9
	if largest >= 1e-3 && (largest < 1e5 || long) {
		return typeset(strconv.FormatFloat(v, 'f', max(0, -exponent(step)), 64))
	}
	return typeset(strconv.FormatFloat(v, 'e', max(0, exponent(v)-exponent(step)), 64))
}

// exponent is the power of ten of the first digit of v.
func exponent(v float64) int { return int(math.Floor(math.Log10(math.Abs(v)) + 1e-9)) }

// typeset writes 2e-06 as 2e−6, with a minus sign instead of a hyphen.
func typeset(number string) string {
	if mantissa, power, found := strings.Cut(number, "e"); found {
		sign := strings.TrimLeft(power[:1], "+")
		number = mantissa + "e" + sign + strings.TrimLeft(power[1:], "0")
	}
	return strings.ReplaceAll(number, "-", "−")
}
