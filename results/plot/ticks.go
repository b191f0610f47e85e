package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// A span is a range of numbers, including its ends; it is empty if lo > hi.
type span struct{ lo, hi float64 }

func (s span) empty() bool { return s.lo > s.hi }

// fraction is the position of v from lo (0) to hi (1); the middle if both are equal.
func (s span) fraction(v float64) float64 {
	switch length := s.hi - s.lo; {
	case length == 0:
		return 0.5
	case math.IsInf(length, 0):
		return (v/2 - s.lo/2) / (s.hi/2 - s.lo/2)
	default:
		return (v - s.lo) / length
	}
}

// A Range is a range of values. An end that is NaN is that of the values drawn.
type Range struct {
	Lo float64 // the lower end
	Hi float64 // the upper end, above Lo
}

// Join returns a range that covers two, to draw several fields alike. NaN ends of either are left out.
func (r Range) Join(other Range) Range {
	return Range{lesser(r.Lo, other.Lo), -lesser(-r.Hi, -other.Hi)}
}

// Or returns the range with its NaN ends replaced by those of another.
func (r Range) Or(other Range) Range {
	if math.IsNaN(r.Lo) {
		r.Lo = other.Lo
	}
	if math.IsNaN(r.Hi) {
		r.Hi = other.Hi
	}
	return r
}

func (r *Range) check() error {
	if r != nil && (math.IsInf(r.Hi-r.Lo, 0) || r.Lo >= r.Hi) {
		return fmt.Errorf("the range must be finite and ascending, got %g to %g", r.Lo, r.Hi)
	}
	return nil
}

// lesser returns the lesser of two numbers that is not NaN.
func lesser(a, b float64) float64 {
	if a < b || math.IsNaN(b) {
		return a
	}
	return b
}

// linearScale and logScale map numbers to axes of any finite range: those of gonum overflow.
type (
	linearScale struct{}
	logScale    struct{}
)

// Normalize implements [plot.Normalizer].
func (linearScale) Normalize(lo, hi, v float64) float64 { return span{lo, hi}.fraction(v) }

// Normalize implements [plot.Normalizer].
func (logScale) Normalize(lo, hi, v float64) float64 {
	return span{math.Log(lo), math.Log(hi)}.fraction(math.Log(v))
}

// wide reports whether numbers are better shown on a logarithmic axis.
func (s span) wide(times float64) bool { return s.lo > 0 && s.hi/s.lo >= times }

// ticks marks about n round numbers on a span, each at its fraction.
func (s span) ticks(n int) []plot.Tick {
	length := s.hi - s.lo
	reach := 1e-9 * length // tolerance for rounding
	if s.empty() {
		return nil
	}
	if length < 1e-300 || length > 1e300 {
		return s.endTicks()
	}
	step := roundStep(length / float64(n))
	first := math.Ceil((s.lo - reach) / step)
	count := int(math.Floor((s.hi+reach)/step) - first)
	var marks []plot.Tick
	for i := 0; i <= count; i++ {
		v := (first + float64(i)) * step
		at := min(max(0, s.fraction(v)), 1)
		marks = append(marks, plot.Tick{Value: at, Label: s.label(v, step)})
	}
	return marks
}

// endTicks marks the ends of a span that is too small or too large for a step, or its middle if the ends are
// equal.
func (s span) endTicks() []plot.Tick {
	label := func(v float64) string { return typeset(strconv.FormatFloat(v, 'g', 4, 64)) }
	if s.lo == s.hi {
		return []plot.Tick{{Value: 0.5, Label: label(s.lo)}}
	}
	return []plot.Tick{{Value: 0, Label: label(s.lo)}, {Value: 1, Label: label(s.hi)}}
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

// label formats v with the digits that distinguish it from its neighbors a step away, with an exponent if the
// numbers are very large or small and that is shorter.
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

// binaries marks a logarithmic axis at equally spaced powers of two that include 1 KiB, at most seven of
// them. If fewer than two are on the axis, or some are larger than any memory, it marks the axis like
// decades.
type binaries struct{}

// Ticks implements [plot.Ticker].
func (binaries) Ticks(lo, hi float64) (all []plot.Tick) {
	const most, reach = 7, 1e-9 // tolerance for rounding
	first, last := math.Ceil(math.Log2(lo)-reach), math.Floor(math.Log2(hi)+reach)
	if last <= first || first < -70 || last > 70 {
		return decades{}.Ticks(lo, hi)
	}
	steps := []float64{1, 2, 5, 10, 20}
	for len(steps) > 1 && math.Floor(last/steps[0])-math.Ceil(first/steps[0]) >= most {
		steps = steps[1:]
	}
	step := steps[0]
	for e := step * math.Ceil(first/step); e <= last; e += step {
		all = append(all, plot.Tick{Value: math.Pow(2, e), Label: sized(math.Pow(2, e))})
	}
	return all
}

// sized formats a number of bytes that is a power of two.
func sized(v float64) string {
	unit := 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for ; v >= 1024 && unit < len(units)-1; unit++ {
		v /= 1024
	}
	return typeset(strconv.FormatFloat(v, 'g', 6, 64)) + " " + units[unit]
}

// steps marks a linear axis at round numbers, or only at integers.
type steps struct{ whole bool }

// Ticks implements plot.Ticker.
func (m steps) Ticks(lo, hi float64) []plot.Tick {
	n := 6
	if m.whole {
		n = max(1, min(n, int(hi-lo)))
	}
	return roundTicks(lo, hi, n)
}

// roundTicks marks about n equally spaced round numbers from lo to hi.
func roundTicks(lo, hi float64, n int) (all []plot.Tick) {
	for _, t := range (span{lo, hi}).ticks(n) {
		all = append(all, plot.Tick{Value: lo*(1-t.Value) + hi*t.Value, Label: t.Label})
	}
	return all
}

// decades marks a logarithmic axis at powers of ten, at most ten of them. If fewer than three are on it, it
// also writes the numbers at 2 and 5 times them; if fewer than three of all those are, also at 3 and 7 times,
// and then at all integer multiples; and if fewer than three of these are, it marks the axis, which is almost
// linear over such a short range, at equally spaced round numbers.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(lo, hi float64) []plot.Tick {
	const least = 3
	for _, written := range [][]int{{1}, {1, 2, 5}, {1, 2, 3, 5, 7}, {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		if ticks, n := decadeTicks(lo, hi, written...); n >= least {
			return ticks
		}
	}
	if few := roundTicks(lo, hi, 5); len(few) >= least {
		return few
	}
	return roundTicks(lo, hi, 8) // 1, 2 or 5 times a power of ten is at most 2.5 times too long
}

// decadeTicks marks the integer multiples of the powers of ten from lo to hi or, for many powers, only some
// of these. It also returns the number of ticks with a number.
func decadeTicks(lo, hi float64, written ...int) (ticks []plot.Tick, n int) {
	const reach = 1e-9 // tolerance for rounding
	const most = 10
	first, last := math.Floor(math.Log10(lo)), math.Floor(math.Log10(hi)+reach)
	step, multiples := 1+math.Floor((last-first)/most), 9
	if step > 1 {
		first, multiples = step*math.Ceil(first/step), 1
	}
	for e := first; e <= last; e += step {
		for i := range multiples {
			tick := plot.Tick{Value: float64(i+1) * math.Pow(10, e)}
			if tick.Value < lo*(1-reach) || tick.Value > hi*(1+reach) {
				continue
			}
			if slices.Contains(written, i+1) {
				tick.Label = typeset(strconv.FormatFloat(tick.Value, 'g', 5, 64))
				n++
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks, n
}
