package solvers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

const testLimit = 2 * time.Minute

// how is one way to run a problem.
type how struct {
	scheme scheme.Scheme
	order  scheme.Order
	path   p2p.Path
	parts  domain.Vec
}

func (h how) String() string {
	return fmt.Sprintf("scheme=%s/order=%s/path=%s/parts=%dx%dx%d", h.scheme, h.order, h.path, h.parts[0], h.parts[1], h.parts[2])
}

// options adds the way to run to what is to be run.
func (h how) options(o scheme.Options) scheme.Options {
	o.Scheme, o.Order, o.Limit = h.scheme, h.order, testLimit
	if o.CheckEvery == 0 {
		o.CheckEvery = 1
	}
	return o
}

// ways returns every scheme, order and path.
func ways() (all []how) {
	for _, name := range scheme.All() {
		for _, path := range p2p.Paths() {
			if name.Needs().CheckPath(name, path) != nil {
				continue
			}
			all = append(all, how{scheme: name, order: scheme.LeftRight, path: path})
			if name == scheme.TwoStream && path != p2p.Direct {
				all = append(all, how{scheme: name, order: scheme.Pairwise, path: path})
			}
		}
	}
	return all
}

// inGroups returns the ways to run in which several steps go between two exchanges.
func inGroups() (all []how) {
	for _, h := range ways() {
		if groups(h.scheme) {
			all = append(all, h)
		}
	}
	return all
}

// pathOf returns a path that the scheme has.
func pathOf(name scheme.Scheme) p2p.Path { return cmp.Or(name.Needs().Path, p2p.Staged) }

func parse(t testing.TB, src string) *stencil.Expression {
	t.Helper()
	return must(stencil.Parse(src))(t)
}

