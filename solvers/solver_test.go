package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

const testLimit = 60 * time.Second

func parse(t testing.TB, src string) *stencil.Expression {
	t.Helper()
	e, err := stencil.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// how is one way to run a problem.
type how struct {
	scheme Scheme
	order  Order
	path   p2p.Path
	parts  domain.Vec
}

func (h how) String() string {
	return fmt.Sprintf("scheme=%s/order=%s/path=%s/parts=%dx%dx%d", h.scheme, h.order, h.path, h.parts[0], h.parts[1], h.parts[2])
}

// ways returns every scheme, order and path.
func ways() []how {
	return []how{
		{scheme: Baseline, order: LeftRight, path: p2p.Staged},
		{scheme: TwoStream, order: LeftRight, path: p2p.Staged},
		{scheme: TwoStream, order: LeftRight, path: p2p.Peer},
		{scheme: TwoStream, order: Pairwise, path: p2p.Staged},
		{scheme: TwoStream, order: Pairwise, path: p2p.Peer},
		{scheme: Assisted, order: LeftRight, path: p2p.Staged},
		{scheme: Assisted, order: LeftRight, path: p2p.Peer},
		{scheme: TwoStream, order: LeftRight, path: p2p.Direct},
		{scheme: Assisted, order: LeftRight, path: p2p.Direct},
		{scheme: Graph, path: p2p.Staged},
		{scheme: Graph, path: p2p.Peer},
		{scheme: Graph, path: p2p.Direct},
		{scheme: Blocked, path: p2p.Staged},
		{scheme: Blocked, path: p2p.Peer},
		{scheme: Blocked, path: p2p.Direct},
		{scheme: Fused, path: p2p.Direct},
		{scheme: Ranks, path: p2p.Direct},
		{scheme: Resident, path: p2p.Direct},
	}
}

// problem builds a test problem: a field without symmetries and walls of the
// given kinds, Dirichlet walls with a value that varies along them.
func problem(t testing.TB, size []int, real kernels.Real, kinds string) *Problem {
	t.Helper()
	var periodic [3]bool
	p := &Problem{Real: real, Initial: parse(t, "sin(1.3*i+0.7)*cos(2.1*j)+0.01*k*k-0.003*i*j"), TimeStep: 1e-3}
	for i, face := range domain.Faces(len(size)) {
		switch kinds[i] {
		case 'd':
			p.Walls[i] = Wall{Dirichlet, parse(t, fmt.Sprintf("%d+x*y-2*z+0.1*i", i))}
		case 't':
			p.Walls[i] = Wall{Dirichlet, parse(t, fmt.Sprintf("%d+x*y-2*z+0.1*i+sin(900*t+x)", i))}
		case 'n':
			p.Walls[i].Kind = Neumann
		case 'p':
			p.Walls[i].Kind = Periodic
			periodic[face.Axis()] = true
		}
	}
	g, err := domain.NewGrid(size, periodic)
	if err != nil {
		t.Fatal(err)
	}
	p.Grid = g
	for a := range size {
		p.Spacing = append(p.Spacing, 0.1*float64(a+1))
	}
	p.Stencil, err = starOf(stencil.Heat(p.Spacing, 1, p.TimeStep))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// equalSpacing gives the problem the paper's stencil with two coefficients.
func equalSpacing(p *Problem) *Problem {
	for a := range p.Spacing {
		p.Spacing[a] = 0.1
	}
	p.Stencil, _ = starOf(stencil.Heat(p.Spacing, 1, p.TimeStep))
	return p
}

// solve runs the problem on the first devices of the set and returns its
// solver, which is closed with the test.
func solve(t testing.TB, set *testdevices.Set, p *Problem, h how, o Options) (*Solver, Result) {
	t.Helper()
	s := prepare(t, set, p, h)
	res, err := s.Run(context.Background(), h.options(o))
	if err != nil {
		t.Fatal(err)
	}
	return s, res
}

// options adds the way to run to what is to be run.
func (h how) options(o Options) Options {
	o.Scheme, o.Order, o.Limit = h.scheme, h.order, testLimit
	if o.CheckEvery == 0 {
		o.CheckEvery = 1
	}
	return o
}

// prepare makes a solver, closed with the test. The test is skipped where the
// set has too few devices.
func prepare(t testing.TB, set *testdevices.Set, p *Problem, h how) *Solver {
	t.Helper()
	s, err := New(t.Context(), p, planFor(t, set, p, h), set.Compiler)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// planFor cuts the grid of a problem and plans its exchanges. It skips the test where there are too few devices.
func planFor(t testing.TB, set *testdevices.Set, p *Problem, h how) *halo.Plan {
	t.Helper()
	d, err := domain.Decompose(p.Grid, h.parts)
	if err != nil {
		t.Fatal(err)
	}
	n := len(d.Subdomains)
	if n > len(set.Devices) {
		t.Skipf("SKIPPED: needs %d devices, there are %d", n, len(set.Devices))
	}
	pl, err := halo.Place(d, set.Devices[:n])
	if err != nil {
		t.Fatal(err)
	}
	plan, err := halo.NewPlan(pl, set.Links, h.path, p.Field())
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// read returns all owned points.
func read(t testing.TB, s *Solver) []float64 {
	t.Helper()
	v := make([]float64, s.problem.Grid.Points())
	if err := s.Read(v, s.problem.Grid.Box()); err != nil {
		t.Fatal(err)
	}
	return v
}

// compare fails the test at the first point whose bits differ.
func compare(t testing.TB, g domain.Grid, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			x, y, z := i%g.Size[0], i/g.Size[0]%g.Size[1], i/g.Size[0]/g.Size[1]
			t.Fatalf("at (%d, %d, %d): got %v, want %v", x, y, z, got[i], want[i])
		}
	}
}

// expected runs the reference.
func expected(p *Problem, steps int) ([]float64, reduce.Norms) {
	if p.Real == kernels.Float32 {
		return expectedOf[float32](p, steps)
	}
	return expectedOf[float64](p, steps)
}

func expectedOf[T float32 | float64](p *Problem, steps int) ([]float64, reduce.Norms) {
	r := newReference[T](p)
	for range steps {
		r.step()
	}
	var v []float64
	r.each(func(q domain.Vec) { v = append(v, float64(r.values[q])) })
	return v, r.norms
}

// conformance is a problem with cuts of it to try.
type conformance struct {
	name    string
	problem *Problem
	cuts    []domain.Vec
}

func conformances(t testing.TB, real kernels.Real) []conformance {
	return []conformance{
		{"plane", problem(t, []int{11, 7}, real, "dddd"), []domain.Vec{{1, 1, 1}, {1, 2, 1}, {3, 1, 1}, {2, 2, 1}}},
		{"plane with equal spacing", equalSpacing(problem(t, []int{11, 7}, real, "ndpp")), []domain.Vec{{1, 1, 1}, {1, 3, 1}, {2, 2, 1}}},
		{"cuboid", problem(t, []int{9, 6, 5}, real, "dddddd"), []domain.Vec{{1, 1, 1}, {1, 1, 4}, {1, 2, 2}, {2, 1, 1}}},
		{"cuboid with equal spacing", equalSpacing(problem(t, []int{9, 6, 5}, real, "dddddd")), []domain.Vec{{1, 1, 3}, {3, 1, 1}}},
		{"ring in z", problem(t, []int{5, 6, 7}, real, "dnddpp"), []domain.Vec{{1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 1, 4}}},
		{"moving walls", problem(t, []int{6, 5, 7}, real, "tdntdt"), []domain.Vec{{1, 1, 1}, {1, 1, 3}, {2, 1, 2}}},
		{"moving walls of a plane", problem(t, []int{6, 5}, real, "tttt"), []domain.Vec{{1, 1, 1}, {1, 3, 1}, {2, 2, 1}}},
		{"all periodic", problem(t, []int{5, 6, 7}, real, "pppppp"), []domain.Vec{{1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {1, 3, 1}}},
		{"all insulated", problem(t, []int{5, 6, 7}, real, "nnnnnn"), []domain.Vec{{1, 1, 1}, {1, 2, 2}, {1, 1, 4}}},
		{"tiny", problem(t, []int{3, 1, 2}, real, "dnppdn"), []domain.Vec{{1, 1, 1}, {3, 1, 1}, {2, 1, 2}, {1, 1, 2}}},
	}
}

// Every scheme, order, path, type and cut gives the bits of the reference, and
// the norms of its last step.
func TestOneAnswer(t *testing.T) {
	testdevices.InTurn(t, 5, 8)
	testdevices.Each(t, 4, func(t *testing.T, set *testdevices.Set) {
		for _, real := range testdevices.Again(1, testdevices.Some(2, []kernels.Real{kernels.Float64, kernels.Float32})) {
			for i, c := range conformances(t, real) {
				t.Run(fmt.Sprintf("problem=%s/type=%s", c.name, real), func(t *testing.T) { oneAnswer(t, set, c, i, 5) })
			}
		}
	})
}

// A wall that moves may have other values from point to point by any of the coordinates and indices.
func TestMovingWallsVaryByEachVariable(t *testing.T) {
	set := testdevices.Host(t, 4)
	for _, variable := range []string{"x", "y", "z", "i", "j", "k", "nx"} {
		t.Run(variable, func(t *testing.T) {
			p := problem(t, []int{6, 5, 7}, kernels.Float64, "tttttt")
			for i := range p.Walls {
				p.Walls[i].Value = parse(t, "cos(900*t)*"+variable)
			}
			want, _ := expected(p, 5)
			for _, cut := range []domain.Vec{{1, 1, 1}, {2, 1, 2}} {
				s, _ := solve(t, set, p, how{Baseline, LeftRight, p2p.Staged, cut}, Options{Steps: 5})
				compare(t, p.Grid, read(t, s), want)
			}
		})
	}
}

// oneAnswer takes every other cut and way of the place-th problem, or where tests run again each n-th, others of each problem and
// cut.
func oneAnswer(t *testing.T, set *testdevices.Set, c conformance, place, n int) {
	const steps = 7
	want, norms := expected(c.problem, steps)
	for i, cut := range c.cuts {
		for j, h := range ways() {
			if !testdevices.Turn(place+i+j, 2, n) {
				continue
			}
			h.parts = cut
			t.Run(h.String(), func(t *testing.T) {
				if unsuited(h.scheme, c.problem) {
					refused(t, set, c.problem, h)
					return
				}
				s, res := solve(t, set, c.problem, h, Options{Steps: steps, CheckEvery: 3, History: true})
				compare(t, c.problem.Grid, read(t, s), want)
				checkNorms(t, res, norms, c.problem.Grid.Points(), steps)
				if len(res.History) != 3 || res.History[0].Step != 3 || res.History[2].Step != steps {
					t.Errorf("history %+v", res.History)
				}
			})
		}
	}
}

// unsuited reports whether the scheme refuses the problem. Any other that it refuses fails a
// test.
func unsuited(s Scheme, p *Problem) bool {
	return (s == Ranks || s == Resident || s == Graph) && changes(p)
}

// changes reports whether a wall of the problem changes with time.
func changes(p *Problem) bool {
	for _, w := range p.Walls {
		if w.Kind == Dirichlet && w.Value != nil && w.moves() {
			return true
		}
	}
	return false
}

// refused fails the test unless the scheme says that it does not suit the problem.
func refused(t testing.TB, set *testdevices.Set, p *Problem, h how) {
	t.Helper()
	_, err := prepare(t, set, p, h).Run(context.Background(), h.options(Options{Steps: 1}))
	if !errors.Is(err, ErrUnsuited) {
		t.Errorf("got %v", err)
	}
}

func checkNorms(t testing.TB, res Result, want reduce.Norms, points, steps int64) {
	t.Helper()
	if res.Steps != steps || res.Stopped != StoppedSteps || res.Norms.Step != steps {
		t.Errorf("stopped by %s after %d of %d iterations", res.Stopped, res.Steps, steps)
	}
	if res.Norms.MaxChange != want.MaxChange || res.Norms.Max != want.Max {
		t.Errorf("largest change %v and value %v, want %v and %v", res.Norms.MaxChange, res.Norms.Max, want.MaxChange, want.Max)
	}
	change, value := math.Sqrt(want.SumChange2.Value()), math.Sqrt(want.Sum2.Value()/float64(points))
	if res.Norms.L2Change != change || res.Norms.L2 != value {
		t.Errorf("l2 of the change %v and of the values %v, want %v and %v", res.Norms.L2Change, res.Norms.L2, change, value)
	}
}
