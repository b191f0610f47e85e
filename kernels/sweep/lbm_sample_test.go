package sweep

import (
	"os"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
)

// lbmSource is the source of examples/lbm.
const lbmSource = "../../examples/lbm/lbm.cu"

// lbmSample is the step of examples/lbm, for 192 points between the walls: 38 arrays, for which registers are scarce. Its
// Go counterpart is tested there. The test is skipped where the source is not.
func lbmSample(t *testing.T) sample {
	t.Helper()
	type parameters struct {
		NY           int64
		Omega, Force float64
	}
	var from []stencil.Footprint
	for _, c := range []domain.Vec{
		{}, {1}, {-1}, {0, 1}, {0, -1}, {0, 0, 1}, {0, 0, -1}, {1, 1}, {-1, -1}, {1, -1}, {-1, 1},
		{1, 0, 1}, {-1, 0, -1}, {1, 0, -1}, {-1, 0, 1}, {0, 1, 1}, {0, -1, -1}, {0, 1, -1}, {0, -1, 1},
	} {
		from = append(from, stencil.Offsets(domain.Vec{}, domain.Vec{}.Sub(c)))
	}
	return sample{
		Point{Name: "lbm", Dims: 3, CUDA: string(readSource(t, lbmSource)), File: "lbm.cu", Parameters: parameters{192, 1.07, 1e-6}},
		[]Access{
			{Name: "f", Element: "float64", Components: 19, Footprints: from, Sparse: true},
			{Name: "next", Element: "float64", Components: 19, Write: true},
		},
	}
}

// compiledSamples are those that the compiler is to keep in registers, without that of examples/lbm where its source is
// not: beside test programs on other machines.
func compiledSamples(t *testing.T) []sample {
	t.Helper()
	if _, err := os.Stat(lbmSource); err != nil {
		t.Log("without lbm: ", err)
		return samples()
	}
	return append(samples(), lbmSample(t))
}
