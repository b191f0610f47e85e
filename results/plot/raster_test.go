package plot

import (
	"math"
	"slices"
	"testing"
)

func TestRaster(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name          string
		nx, ny        int
		values        []float64
		width, height int
		want          []float64
		span          span
	}{
		{"a point a pixel", 2, 2, []float64{1, 2, 3, 4}, 2, 2, []float64{1, 2, 3, 4}, span{1, 4}},
		{"points larger than pixels", 2, 1, []float64{1, 2}, 5, 2, []float64{1, 1, 1, 2, 2, 1, 1, 1, 2, 2}, span{1, 2}},
		{"blocks averaged", 4, 2, []float64{0, 1, 2, 4, 2, 1, 2, 0}, 2, 1, []float64{1, 2}, span{0, 4}},
		{"uneven blocks", 5, 1, []float64{1, 3, 5, 7, 9}, 2, 1, []float64{2, 7}, span{1, 9}},
		{"averaged one way only", 2, 2, []float64{1, 3, 5, 7}, 4, 1, []float64{3, 3, 5, 5}, span{1, 7}},
		{"a hole spoils its pixel", 4, 1, []float64{1, nan, 3, 5}, 2, 1, []float64{nan, 4}, span{1, 5}},
		{"infinite is a hole", 2, 1, []float64{math.Inf(1), 3}, 2, 1, []float64{nan, 3}, span{3, 3}},
		{"sums that overflow", 2, 1, []float64{math.MaxFloat64, math.MaxFloat64}, 1, 1,
			[]float64{math.MaxFloat64}, span{math.MaxFloat64, math.MaxFloat64}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			picture := Picture{NX: tc.nx, NY: tc.ny, Values: tc.values}
			got := newRaster(&picture, tc.width, tc.height)
			if !slices.EqualFunc(got.means, tc.want, same) {
				t.Errorf("means %v, want %v", got.means, tc.want)
			}
			if got.values != tc.span {
				t.Errorf("values span %v, want %v", got.values, tc.span)
			}
			if holes := slices.ContainsFunc(tc.want, math.IsNaN); got.holes != holes {
				t.Errorf("holes is %t, want %t", got.holes, holes)
			}
		})
	}
}

// same is equality for which NaN is itself.
func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// The scale runs from dark to light without a step back, and through no grey.
func TestViridis(t *testing.T) {
	colors := viridis(256)
	last := -1.0
	for i, c := range colors {
		light := 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
		if light < last {
			t.Errorf("colour %d has lightness %g, after %g", i, light, last)
		}
		last = light
		if spread := max(c.R, c.G, c.B) - min(c.R, c.G, c.B); spread < 32 {
			t.Errorf("colour %d, %v, is nearly grey", i, c)
		}
	}
}

// linear is the intensity of an sRGB shade, from 0 to 1.
func linear(shade uint8) float64 { return math.Pow(float64(shade)/255, 2.2) }
