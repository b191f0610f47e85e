package plot

import (
	"math"
	"strings"
	"testing"

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
		{"small numbers", 3e-6, 4e-6, "3.2e−6 3.4e−6 3.6e−6 3.8e−6 4.0e−6"},
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
				t.Fatalf("from %v to %v: %s beside %s", lo, hi, labels[i-1], labels[i])
			}
		}
	})
}

// The labels of bytes leave gaps between each other on a short axis, and there are as many on a long one as before.
func TestLabelsOfBytesDoNotTouch(t *testing.T) {
	for _, tc := range []struct {
		letters float64
		want    string
	}{
		{0, "256 B 1 KiB 4 KiB 16 KiB 64 KiB 256 KiB 1 MiB 4 MiB"},
		{90, "256 B 1 KiB 4 KiB 16 KiB 64 KiB 256 KiB 1 MiB 4 MiB"},
		{52, "1 KiB 32 KiB 1 MiB"},
		{16, "1 KiB 1 MiB"},
	} {
		var labels []string
		b := binaries{func(label string) float64 { return float64(len(label)) / tc.letters }}
		if tc.letters == 0 {
			b.width = nil
		}
		for _, tick := range b.Ticks(128, 8<<20) {
			labels = append(labels, tick.Label)
		}
		if strings.Join(labels, " ") != tc.want {
			t.Errorf("%v letters: %v, want %s", tc.letters, labels, tc.want)
		}
	}
}
