package solvers

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// kindsOf are the walls that letters stand for.
var kindsOf = map[byte]BoundaryKind{
	'd': Dirichlet, 't': Dirichlet, 'h': Dirichlet, 'n': Neumann, 'g': Neumann, 'f': boundary.Flux, 'r': boundary.Robin, 'k': boundary.Robin, 'o': boundary.Outflow,
	'p': Periodic,
}

// axisOf returns the axis with two ends, such as "dn".
func axisOf(points int, ends string) Axis {
	wall := func(end byte) Condition { return Condition{Kind: kindsOf[end], Half: end == 'h'} }
	return Axis{points, [2]Condition{wall(ends[0]), wall(ends[1])}}
}

// An axis of length 1 has its ends at 0 and 1: the position of the first ghost for Dirichlet, the midpoint
// between a point and its ghost for Neumann, and the first point, which repeats at the other end, for
// periodic axes.
func TestAxis(t *testing.T) {
	for _, c := range []struct {
		ends           string
		spacing, first float64 // for 4 points
	}{
		{"dd", 1. / 5, 1. / 5}, {"nn", 1. / 4, 1. / 8}, {"dn", 1. / 4.5, 1. / 4.5}, {"nd", 1. / 4.5, 0.5 / 4.5}, {"pp", 1. / 4, 0},
		{"hr", 1. / 4, 1. / 8}, {"dr", 1. / 4.5, 1. / 4.5}, {"fg", 1. / 4, 1. / 8}, {"od", 1. / 4.5, 0.5 / 4.5},
	} {
		a := axisOf(4, c.ends)
		p := &Problem{Grid: domain.Grid{Dims: 1, Size: [3]int{4, 1, 1}}, Spacing: []float64{a.UnitSpacing()}}
		copy(p.Boundary[:], a.Ends[:])
		if p.Spacing[0] != c.spacing || p.Coordinate(0, 0) != c.first {
			t.Errorf("%s: first point at %v, spacing %v", c.ends, p.Coordinate(0, 0), p.Spacing[0])
		}
		ends := map[byte][2]float64{
			'd': {p.Coordinate(0, -1), p.Coordinate(0, 4)},
			'n': {(p.Coordinate(0, -1) + p.Coordinate(0, 0)) / 2, (p.Coordinate(0, 3) + p.Coordinate(0, 4)) / 2},
			'p': {p.Coordinate(0, 0), p.Coordinate(0, 4)},
		}
		for _, like := range "fgrho" {
			ends[byte(like)] = ends['n']
		}
		if low, high := ends[c.ends[0]][0], ends[c.ends[1]][1]; low != 0 || math.Abs(high-1) > 1e-15 {
			t.Errorf("%s: ends at %v and %v", c.ends, low, high)
		}
	}
}

// modes solve the heat equation along one axis, for ends of each kind: the shape is 0 at Dirichlet
// boundaries, and decays with the square of the rate. The ramp grows with t; it is not 0 at any boundary, and
// stencils are exact for it.
var modes = map[string]struct {
	shape string
	rate  float64
	ramp  string
}{
	"dd": {"sin(pi*x)", math.Pi, "(1 + x + x^2/2 + t)"},
	"nd": {"cos(pi/2*x)", math.Pi / 2, "(1 + x^2/2 + t)"},
	"dn": {"sin(pi/2*x)", math.Pi / 2, "(1 + (1 - x)^2/2 + t)"},
	"nn": {"cos(pi*x)", math.Pi, "0"},
	"pp": {"sin(2*pi*x + 0.5)", 2 * math.Pi, "0"},
}

// mixes returns all combinations of ends, such as "ddnp".
func mixes(dims int) []string {
	all := []string{""}
	for range dims {
		var longer []string
		for _, m := range all {
			for _, ends := range []string{"dd", "nd", "dn", "nn", "pp"} {
				longer = append(longer, m+ends)
			}
		}
		all = longer
	}
	return all
}

// solutionOf returns a solution of the heat equation, and its values at Dirichlet boundaries.
func solutionOf(mix string) (exact, walls string) {
	shape, rate := modeOf(mix)
	walls = "0"
	for a := range len(mix) / 2 {
		walls += " + " + strings.ReplaceAll(modes[mix[2*a:][:2]].ramp, "x", "xyz"[a:a+1])
	}
	return fmt.Sprintf("%s + exp(-%v*t) * %s", walls, rate, shape), walls
}

// modeOf returns a field that keeps its shape, and its decay rate by the heat equation.
func modeOf(mix string) (shape string, rate float64) {
	shape = "1"
	for a := range len(mix) / 2 {
		m := modes[mix[2*a:][:2]]
		shape += " * " + strings.ReplaceAll(m.shape, "x", "xyz"[a:a+1])
		rate += m.rate * m.rate
	}
	return shape, rate
}

