package solvers

import (
	"fmt"
	"math"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// unitBox builds a problem on the unit box with the given walls, all alike.
func unitBox(t testing.TB, size []int, wall Wall, initial string) *Problem {
	t.Helper()
	p := &Problem{Real: kernels.Float64, Initial: parse(t, initial)}
	var periodic [3]bool
	for a, n := range size {
		p.Walls[2*a], p.Walls[2*a+1] = wall, wall
		periodic[a] = wall.Kind == Periodic
		p.Spacing = append(p.Spacing, Axis{n, [2]WallKind{wall.Kind, wall.Kind}}.UnitSpacing())
	}
	g, err := domain.NewGrid(size, periodic)
	if err != nil {
		t.Fatal(err)
	}
	p.Grid = g
	if p.Stencil, err = starOf(stencil.Laplace(p.Spacing)); err != nil {
		t.Fatal(err)
	}
	return p
}

// heat turns a problem into one of the heat equation with the largest stable
// step, times scale.
func heat(t testing.TB, p *Problem, scale float64) *Problem {
	t.Helper()
	sum := 0.0
	for _, h := range p.Spacing {
		sum += 1 / (h * h)
	}
	p.TimeStep = scale / (2 * sum)
	var err error
	if p.Stencil, err = starOf(stencil.Heat(p.Spacing, 1, p.TimeStep)); err != nil {
		t.Fatal(err)
	}
	return p
}

// overGPUsToo runs a test on host devices and, where there are some, on GPUs,
// with as many parts as there are devices, up to four.
func overGPUsToo(t *testing.T, f func(t *testing.T, set *testdevices.Set, h how)) {
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		n := min(4, len(set.Devices))
		f(t, set, how{TwoStream, LeftRight, p2p.Auto, domain.Vec{1, 1, n}})
	})
}

// The slowest mode of a box keeps its shape and shrinks by cos(pi*h) a sweep,
// which the walls, the stencil and the coordinates must all agree on.
func TestSineModeDecays(t *testing.T) {
	testdevices.Once(t)
	overGPUsToo(t, func(t *testing.T, set *testdevices.Set, h how) {
		const n, steps = 23, 200
		zero := Wall{Dirichlet, parse(t, "0")}
		shape := "sin(pi*x)*sin(pi*y)*sin(pi*z)"
		for name, p := range map[string]*Problem{
			"laplace": unitBox(t, []int{n, n, n}, zero, shape),
			"heat":    heat(t, unitBox(t, []int{n, n, n}, zero, shape), 1),
		} {
			t.Run(name, func(t *testing.T) {
				s, res := solve(t, set, p, h, Options{Steps: steps})
				factor := math.Pow(math.Cos(math.Pi/(n+1)), steps)
				d, err := s.Deviation(t.Context(), parse(t, fmt.Sprintf("%v*%s", factor, shape)))
				if err != nil {
					t.Fatal(err)
				}
				if d.Max > 1e-14 {
					t.Errorf("after %d steps the mode is off by %v", steps, d.Max)
				}
				if want := factor * math.Pow(math.Sin(math.Pi/2), 3); math.Abs(res.Norms.Max-want) > 1e-14 {
					t.Errorf("largest value %v, want %v", res.Norms.Max, want)
				}
			})
		}
	})
}

// The converged solution of Laplace's equation approaches a harmonic function
// with the square of the spacing.
func TestLaplaceConvergesAtSecondOrder(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.Once(t)
	overGPUsToo(t, func(t *testing.T, set *testdevices.Set, h how) {
		const exact = "sin(pi*x)*sinh(pi*(1-y))/sinh(pi)+0.3*exp(2*z)*cos(2*x)"
		var errors []float64
		for _, n := range []int{7, 15, 31} {
			p := unitBox(t, []int{n, n, n}, Wall{Dirichlet, parse(t, exact)}, "0")
			s, res := solve(t, set, p, h, Options{Steps: 20000, Tolerance: 1e-11, Norm: MaxNorm, CheckEvery: 50})
			if res.Stopped != StoppedTolerance {
				t.Fatalf("%d points an axis: stopped by %s at change %v", n, res.Stopped, res.Norms.MaxChange)
			}
			d, err := s.Deviation(t.Context(), parse(t, exact))
			if err != nil {
				t.Fatal(err)
			}
			errors = append(errors, d.L2)
		}
		for i := 1; i < len(errors); i++ {
			if order := math.Log2(errors[i-1] / errors[i]); math.Abs(order-2) > 0.1 {
				t.Errorf("errors %v: order %v", errors, order)
			}
		}
	})
}

// Nothing is gained or lost around periodic axes and between insulated walls.
func TestSumsAreKept(t *testing.T) {
	testdevices.Once(t)
	overGPUsToo(t, func(t *testing.T, set *testdevices.Set, h how) {
		for name, kind := range map[string]WallKind{"periodic": Periodic, "insulated": Neumann} {
			t.Run(name, func(t *testing.T) {
				p := heat(t, unitBox(t, []int{9, 12, 14}, Wall{Kind: kind}, "1+sin(5*i+j)*cos(3*k)+0.2*i"), 0.9)
				sum := func(steps int64) float64 {
					s, _ := solve(t, set, p, h, Options{Steps: steps})
					total := 0.0
					for _, v := range read(t, s) {
						total += v
					}
					return total
				}
				if first, last := sum(1), sum(300); math.Abs(first-last) > 1e-12*math.Abs(first) {
					t.Errorf("the sum went from %v to %v", first, last)
				}
			})
		}
	})
}
