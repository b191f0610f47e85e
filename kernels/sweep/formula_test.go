package sweep

import (
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/stencil"
)

// formulas are texts in which every operation with equal bits on all backends occurs, and every operator.
var formulas = map[int][]string{
	2: {
		"u + 0.1*lap(u) - u*v^2 + 0.03*(1 - u)", "a*(u - 1)/(v + 0.25)", "dx(u)*dy(v) - grad2(u*v)",
		"dxx(u) + dyy(v) - dxy(u)", "div(1 + x*v, u) + div(v, u, harmonic)", "upwind(v - 1, 1 - u, v)",
		"at(u, 1, -1) - at(v, -2, 0) + lap(lap(u))", "u^3 + v^-5 + (u*v)^16 + u^0.5 + (u - 1)^0 + (2*v)^1",
		"if u < v and not (v < 1 or u == 1) { sqrt(u) } else { abs(v - 1) }", "u <= v ? min(u, v, 1) : max(u - 1, v - 1)",
		"(u > 1 ? v >= 1 : u != v) ? floor(3*u) : ceil(-3*v)", "mod(u, v - 1) + round(2.5*u) + sign(v - 1)",
		"sin(x)*u + exp(y)*at(v, 0, 1) + (x < 0.4 ? 1 : -1)", "x < 0.4 and u > 1 ? u : -v", "3", "v", "-u % 0.3", "u",
		"sqrt(u - 1) < 1 ? max(v, sqrt(v - 1)) : min(sqrt(v - 1), v)", "upwind(x, 0.5, lap(v)) + noisy",
		"t*u + 3*step + dt", "t > 0.1 and b > 1 ? u : v", "b/3*u - noise(3) + at(noise(9000000000), -1, 2)", "sqrt(b)",
	},
	3: {
		"lap(u) + dz(v) - dzz(u*v)", "dyz(u) + dxz(v) - dxy(u)", "div(v, u) + upwind(1, -1, v - 1, u)",
		"grad2(u) + at(v, 0, 0, -1) + z*u", "k < 3 ? u : v", "u", "div(exp(y), u) + div(sin(y*z), v)", "(z - t)*u + noise(1)",
	},
}

// newFormula returns a sample with the formulas of so many dimensions.
func newFormula(t testing.TB, dims int, real domain.Element, spacing [3]float64) sample {
	s := stencil.NewSheet(dims, stencil.Coordinates{Spacing: spacing, Size: [3]int{40, 30, 20}})
	test.Check(t, s.Number("a", 1.0/3))
	test.Check(t, s.Variable("b", 1.5))
	test.Check(t, s.Let("noisy", "noise(7) + j", true))
	names := []string{"u", "v"}
	for i := len(names); i < len(formulas[dims]); i++ {
		names = append(names, fmt.Sprintf("other%d", i))
	}
	for _, name := range names {
		test.Check(t, s.Field(name))
	}
	var all []int
	for _, text := range formulas[dims] {
		all = append(all, test.Must(s.Formula(text))(t))
	}
	form := s.Form(all...)
	form.Stage = 3
	test.Check(t, CheckFormula(form, real))
	p, reads, results := Formula(form, dims, real)
	values := NewValues(form, real, stencil.Coordinates{}, 0.5)
	p.Parameters = values.Parameters(map[string]float64{"b": 1.5})
	test.Check(t, values.Give(Moment{Step: 7, Length: 0.3}, p.Parameters))
	return sample{p, slices.Concat(reads, results)}
}

// The CUDA text of formulas and package kernels/rows give the same bits.
func TestFormulasGiveOneAnswer(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, set *testdevices.Set) {
		if set.Devices[0].GoKernels {
			t.Skip("SKIPPED: the kernels that are compared run on GPUs, real or not")
		}
		for _, real := range []domain.Element{domain.Float64, domain.Float32} {
			t.Run(string(real), func(t *testing.T) {
				checkSample(t, set, newFormula(t, 2, real, [3]float64{0.25, 0.25, 0.25}))
			})
		}
		t.Run("3 dimensions", func(t *testing.T) {
			checkSample(t, set, newFormula(t, 3, domain.Float64, [3]float64{0.25, 0.5, 0.125}))
		})
	})
}
