package plot

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// places marks an axis at these numbers.
type places []float64

// Ticks implements plot.Ticker.
func (p places) Ticks(lo, hi float64) (all []plot.Tick) {
	for _, v := range p {
		if v >= lo && v <= hi {
			all = append(all, plot.Tick{Value: v, Label: typeset(strconv.FormatFloat(v, 'g', 6, 64))})
		}
	}
	return all
}

// binaries marks a logarithmic axis at powers of two, every first, second, fifth or tenth of
// them, 1 KiB among them, so that labels do not touch. Where fewer than two lie on it, it marks it as decades do.
type binaries struct {
	width func(label string) float64 // as a part of the axis; nil where its length is not known yet
}

// Ticks implements plot.Ticker.
func (b binaries) Ticks(lo, hi float64) []plot.Tick {
	const most, reach = 8, 1e-9 // what rounding may take
	first, last := math.Ceil(math.Log2(lo)-reach), math.Floor(math.Log2(hi)+reach)
	if last <= first {
		return decades{}.Ticks(lo, hi)
	}
	var all []plot.Tick
	for _, step := range []float64{1, 2, 5, 10, 20} {
		all = nil
		for e := step * math.Ceil(first/step); e <= last; e += step {
			all = append(all, plot.Tick{Value: math.Pow(2, e), Label: sized(math.Pow(2, e))})
		}
		if len(all) <= most && b.legible(all, step/math.Log2(hi/lo)) {
			break
		}
	}
	return all
}

// legible reports whether labels leave gaps between each other, half as wide as a digit, where they are so far apart.
func (b binaries) legible(ticks []plot.Tick, apart float64) bool {
	for i := 1; i < len(ticks) && b.width != nil; i++ {
		if half := (b.width(ticks[i-1].Label) + b.width(ticks[i].Label)) / 2; half+b.width("0")/2 > apart {
			return false
		}
	}
	return true
}

// sized writes a number of bytes that is a power of two.
func sized(v float64) string {
	unit := 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for ; v >= 1024 && unit < len(units)-1; unit++ {
		v /= 1024
	}
	return typeset(strconv.FormatFloat(v, 'g', 6, 64)) + " " + units[unit]
}

// steps marks a linear axis at round numbers, or at whole ones alone.
type steps struct{ whole bool }

// Ticks implements plot.Ticker.
func (m steps) Ticks(lo, hi float64) []plot.Tick {
	n := 6
	if m.whole {
		n = max(1, min(n, int(hi-lo)))
	}
	return roundTicks(lo, hi, n)
}

// roundTicks marks about n round numbers from lo to hi, equally far apart.
func roundTicks(lo, hi float64, n int) (all []plot.Tick) {
	for _, t := range (span{lo, hi}).ticks(n, 0) {
		all = append(all, plot.Tick{Value: lo + t.at*(hi-lo), Label: t.label})
	}
	return all
}

// decades marks a logarithmic axis at powers of ten. Where fewer than three of
// them lie on it, it writes the numbers at 2 and 5 times them too; where fewer than
// three of all those do, also at 3 and 7 times, and then at all whole multiples; and
// where fewer than three of these do, it marks the axis, which is all but linear over
// so short a range, at round numbers equally far apart.
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

// decadeTicks marks the whole multiples of the powers of ten from lo to hi. It
// returns too how many have their number written.
func decadeTicks(lo, hi float64, written ...int) (ticks []plot.Tick, n int) {
	const reach = 1e-9 // what rounding may take
	for e := math.Floor(math.Log10(lo)); math.Pow(10, e) <= hi; e++ {
		for i := 1; i < 10; i++ {
			tick := plot.Tick{Value: float64(i) * math.Pow(10, e)}
			if tick.Value < lo*(1-reach) || tick.Value > hi*(1+reach) {
				continue
			}
			if slices.Contains(written, i) {
				tick.Label = typeset(strconv.FormatFloat(tick.Value, 'g', 5, 64))
				n++
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks, n
}
