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
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

const testLimit = 5 * time.Minute

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

// options adds the way to run to options.
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
			for i, order := range append(slices.Clone(name.Needs().Orders), "")[:max(1, len(name.Needs().Orders))] {
				if i == 0 || path != p2p.Direct {
					all = append(all, how{scheme: name, order: order, path: path})
				}
			}
		}
	}
	return all
}

// inGroups returns the ways to run with several steps between two exchanges.
func inGroups() (all []how) {
	for _, h := range ways() {
		if groups(h.scheme) {
			all = append(all, h)
		}
	}
	return all
}

// pathOf returns a path of the scheme.
func pathOf(name scheme.Scheme) p2p.Path { return cmp.Or(name.Needs().Path, p2p.Staged) }

func parse(t testing.TB, src string) *stencil.Expression {
	t.Helper()
	return must(stencil.Parse(src))(t)
}

// problem builds a test problem: a field without symmetries and boundaries of the given kinds, Dirichlet
// boundaries with values that vary along them.
func problem(t testing.TB, size []int, real domain.Element, kinds string) *Problem {
	t.Helper()
	var periodic [3]bool
	p := &Problem{Element: real, Initial: parse(t, "sin(1.3*i+0.7)*cos(2.1*j)+0.01*k*k-0.003*i*j"), TimeStep: 1e-3}
	if len(size) == 1 {
		kinds += "nn"
	}
	for i, face := range domain.Faces(max(2, len(size))) {
		w := &p.Boundary[i]
		w.Kind = kindsOf[strings.ToLower(kinds[i : i+1])[0]]
		switch value := fmt.Sprintf("%d+x*y-2*z+0.1*i", i); kinds[i] {
		case 'd', 'h', 'f', 'g', 'r', 'k', 'K':
			w.Value = parse(t, value)
		case 't', 'H', 'F', 'G', 'R': // with time
			w.Value = parse(t, value+"+sin(900*t+x)")
		case 'p':
			periodic[face.Axis()] = true
		}
		transfer := fmt.Sprint(3 - 0.5*float64(i))
		switch kinds[i] {
		case 'k':
			transfer += "+0.3*sin(i+2*j-k)"
		case 'K':
			transfer += "+0.2*cos(700*t+x-k)"
		}
		w.Transfer, w.Half = parse(t, transfer), kinds[i]|' ' == 'h'
	}
	p.Diffusivity = 0.7
	p.Grid = must(domain.NewGrid(size, periodic[:len(size)]))(t)
	for a := range size {
		p.Spacing = append(p.Spacing, 0.1*float64(a+1))
	}
	p.Stencil = must(starOf(stencil.Heat(p.Spacing, 1, p.TimeStep)))(t)
	return p
}

// equalSpacing sets the paper's stencil with two coefficients.
func equalSpacing(p *Problem) *Problem {
	for a := range p.Spacing {
		p.Spacing[a] = 0.1
	}
	p.Stencil, _ = starOf(stencil.Heat(p.Spacing, 1, p.TimeStep))
	return p
}

// of sets the heat step of a stencil kind, with equal spacings if it needs them.
func of(t testing.TB, p *Problem, k stencil.Kind) *Problem {
	t.Helper()
	if k.Shape == stencil.BoxShape {
		equalSpacing(p)
	}
	p.Stencil = must(stencil.HeatOf(k, p.Spacing, 1, p.TimeStep))(t)
	return p
}

// inGroupsOf returns the problem with a number of steps between two exchanges.
func inGroupsOf(p *Problem, steps int) *Problem {
	grouped := *p
	grouped.Group = steps
	return &grouped
}

// randomProblem is a problem of any of some kinds of stencil, with up to most points per axis and boundaries
// of any kind, time-dependent ones only if moving.
func randomProblem(t *testing.T, r *rand.Rand, kinds func(dims int) []stencil.Kind, most int, moving bool) *Problem {
	dims := 1 + r.IntN(3)
	size, walls := make([]int, dims), ""
	kind := kinds(dims)[r.IntN(len(kinds(dims)))]
	for a := range size {
		size[a] = 1 + r.IntN(most)
		pairs := []string{"dd", "nn", "pp", "dn", "nd", "rf", "go", "hr", "kf", "RF", "GH", "KR", "td", "nt", "tt"}
		if !moving {
			pairs = pairs[:9]
		} else if kind.Shape == stencil.BoxShape {
			pairs = slices.Concat(pairs[1:3], pairs[5:12])
		}
		pair := pairs[r.IntN(len(pairs))]
		if pair != "dd" {
			size[a] = max(2, size[a])
		}
		walls += pair
	}
	real := []domain.Element{domain.Float64, domain.Float32}[r.IntN(2)]
	return of(t, problem(t, size, real, walls), kind)
}

// fits reports whether the set has a device for each part, and subdomains own as many layers as their
// neighbors need.
func fits(set *testdevices.Set, p *Problem, parts domain.Vec) bool {
	cut, err := domain.Decompose(p.Grid, parts)
	return err == nil && len(cut.Subdomains) <= len(set.Devices) && cut.CheckWidth(p.Width()) == nil
}

// unsuited reports whether a scheme refuses the problem on such devices: walls that change with time, and, by resident on
// GPUs, groups of steps but of stars of radius 1 whose ghosts are copies or keep their values. Any other that it refuses fails a test.
func unsuited(set *testdevices.Set, s scheme.Scheme, p *Problem) bool {
	_, star := p.Stencil.AsStar()
	changes := slices.ContainsFunc(p.Boundary[:], Condition.moves)
	faces := p.boundary()
	affine := slices.ContainsFunc(faces[:], func(c boundary.Condition) bool { return c.Affine() })
	return s.Needs().Steady && changes ||
		s == scheme.Resident && p.Group > 1 && (affine || !star && p.Stencil.Points() > 3) && set.Devices[0].Backend == streams.CUDA
}

// solve runs the problem on the first devices of the set and returns its solver, which is closed with the
// test.
func solve(t testing.TB, set *testdevices.Set, p *Problem, h how, o scheme.Options) (*Solver, scheme.Result) {
	t.Helper()
	s := prepare(t, set, p, h)
	res := must(s.Run(t.Context(), h.options(o)))(t)
	return s, res
}

// prepare makes a solver, closed with the test. The test is skipped if the set has too few devices.
func prepare(t testing.TB, set *testdevices.Set, p *Problem, h how) *Solver {
	t.Helper()
	s := must(New(t.Context(), p, planFor(t, set, p, h), set.Compiler))(t)
	t.Cleanup(func() { succeeds(t, s.Close()) })
	return s
}

// placed decomposes the grid of a problem over the first devices. It skips the test if there are too few.
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

// read returns all owned points, on rank 0 only.
func read(t testing.TB, s *Solver) []float64 {
	t.Helper()
	v := make([]float64, s.problem.Grid.Points())
	succeeds(t, s.Gather(t.Context(), 0, v, s.problem.Grid.Box()))
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

// wants fails the test unless an error is of a kind, if that is not nil, and contains a text; without both,
// unless it is nil.
func wants(t testing.TB, err, kind error, says string) {
	t.Helper()
	if err == nil && kind == nil && says == "" {
		return
	}
	if err == nil || kind == nil && says == "" || kind != nil && !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %v with %q", err, kind, says)
	}
}

// must returns a function that returns the value, or fails the test on an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		test.Check(t, err)
		return v
	}
}

// succeeds fails the test on an error.
func succeeds(t testing.TB, err error) {
	t.Helper()
	test.Check(t, err)
}
