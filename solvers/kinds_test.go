package solvers

import (
	"fmt"
	"math"
	"slices"
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

// Every kind of stencil gives the bits of the reference, by every scheme, order, path
// and cut, between walls of all kinds, which have either type in turn.
func TestOneAnswerOfEveryKind(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	reals := []kernels.Real{kernels.Float64, kernels.Float32}
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for dims, size := range map[int][]int{2: {11, 9}, 3: {8, 7, 9}} {
			for i, k := range stencil.Kinds(dims)[1:] {
				walls := []string{"dddddd", "dnnddn", "ppddnd", "nnnnnn"}
				if dims == 3 {
					walls = append(walls, "ndddpp")
				}
				if k.Shape == stencil.StarShape {
					walls = append(walls, "tdnttd")
				}
				for j, w := range testdevices.Again(1, testdevices.Some(4, walls)) {
					cuts := []domain.Vec{{1, 1, 1}, {2, 2, 1}, {3, 1, 1}}
					if dims == 3 {
						cuts = []domain.Vec{{1, 1, 1}, {1, 2, 2}, {1, 1, 4}, {2, 1, 1}}
					}
					real := reals[(i+j)%2]
					c := conformance{problem: of(t, problem(t, size, real, w), k), cuts: cuts}
					t.Run(fmt.Sprintf("dims=%d/%v/walls=%s/type=%s", dims, k, w[:2*dims], real), func(t *testing.T) { oneAnswer(t, set, c, 2*i+j, 7) })
				}
			}
		}
	})
}

// Eight devices that all meet in one point, and again around a periodic axis.
func TestOneAnswerOfEightDevices(t *testing.T) {
	testdevices.InTurn(t, 3, 8)
	testdevices.Each(t, 8, func(t *testing.T, set *testdevices.Set) {
		for i, k := range stencil.Kinds(3)[1:] {
			for _, w := range testdevices.Again(1, testdevices.Some(2, []string{"pppppp", "dddddd", "ppnddn"})) {
				c := conformance{problem: of(t, problem(t, []int{8, 7, 9}, kernels.Float64, w), k), cuts: []domain.Vec{{2, 2, 2}}}
				t.Run(fmt.Sprintf("%v/walls=%s", k, w), func(t *testing.T) { oneAnswer(t, set, c, i, 3) })
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

// Between walls that let nothing through or hold the field at 0, and around periodic axes, a mode decays as the eigenvalue
// of the Laplacian says, to the order of the stencil.
func TestKindsConverge(t *testing.T) {
	testdevices.InTurn(t, 2, 8)
	testdevices.Once(t)
	overGPUsToo(t, func(t *testing.T, set *testdevices.Set, h how) {
		for dims, all := range map[int][]string{2: {"dddd", "nnnn", "ndnd", "dndn", "pppp", "nndd", "ddpp"}, 3: {"dddddd", "nnnnnn", "dndndn", "ppddnn"}} {
			for _, k := range stencil.Kinds(dims) {
				for _, mix := range testdevices.Again(1, testdevices.Some(4, all)) {
					t.Run(fmt.Sprintf("dims=%d/%v/%s", dims, k, mix), func(t *testing.T) {
						coarse, fine := modeError(t, set, h, k, mix, 1), modeError(t, set, h, k, mix, 2)
						if order := math.Log(coarse/fine) / math.Log(3); math.Abs(order-orderOf(k)) > 0.1 {
							t.Errorf("errors %v and %v: order %v, not %v", coarse, fine, order, orderOf(k))
						}
					})
				}
			}
		}
	})
}

// A field that is linear along each axis between Dirichlet walls stays as it is, with every kind of stencil and in all mixes of
// walls, which it does only if the values of walls are those of their own places, in edges and corners too.
func TestLinearFieldsStay(t *testing.T) {
	testdevices.Once(t)
	set := testdevices.Host(t, 4)
	for dims, parts := range map[int]domain.Vec{2: {2, 2, 1}, 3: {1, 2, 2}} {
		for _, k := range stencil.Kinds(dims) {
			for _, mix := range testdevices.Again(2, testdevices.Some(10, mixes(dims))) {
				linear := "1"
				for a := range dims {
					if mix[2*a:][:2] == "dd" {
						linear += " * (1 + " + "xyz"[a:a+1] + ")"
					}
				}
				p := unitBoxOf(t, mix, 0, linear, linear)
				if k.OneSpacing() && slices.Max(p.Spacing) > slices.Min(p.Spacing) {
					continue
				}
				t.Run(fmt.Sprintf("dims=%d/%v/%s", dims, k, mix), func(t *testing.T) {
					var err error
					if p.Stencil, err = stencil.LaplaceOf(k, p.Spacing); err != nil {
						t.Fatal(err)
					}
					s, _ := solve(t, set, p, how{TwoStream, LeftRight, p2p.Auto, parts}, Options{Steps: 4})
					if d, err := s.Deviation(t.Context(), p.Initial); err != nil || d.Max > 1e-13 {
						t.Errorf("after 4 steps off by %v: %v", d.Max, err)
					}
				})
			}
		}
	}
}

// orderOf is what the table at stencil.Kind says.
func orderOf(k stencil.Kind) float64 {
	if k.Points == 13 || k.Points == 25 || (k.Points == 9 && k.Shape == stencil.StarShape) {
		return 4
	}
	return 2
}

// modeError is how far the rate at which the mode decays is from that of the equation.
func modeError(t *testing.T, set *testdevices.Set, h how, k stencil.Kind, mix string, finer int) float64 {
	const steps = 20
	shape, rate := modeOf(mix)
	p := unitBoxOf(t, mix, finer, shape, "0")
	p.TimeStep = 1e-5
	var err error
	if p.Stencil, err = stencil.HeatOf(k, p.Spacing, 1, p.TimeStep); err != nil {
		t.Fatal(err)
	}
	if p.Grid.Dims == 2 {
		h.parts = domain.Vec{1, h.parts[2], 1}
	}
	_, res := solve(t, set, p, h, Options{Steps: steps, History: true})
	first, last := res.History[0], res.History[steps-1]
	return math.Abs((math.Pow(last.L2/first.L2, 1.0/(steps-1))-1)/p.TimeStep + rate)
}

// A wall whose values bend along it bends the field across it, which odd reflection leaves out: between such walls
// stencils of fourth order are of second order.
func TestWideStencilsAtBentWalls(t *testing.T) {
	testdevices.Once(t)
	set := testdevices.Host(t, 2)
	const exact = "sin(pi*x)*sinh(pi*(1-y))/sinh(pi)"
	var errors []float64
	for finer := range 2 {
		p := unitBoxOf(t, "dddd", 1+finer, exact, exact)
		var err error
		if p.Stencil, err = stencil.LaplaceOf(stencil.Kind{Points: 9, Shape: stencil.StarShape}, p.Spacing); err != nil {
			t.Fatal(err)
		}
		s, res := solve(t, set, p, how{TwoStream, LeftRight, p2p.Auto, domain.Vec{1, 2, 1}}, Options{Steps: 20000, Tolerance: 1e-12, Norm: MaxNorm, CheckEvery: 50})
		if res.Stopped != StoppedTolerance {
			t.Fatalf("stopped by %s at change %v", res.Stopped, res.Norms.MaxChange)
		}
		d, err := s.Deviation(t.Context(), parse(t, exact))
		if err != nil {
			t.Fatal(err)
		}
		errors = append(errors, d.L2)
	}
	if order := math.Log(errors[0]/errors[1]) / math.Log(3); math.Abs(order-2) > 0.1 {
		t.Errorf("errors %v: order %v", errors, order)
	}
}