// problem builds a test problem: a field without symmetries and walls of the
// given kinds, Dirichlet walls with a value that varies along them.
func problem(t testing.TB, size []int, real kernels.Real, kinds string) *Problem {
	t.Helper()
	var periodic [3]bool
	p := &Problem{Real: real, Initial: parse(t, "sin(1.3*i+0.7)*cos(2.1*j)+0.01*k*k-0.003*i*j"), TimeStep: 1e-3}
	if len(size) == 1 {
		kinds += "nn"
	}
	for i, face := range domain.Faces(max(2, len(size))) {
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
	p.Grid = must(domain.NewGrid(size, periodic))(t)
	for a := range size {
		p.Spacing = append(p.Spacing, 0.1*float64(a+1))
	}
	p.Stencil = must(starOf(stencil.Heat(p.Spacing, 1, p.TimeStep)))(t)
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

// of gives the problem the heat step of a kind, on equal spacings where it needs them.
func of(t testing.TB, p *Problem, k stencil.Kind) *Problem {
	t.Helper()
	if k.Shape == stencil.BoxShape {
		equalSpacing(p)
	}
	p.Stencil = must(stencil.HeatOf(k, p.Spacing, 1, p.TimeStep))(t)
	return p
}

// inGroupsOf returns the problem with so many steps between two exchanges.
func inGroupsOf(p *Problem, steps int) *Problem {
	grouped := *p
	grouped.Group = steps
	return &grouped
}

// randomProblem is a problem of any of some kinds of stencil, of up to so many points an axis, between walls of any kind;
// those that change with time only if moving.
func randomProblem(t *testing.T, r *rand.Rand, kinds func(dims int) []stencil.Kind, most int, moving bool) *Problem {
	dims := 1 + r.IntN(3)
	size, walls := make([]int, dims), ""
	kind := kinds(dims)[r.IntN(len(kinds(dims)))]
	for a := range size {
		size[a] = 1 + r.IntN(most)
		pairs := []string{"dd", "nn", "pp", "dn", "nd", "td", "nt", "tt"}
		if kind.Shape == stencil.BoxShape || !moving {
			pairs = pairs[:5]
		}
		pair := pairs[r.IntN(len(pairs))]
		if pair != "dd" {
			size[a] = max(2, size[a])
		}
		walls += pair
	}
	real := []kernels.Real{kernels.Float64, kernels.Float32}[r.IntN(2)]
	return of(t, problem(t, size, real, walls), kind)
}

// fits reports whether the set has a device for each part, and subdomains own as many layers as their neighbours need.
func fits(set *testdevices.Set, p *Problem, parts domain.Vec) bool {
	cut, err := domain.Decompose(p.Grid, parts)
	return err == nil && len(cut.Subdomains) <= len(set.Devices) && cut.CheckWidth(p.Width()) == nil
}

// unsuited reports whether a scheme refuses the problem on such devices: walls that change with time, and, by resident on
// GPUs, groups of steps but of stars of radius 1. Any other that it refuses fails a test.
func unsuited(set *testdevices.Set, s scheme.Scheme, p *Problem) bool {
	_, star := p.Stencil.AsStar()
	changes := slices.ContainsFunc(p.Walls[:], func(w Wall) bool { return w.Kind == Dirichlet && w.Value != nil && w.moves() })
	return s.Needs().Steady && changes ||
		s == scheme.Resident && p.Group > 1 && !star && set.Devices[0].Backend == streams.CUDA
}

// solve runs the problem on the first devices of the set and returns its
// solver, which is closed with the test.
func solve(t testing.TB, set *testdevices.Set, p *Problem, h how, o scheme.Options) (*Solver, scheme.Result) {
	t.Helper()
	s := prepare(t, set, p, h)
	res := must(s.Run(t.Context(), h.options(o)))(t)
	return s, res
}

// prepare makes a solver, closed with the test. The test is skipped where the
// set has too few devices.
func prepare(t testing.TB, set *testdevices.Set, p *Problem, h how) *Solver {
	t.Helper()
	s := must(New(t.Context(), p, planFor(t, set, p, h), set.Compiler))(t)
	t.Cleanup(func() { succeeds(t, s.Close()) })
	return s
}

// placed cuts the grid of a problem over the first devices. It skips the test where there are too few.
func placed(t testing.TB, set *testdevices.Set, p *Problem, parts domain.Vec) *halo.Placement {
	t.Helper()
	d := must(domain.Decompose(p.Grid, parts))(t)
	n := len(d.Subdomains)
	if n > len(set.Devices) {
		t.Skipf("SKIPPED: needs %d devices, there are %d", n, len(set.Devices))
	}
	return must(halo.Place(d, set.Devices[:n]))(t)
}

// planFor plans the exchanges of a problem on the devices of a set.
func planFor(t testing.TB, set *testdevices.Set, p *Problem, h how) *scheme.Plan {
	t.Helper()
	return must(p.NewPlan(placed(t, set, p, h.parts), set.Links, h.path))(t)
}

// read returns all owned points, in rank 0 alone.
func read(t testing.TB, s *Solver) []float64 {
	t.Helper()
	v := make([]float64, s.problem.Grid.Points())
	succeeds(t, s.Gather(t.Context(), v, s.problem.Grid.Box()))
	if s.Placement().Processes.Rank > 0 {
		return nil
	}
	return v
}

// compare fails the test at the first point whose bits differ.
func compare(t testing.TB, g domain.Grid, got, want []float64) {
	t.Helper()
	for i := range got {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			x, y, z := i%g.Size[0], i/g.Size[0]%g.Size[1], i/g.Size[0]/g.Size[1]
			t.Fatalf("at (%d, %d, %d): got %v, want %v", x, y, z, got[i], want[i])
		}
	}
}

// wants fails the test unless an error is one of a kind, if that is not nil, and says something; without both, unless there
// is none.
func wants(t testing.TB, err, kind error, says string) {
	t.Helper()
	if err == nil && kind == nil && says == "" {
		return
	}
	if err == nil || kind == nil && says == "" || kind != nil && !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %v with %q", err, kind, says)
	}
}

// must returns a value that was made without an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		test.Check(t, err)
		return v
	}
}

// succeeds fails the test if something failed.
func succeeds(t testing.TB, err error) {
	t.Helper()
	test.Check(t, err)
}
