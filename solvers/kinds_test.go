package solvers

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// of gives the problem the heat step of a kind, on equal spacings where it needs them.
func of(t testing.TB, p *Problem, k stencil.Kind) *Problem {
	t.Helper()
	if k.Shape == stencil.BoxShape {
		equalSpacing(p)
	}
	var err error
	if p.Stencil, err = stencil.HeatOf(k, p.Spacing, 1, p.TimeStep); err != nil {
		t.Fatal(err)
	}
	return p
}

// Every kind of stencil gives the bits of the reference, by every scheme, order, path, type
// and cut, between walls of all kinds.
func TestOneAnswerOfEveryKind(t *testing.T) {
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, real := range []kernels.Real{kernels.Float64, kernels.Float32} {
			for dims, size := range map[int][]int{2: {11, 9}, 3: {8, 7, 9}} {
				for _, k := range stencil.Kinds(dims)[1:] {
					walls := []string{"dddddd", "dnnddn", "ppddnd", "ndddpp", "nnnnnn"}
					if k.Shape == stencil.StarShape {
						walls = append(walls, "tdnttd")
					}
					for _, w := range walls {
						if dims == 2 && w == "ndddpp" {
							continue
						}
						cuts := []domain.Vec{{1, 1, 1}, {2, 2, 1}, {3, 1, 1}}
						if dims == 3 {
							cuts = []domain.Vec{{1, 1, 1}, {1, 2, 2}, {1, 1, 4}, {2, 1, 1}}
						}
						c := conformance{problem: of(t, problem(t, size, real, w), k), cuts: cuts}
						t.Run(fmt.Sprintf("dims=%d/%v/walls=%s/type=%s", dims, k, w[:2*dims], real), func(t *testing.T) { oneAnswer(t, set, c) })
					}
				}
			}
		}
	})
}

// Eight devices that all meet in one point, and again around a periodic axis.
func TestOneAnswerOfEightDevices(t *testing.T) {
	testdevices.Each(t, 8, func(t *testing.T, set *testdevices.Set) {
		for _, k := range stencil.Kinds(3)[1:] {
			for _, w := range []string{"dddddd", "ppnddn", "pppppp"} {
				c := conformance{problem: of(t, problem(t, []int{8, 7, 9}, kernels.Float64, w), k), cuts: []domain.Vec{{2, 2, 2}}}
				t.Run(fmt.Sprintf("%v/walls=%s", k, w), func(t *testing.T) { oneAnswer(t, set, c) })
			}
		}
	})
}

// What a solver cannot keep right is refused.
func TestKindsThatAreRefused(t *testing.T) {
	set := testdevices.Host(t, 1)
	p := of(t, problem(t, []int{8, 8}, kernels.Float64, "tddd"), stencil.Kind{Points: 9, Shape: stencil.BoxShape})
	d, err := domain.Decompose(p.Grid, domain.Vec{1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	place, err := halo.Place(d, set.Devices)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := halo.NewPlan(place, set.Links, p2p.Staged, p.Field())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), p, plan, set.Compiler); err == nil {
		t.Error("a wall that changes with time was accepted beside a box")
	}
}

// Between walls at 0 the slowest mode of a box shrinks as the eigenvalue of the Laplacian
// says, to the order of the stencil.
func TestKindsConverge(t *testing.T) {
	overGPUsToo(t, func(t *testing.T, set *testdevices.Set, h how) {
		for dims, shape := range map[int]string{2: "sin(pi*x)*sin(pi*y)", 3: "sin(pi*x)*sin(pi*y)*sin(pi*z)"} {
			for _, k := range stencil.Kinds(dims) {
				t.Run(fmt.Sprintf("dims=%d/%v", dims, k), func(t *testing.T) {
					order := 2.0
					if k.Points == 13 || k.Points == 25 || (k.Points == 9 && k.Shape == stencil.StarShape) {
						order = 4
					}
					var errors []float64
					for _, n := range []int{7, 15} {
						errors = append(errors, modeError(t, set, h, k, n, dims, shape))
					}
					if got := math.Log2(errors[0] / errors[1]); math.Abs(got-order) > 0.15 {
						t.Errorf("errors %v: order %v, not %v", errors, got, order)
					}
				})
			}
		}
	})
}

// modeError is how far the rate at which the mode shrinks is from that of the equation.
func modeError(t *testing.T, set *testdevices.Set, h how, k stencil.Kind, n, dims int, shape string) float64 {
	const steps = 50
	p := unitBox(t, []int{n, n, n}[:dims], Wall{Dirichlet, parse(t, "0")}, shape)
	p.TimeStep = 1e-5
	var err error
	if p.Stencil, err = stencil.HeatOf(k, p.Spacing, 1, p.TimeStep); err != nil {
		t.Fatal(err)
	}
	if dims == 2 {
		h.parts = domain.Vec{1, h.parts[2], 1}
	}
	_, res := solve(t, set, p, h, Options{Steps: steps})
	rate := (math.Pow(res.Norms.Max, 1.0/steps) - 1) / p.TimeStep
	return math.Abs(rate + float64(dims)*math.Pi*math.Pi)
}