// pointsOf returns the number of points of an axis of a unit box: each increment of finer divides the spacing
// by 3. Axes with one Dirichlet and one Neumann boundary have a different spacing, all others the same.
func pointsOf(ends string, finer int) int {
	dirichlet, halves := strings.Count(ends, "d"), 12 // of spacings
	if dirichlet == 1 {
		halves++
	}
	for range finer {
		halves *= 3
	}
	return (halves - dirichlet) / 2
}

// sizeOf returns the points along all axes of a combination.
func sizeOf(mix string, finer int) (size []int) {
	for a := range len(mix) / 2 {
		size = append(size, pointsOf(mix[2*a:][:2], finer))
	}
	return size
}

// unitBox is a unit box with the ends of a combination and the given values at Dirichlet boundaries. Time
// step and stencil are not set.
func unitBox(t testing.TB, mix string, size []int, initial, walls string) *Problem {
	t.Helper()
	p := &Problem{Element: domain.Float64, Initial: parse(t, initial)}
	var periodic [3]bool
	for a, n := range size {
		axis := axisOf(n, mix[2*a:][:2])
		for i, wall := range axis.Ends {
			if p.Boundary[2*a+i] = wall; wall.Kind == Dirichlet {
				p.Boundary[2*a+i].Value = parse(t, walls)
			}
		}
		periodic[a] = axis.Ends[0].Kind == Periodic
		p.Spacing = append(p.Spacing, axis.UnitSpacing())
	}
	p.Grid = must(domain.NewGrid(size, periodic[:len(size)]))(t)
	return p
}

// modeProblem is heat in a unit box with the ends of a combination, and the solution of solutionOf.
func modeProblem(t testing.TB, mix string, finer int) (p *Problem, steps int64) {
	t.Helper()
	exact, walls := solutionOf(mix)
	p = unitBox(t, mix, sizeOf(mix, finer), exact, walls)
	// A short step makes the error in time less than that in space, for any combination.
	steps = int64(8 * math.Pow(9, float64(finer)))
	p.TimeStep = 0.005 / float64(steps)
	p.Stencil = must(starOf(stencil.Heat(p.Spacing, 1, p.TimeStep)))(t)
	return p, steps
}

// For all combinations of boundary conditions, heat converges to the solution with the square of the spacing,
// and is identical on several devices and on one.
func TestOrderOfBoundaries(t *testing.T) {
	testdevices.InTurn(t, 6, 8)
	testdevices.Once(t)
	set := testdevices.Host(t, 4)
	alone := how{scheme.TwoStream, scheme.LeftRight, p2p.Auto, domain.Vec{1, 1, 1}}
	for dims, parts := range map[int]domain.Vec{2: {2, 2, 1}, 3: {1, 2, 2}} {
		together := alone
		together.parts = parts
		for _, mix := range testdevices.Again(3, testdevices.Some(6, mixes(dims))) {
			t.Run(mix, func(t *testing.T) {
				var errors []float64
				for finer := range 5 - dims {
					p, steps := modeProblem(t, mix, finer)
					d := modeDeviation(t, set, p, alone, mix, steps)
					if other := modeDeviation(t, set, p, together, mix, steps); other != d {
						t.Errorf("%v points: %+v off over several devices, %+v on one", p.Grid.Size, other, d)
					}
					errors = append(errors, d.L2)
				}
				for i := 1; i < len(errors); i++ {
					if order := math.Log(errors[i-1]/errors[i]) / math.Log(3); math.Abs(order-2) > 0.1 {
						t.Errorf("errors %v: order %v", errors, order)
					}
				}
			})
		}
	}
}

// modeDeviation solves a problem of a combination and returns its final deviation.
func modeDeviation(t *testing.T, set *testdevices.Set, p *Problem, h how, mix string, steps int64) Deviation {
	t.Helper()
	exact, _ := solutionOf(mix)
	s, _ := solve(t, set, p, h, scheme.Options{Steps: steps, CheckEvery: steps})
	d := must(s.Deviation(t.Context(), 0, parse(t, exact)))(t)
	return d
}

// overGPUsToo runs a test on CPU devices and, if there are some, on GPUs, with as many parts as there are
// devices, up to four.
func overGPUsToo(t *testing.T, f func(t *testing.T, set *testdevices.Set, h how)) {
	testdevices.Each(t, 3, func(t *testing.T, set *testdevices.Set) {
		n := min(4, len(set.Devices))
		f(t, set, how{scheme.TwoStream, scheme.LeftRight, p2p.Auto, domain.Vec{1, 1, n}})
	})
}

