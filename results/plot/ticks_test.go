package plot

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"pgregory.net/rapid"
)

// written returns the numbers that a logarithmic axis has, and where they are.
func written(lo, hi float64) (labels []string, at []float64) {
	for _, tick := range (decades{}).Ticks(lo, hi) {
		if tick.Label != "" {
			labels, at = append(labels, tick.Label), append(at, tick.Value)
		}
	}
	return labels, at
}

func TestNumbersOfShortLogarithmicAxes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		lo, hi float64
		want   string
	}{
		{"two decades", 1, 100, "1 10 100"},
		{"less than two", 9, 110, "10 20 50 100"},
		{"one, between two powers", 2.1e7, 1.9e8, "3e7 5e7 7e7 1e8"},
		{"half of one about a power", 6, 24, "7 10 20"},
		{"half of one after a power", 1024, 4096, "2000 3000 4000"},
		{"two whole multiples", 1.5, 3.5, "1.5 2.0 2.5 3.0 3.5"},
		{"one whole multiple", 1100, 2000, "1200 1400 1600 1800 2000"},
		{"none", 1.1, 1.9, "1.2 1.4 1.6 1.8"},
		{"a tenth about a power", 0.95, 1.05, "0.96 0.98 1.00 1.02 1.04"},
		{"a hundredth", 100.2, 101.3, "100.2 100.4 100.6 100.8 101.0 101.2"},
		{"small numbers", 3e-6, 4e-6, "3.0e−6 3.2e−6 3.4e−6 3.6e−6 3.8e−6 4.0e−6"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if labels, _ := written(tc.lo, tc.hi); strings.Join(labels, " ") != tc.want {
				t.Errorf("numbers %v, want %s", labels, tc.want)
			}
		})
	}
}

// Whatever its range, from that which one point gets, a logarithmic axis of less than two decades has at least three numbers,
// which differ, lie on it and are not too close to each other to be read.
func TestShortLogarithmicAxesCanBeRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, width := rapid.Float64Range(-30, 30).Draw(t, "first"), rapid.Float64Range(math.Log10(1.01), 2).Draw(t, "width")
		lo, hi := math.Pow(10, first), math.Pow(10, first+width)
		labels, at := written(lo, hi)
		if len(at) < 3 {
			t.Fatalf("from %v to %v: numbers %v", lo, hi, labels)
		}
		for i := range at {
			if at[i] < lo*(1-1e-9) || at[i] > hi*(1+1e-9) {
				t.Fatalf("%v is not on an axis from %v to %v", at[i], lo, hi)
			}
			if i > 0 && (labels[i] == labels[i-1] || math.Log10(at[i]/at[i-1]) < 0.07*width) {
				t.Fatalf("from %v to %v: %s next to %s", lo, hi, labels[i-1], labels[i])
			}
		}
	})
}

// An axis of bytes has two to seven labels, at whole powers of two.
func TestLabelsOfBytes(t *testing.T) {
	for hi, want := range map[float64]string{
		1024:    "128 B 256 B 512 B 1 KiB",
		8 << 20: "1 KiB 32 KiB 1 MiB",
		1 << 62: "1 KiB 1 MiB 1 GiB 1 TiB 1 PiB 1 EiB",
	} {
		var labels []string
		for _, tick := range (binaries{}).Ticks(128, hi) {
			labels = append(labels, tick.Label)
		}
		if strings.Join(labels, " ") != want {
			t.Errorf("to %v: %v, want %s", hi, labels, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values span
		n      int
		want   string
	}{
		{"unit", span{0, 1}, 5, "0 0.2 0.4 0.6 0.8 1.0"},
		{"just inside", span{0.0077, 0.9923}, 5, "0.2 0.4 0.6 0.8"},
		{"ends rounded", span{0.1 + 0.2, 0.8 + 1e-12}, 5, "0.3 0.4 0.5 0.6 0.7 0.8"},
		{"around zero", span{-3, 3}, 3, "−2 0 2"},
		{"small", span{0, 3e-7}, 3, "0 1e−7 2e−7 3e−7"},
		{"large", span{0, 1.5e6}, 3, "0 5e5 1.0e6 1.5e6"},
		{"large and close", span{99998, 100002}, 4, "99998 99999 100000 100001 100002"},
		{"constant", span{3.5, 3.5}, 5, "3.5"},
		{"constant zero", span{0, 0}, 5, "0"},
		{"all floats", span{-math.MaxFloat64, math.MaxFloat64}, 5, "−1.798e308 1.798e308"},
		{"denormal", span{0, math.SmallestNonzeroFloat64}, 5, "0 4.941e−324"},
		{"neighbors", span{1, math.Nextafter(1, 2)}, 2, "1.0000000000000000 1.0000000000000002"},
		{"empty", span{math.Inf(1), math.Inf(-1)}, 5, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var labels []string
			for _, tick := range tc.values.ticks(tc.n) {
				labels = append(labels, tick.Label)
			}
			if got := strings.Join(labels, " "); got != tc.want {
				t.Errorf("ticks %s, want %s", got, tc.want)
			}
		})
	}
}

// Whatever the span, zeros, denormal numbers and equal ends too, ticks are few, on it and in order.
func TestTicksAreFew(t *testing.T) {
	tiny, huge := math.SmallestNonzeroFloat64, math.MaxFloat64
	ends := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, tiny, 1e-310, 1, 1e300, huge, -huge}))
	rapid.Check(t, func(t *rapid.T) {
		a, b := ends.Draw(t, "a"), ends.Draw(t, "b")
		n := rapid.IntRange(1, 12).Draw(t, "n")
		check := func(lo, hi float64, ticks []plot.Tick, most int) {
			written, last := 0, lo
			for _, tick := range ticks {
				if !(tick.Value >= last && tick.Value <= hi*(1+1e-9)) {
					t.Fatalf("tick %q at %g, want it between %g and %g", tick.Label, tick.Value, last, hi)
				}
				if last = tick.Value * (1 - 1e-9); tick.Label != "" {
					written++
				}
			}
			if written > most || len(ticks) > 120 {
				t.Fatalf("%d of %d ticks from %g to %g have numbers", written, len(ticks), lo, hi)
			}
		}
		lo, hi := min(a, b), max(a, b)
		check(0, 1, span{lo, hi}.ticks(n), n+2)
		if lo > 0 {
			axis := plot.Axis{Min: lo, Max: hi}
			widen(&axis)
			check(axis.Min*(1-1e-9), axis.Max, decades{}.Ticks(axis.Min, axis.Max), 24)
			check(axis.Min*(1-1e-9), axis.Max, binaries{}.Ticks(axis.Min, axis.Max), 24)
		}
	})
}
