package plot

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values span
		n      int
		reach  float64
		want   string
	}{
		{"unit", span{0, 1}, 5, 0, "0 0.2 0.4 0.6 0.8 1.0"},
		{"walls just outside", span{0.002, 0.998}, 5, 0.002, "0 0.2 0.4 0.6 0.8 1.0"},
		{"walls out of reach", span{0.1, 0.9}, 5, 0.05, "0.2 0.4 0.6 0.8"},
		{"around zero", span{-3, 3}, 3, 0, "−2 0 2"},
		{"small", span{0, 3e-7}, 3, 0, "0 1e−7 2e−7 3e−7"},
		{"large", span{0, 1.5e6}, 3, 0, "0 5e5 1.0e6 1.5e6"},
		{"large and close", span{99998, 100002}, 4, 0, "99998 99999 100000 100001 100002"},
		{"constant", span{3.5, 3.5}, 5, 0, "3.5"},
		{"constant zero", span{0, 0}, 5, 0, "0"},
		{"all floats", span{-math.MaxFloat64, math.MaxFloat64}, 5, 0, "−1.798e308 1.798e308"},
		{"denormal", span{0, math.SmallestNonzeroFloat64}, 5, 0, "0 4.941e−324"},
		{"neighbours", span{1, math.Nextafter(1, 2)}, 2, 0, "1.0000000000000000 1.0000000000000002"},
		{"empty", span{math.Inf(1), math.Inf(-1)}, 5, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var labels []string
			for _, tick := range tc.values.ticks(tc.n, tc.reach) {
				labels = append(labels, tick.label)
			}
			if got := strings.Join(labels, " "); got != tc.want {
				t.Errorf("ticks %s, want %s", got, tc.want)
			}
		})
	}
}

// Whatever the span, ticks are few, on it and in order.
func TestTicksStayOnTheAxis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64().Draw(t, "a"), rapid.Float64().Draw(t, "b")
		n := rapid.IntRange(1, 12).Draw(t, "n")
		last := 0.0
		marks := span{min(a, b), max(a, b)}.ticks(n, 0)
		if len(marks) > n+2 {
			t.Fatalf("%d ticks, asked for %d", len(marks), n)
		}
		for _, mark := range marks {
			if !(mark.at >= last && mark.at <= 1) {
				t.Fatalf("tick %q at %g, want it between %g and 1", mark.label, mark.at, last)
			}
			last = mark.at
		}
	})
}
