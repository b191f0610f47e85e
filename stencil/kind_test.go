package stencil_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/stencil"
)

// orderOf returns the order given in the documentation of Kind.
func orderOf(dims int, k stencil.Kind) float64 {
	if dims == 1 {
		return float64(k.Points - 1)
	}
	return orders[k]
}

var orders = map[stencil.Kind]float64{
	{Points: 5, Shape: stencil.StarShape}: 2, {Points: 9, Shape: stencil.BoxShape}: 2,
	{Points: 9, Shape: stencil.StarShape}: 4, {Points: 25, Shape: stencil.BoxShape}: 4,
	{Points: 7, Shape: stencil.StarShape}: 2, {Points: 13, Shape: stencil.StarShape}: 4,
	{Points: 19, Shape: stencil.BoxShape}: 2, {Points: 27, Shape: stencil.BoxShape}: 2,
}

// Each kind approximates the Laplacian to its order and has the number of points in its name. Its weights in a
// step of the heat equation sum to 1.
func TestKinds(t *testing.T) {
	for _, dims := range []int{1, 2, 3} {
		for _, kind := range stencil.Kinds(dims) {
			t.Run(fmt.Sprintf("dims=%d/%v", dims, kind), func(t *testing.T) {
				error1, error2 := laplacianError(t, kind, dims, 0.04), laplacianError(t, kind, dims, 0.02)
				if got := math.Log2(error1 / error2); math.Abs(got-orderOf(dims, kind)) > 0.1 {
					t.Errorf("order: got %v, want %v: errors %v, %v", got, orderOf(dims, kind), error1, error2)
				}
				s, err := stencil.LaplaceOf(kind, equalSpacing(dims, 0.5))
				if err != nil || s.Check() != nil || s.Points() != kind.Points {
					t.Fatalf("%d points: %v, %v", s.Points(), err, s.Check())
				}
				total := s.Center
				for _, g := range s.Groups {
					total += g.Weight * float64(len(g.Offsets()))
				}
				if math.Abs(total-1) > 1e-14 {
					t.Errorf("sum of the weights: got %v, want 1", total)
				}
				spacing := []float64{0.5, 0.25, 0.125}[:dims]
				if kind.Shape == stencil.BoxShape {
					spacing = equalSpacing(dims, 0.5)
				}
				s, err = stencil.HeatOf(kind, spacing, 3, 1e-3)
				if rate := s.Rate(spacing); err != nil || math.Abs(rate/3e-3-1) > 1e-12 {
					t.Errorf("a step of 0.001 with diffusivity 3 must add 0.003 times the Laplacian, got %v: %v", rate, err)
				}
			})
		}
	}
}

func equalSpacing(dims int, h float64) []float64 { return []float64{h, h, h}[:dims] }

// laplacianError applies the kind to a function whose Laplacian is known.
func laplacianError(t *testing.T, kind stencil.Kind, dims int, h float64) float64 {
	const dt = 1e-3
	s := test.Must(stencil.HeatOf(kind, equalSpacing(dims, h), 1, dt))(t)
	at := []float64{0.3, 0.4, 0.5}
	value := func(dx, dy, dz int) float64 {
		v := math.Sin(at[0]+float64(dx)*h) * math.Exp(0.7*(at[1]+float64(dy)*h))
		if dims == 3 {
			v *= math.Cos(1.3 * (at[2] + float64(dz)*h))
		}
		return v
	}
	sum := s.Center * value(0, 0, 0)
	for _, g := range s.Groups {
		for _, o := range g.Offsets() {
			sum += g.Weight * value(o[0], o[1], o[2])
		}
	}
	factor := []float64{-1, -1 + 0.49, -1 + 0.49 - 1.69}[dims-1]
	return math.Abs((sum-value(0, 0, 0))/dt - factor*value(0, 0, 0))
}

// Unknown kinds, and boxes on unequal spacings, are rejected.
func TestKindErrors(t *testing.T) {
	for _, c := range []struct {
		kind    stencil.Kind
		spacing []float64
	}{
		{stencil.Kind{Points: 27, Shape: stencil.BoxShape}, []float64{1, 1}},
		{stencil.Kind{Points: 27, Shape: stencil.StarShape}, []float64{1, 1, 1}},
		{stencil.Kind{Points: 19, Shape: stencil.BoxShape}, []float64{1, 1, 2}},
		{stencil.Kind{Points: 9, Shape: stencil.BoxShape}, []float64{1, 0}},
	} {
		if _, err := stencil.LaplaceOf(c.kind, c.spacing); err == nil {
			t.Errorf("%v on %v: got no error", c.kind, c.spacing)
		}
	}
}

// A star converts to a stencil and back.
func TestAsStar(t *testing.T) {
	for _, spacing := range [][]float64{{1, 1}, {1, 2}, {1, 1, 1}, {1, 2, 3}} {
		star := test.Must(stencil.Heat(spacing, 1, 0.01))(t)
		if back, ok := star.Stencil().AsStar(); !ok || back != star {
			t.Errorf("%+v: got %+v, %v", star, back, ok)
		}
		for _, kind := range stencil.Kinds(len(spacing))[1:] {
			if s, err := stencil.HeatOf(kind, spacing, 1, 0.01); err == nil {
				if _, ok := s.AsStar(); ok {
					t.Errorf("AsStar of %v: got false", kind)
				}
			}
		}
	}
}

// The reference page has the weights of every kind, as fractions.
func TestPageHasWeights(t *testing.T) {
	page := test.Must(os.ReadFile("../docs/reference/stencils.md"))(t)
	table := "| Dimensions | Stencil | Order | Center | Weight of a point at these offsets |\n|---|---|---|---|---|\n"
	for _, dims := range []int{1, 2, 3} {
		for _, kind := range stencil.Kinds(dims) {
			s := test.Must(stencil.HeatOf(kind, equalSpacing(dims, 1), 1, 1))(t)
			weights, names := map[string]float64{}, []string(nil)
			for _, g := range s.Groups {
				for _, o := range g.Offsets() {
					distances := []int{abs(o[0]), abs(o[1]), abs(o[2])}
					slices.Sort(distances)
					slices.Reverse(distances)
					name := strings.ReplaceAll(strings.Trim(fmt.Sprint(distances[:dims]), "[]"), " ", ",")
					if weights[name] += 0; weights[name] == 0 {
						names = append(names, name)
					}
					weights[name] = g.Weight
				}
			}
			table += fmt.Sprintf("| %d | %v | %v | %s |", dims, kind, orderOf(dims, kind), fraction(s.Center-1))
			for i, name := range names {
				table += fmt.Sprintf("%s (%s) %s", map[bool]string{true: ",", false: ""}[i > 0], name, fraction(weights[name]))
			}
			table += " |\n"
		}
	}
	if !strings.Contains(string(page), table) {
		t.Errorf("docs/reference/stencils.md: must contain this table:\n%s", table)
	}
}

func abs(n int) int { return max(n, -n) }

// fraction formats a number as a fraction with a small denominator.
func fraction(v float64) string {
	for d := 1; d <= 5000; d++ {
		if n := math.Round(v * float64(d)); math.Abs(v*float64(d)-n) < 1e-9 {
			return strings.TrimSuffix(fmt.Sprintf("%d/%d", int(n), d), "/1")
		}
	}
	return fmt.Sprint(v)
}