// The converged solution of Laplace's equation approaches a harmonic function with the square of the spacing.
// So it does with stencils of fourth order if boundary values are curved along the boundary, since odd
// reflection ignores the resulting curvature of the field across it.
func TestLaplaceConvergesAtSecondOrder(t *testing.T) {
	testdevices.InTurn(t, 7, 8)
	testdevices.Once(t)
	overGPUsToo(t, func(t *testing.T, set *testdevices.Set, h how) {
		for _, c := range []struct {
			kind  stencil.Kind
			exact string
			sizes [][]int
			finer float64
		}{
			{stencil.Kind{Points: 7, Shape: stencil.StarShape}, "sin(pi*x)*sinh(pi*(1-y))/sinh(pi)+0.3*exp(2*z)*cos(2*x)", [][]int{{7, 7, 7}, {15, 15, 15}, {31, 31, 31}}, 2},
			{stencil.Kind{Points: 9, Shape: stencil.StarShape}, "sin(pi*x)*sinh(pi*(1-y))/sinh(pi)", [][]int{{17, 17}, {53, 53}}, 3},
		} {
			var errors []float64
			for _, size := range c.sizes {
				p := unitBox(t, "dddddd", size, c.exact, c.exact)
				p.Stencil = must(stencil.LaplaceOf(c.kind, p.Spacing))(t)
				if len(size) == 2 {
					h.parts = domain.Vec{1, min(2, len(set.Devices)), 1}
				}
				s, res := solve(t, set, p, h, scheme.Options{Steps: 20000, Tolerance: 1e-11, Norm: scheme.MaxNorm, CheckEvery: 50})
				if res.Stopped != scheme.StoppedTolerance {
					t.Fatalf("%v points: stopped by %s at change %v", size, res.Stopped, res.Norms[0].MaxChange)
				}
				errors = append(errors, must(s.Deviation(t.Context(), 0, parse(t, c.exact)))(t).L2)
			}
			for i := 1; i < len(errors); i++ {
				if order := math.Log(errors[i-1]/errors[i]) / math.Log(c.finer); math.Abs(order-2) > 0.1 {
					t.Errorf("%v: errors %v: order %v", c.kind, errors, order)
				}
			}
		}
	})
}

// With zero-flux or zero-value boundaries, and on periodic axes, a mode decays by the eigenvalue of the
// Laplacian, to the order of the stencil.
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

// A field that is linear along each axis with Dirichlet boundaries is constant in time, for every kind of
// stencil and all combinations of boundaries, if boundary values are evaluated at the right positions,
// including edges and corners.
func TestLinearFields(t *testing.T) {
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
				p := unitBox(t, mix, sizeOf(mix, 0), linear, linear)
				if k.OneSpacing() && slices.Max(p.Spacing) > slices.Min(p.Spacing) {
					continue
				}
				t.Run(fmt.Sprintf("dims=%d/%v/%s", dims, k, mix), func(t *testing.T) {
					p.Stencil = must(stencil.LaplaceOf(k, p.Spacing))(t)
					s, _ := solve(t, set, p, how{scheme.TwoStream, scheme.LeftRight, p2p.Auto, parts}, scheme.Options{Steps: 4})
					if d, err := s.Deviation(t.Context(), 0, p.Initial); err != nil || d.Max > 1e-13 {
						t.Errorf("after 4 steps off by %v: %v", d.Max, err)
					}
				})
			}
		}
	}
}

// orderOf is the order in the table of stencil.Kind.
func orderOf(k stencil.Kind) float64 {
	if k.Points == 13 || k.Points == 25 || (k.Points == 9 && k.Shape == stencil.StarShape) {
		return 4
	}
	return 2
}

// modeError is the difference between the decay rate of the mode and that of the equation.
func modeError(t *testing.T, set *testdevices.Set, h how, k stencil.Kind, mix string, finer int) float64 {
	const steps = 20
	shape, rate := modeOf(mix)
	p := unitBox(t, mix, sizeOf(mix, finer), shape, "0")
	p.TimeStep = 1e-5
	p.Stencil = must(stencil.HeatOf(k, p.Spacing, 1, p.TimeStep))(t)
	if p.Grid.Dims == 2 {
		h.parts = domain.Vec{1, h.parts[2], 1}
	}
	_, res := solve(t, set, p, h, scheme.Options{Steps: steps, History: true})
	first, last := res.History[0].Norms[0], res.History[steps-1].Norms[0]
	return math.Abs((math.Pow(last.L2/first.L2, 1.0/(steps-1))-1)/p.TimeStep + rate)
}
