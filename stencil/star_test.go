package stencil

import (
	"math"
	"testing"

	"github.com/halox/halox/internal/test"
)

func TestStarsKeepAConstant(t *testing.T) {
	for _, c := range []struct {
		name    string
		spacing []float64
		equal   bool
	}{
		{"plane", []float64{0.1, 0.1}, true},
		{"stretched plane", []float64{0.1, 0.3}, false},
		{"cube", []float64{0.25, 0.25, 0.25}, true},
		{"stretched cube", []float64{0.1, 0.2, 0.4}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			laplace := test.Must(Laplace(c.spacing))(t)
			heat := test.Must(Heat(c.spacing, 2, 1e-3))(t)
			for _, s := range []StarWeights{laplace, heat} {
				total := s.Center + 2*(s.Axis[0]+s.Axis[1]+s.Axis[2])
				if math.Abs(total-1) > 1e-15 || s.Equal != c.equal {
					t.Errorf("%+v: sum of the weights: got %v, want 1", s, total)
				}
			}
			if want := 2 * 1e-3 / (c.spacing[1] * c.spacing[1]); heat.Axis[1] != want {
				t.Errorf("weight of y: got %v, want %v", heat.Axis[1], want)
			}
		})
	}
}

func TestStarErrors(t *testing.T) {
	for _, h := range [][]float64{nil, {1, 1, 1, 1}, {1, 0}, {1, -1}, {1, math.NaN()}, {1, math.Inf(1)}, {1, 1e-200}} {
		if _, err := Laplace(h); err == nil {
			t.Errorf("spacing %v: got no error", h)
		}
	}
	for _, v := range [][2]float64{{0, 1}, {1, 0}, {-1, 1}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if _, err := Heat([]float64{1, 1}, v[0], v[1]); err == nil {
			t.Errorf("diffusivity %v, step %v: got no error", v[0], v[1])
		}
	}
}
