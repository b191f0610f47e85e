package scheme

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
)

// anyCosts is scheme blocked with random costs of passes, so that steps are divided in any way.
const anyCosts Scheme = "any costs"

// shortened is scheme blocked that counts repeated passes.
type shortened struct {
	*blockedPart
	again *int
}

func (s *shortened) plan(a planRequest) passPlan {
	if a.final && !a.norms {
		*s.again++
	}
	return s.blockedPart.plan(a)
}

// addAnyCosts adds it for a test, with new random costs for each run. It returns the number of repeated
// passes.
func addAnyCosts(t *testing.T, r *rand.Rand) (again *int) {
	again = new(int)
	before := schemes
	schemes = append(schemes[:len(schemes):len(schemes)], func() *definition {
		d := blockedScheme()
		d.name = anyCosts
		d.make = func(x *run, o Options) ([]worker, error) {
			workers, err := newBlockedWithin(x, o, blockedLimits{})
			if err != nil {
				return nil, err
			}
			first := workers[0].(*blockedPart)
			drawCosts(&first.blocked.costs, r)
			workers[0] = &shortened{first, again}
			return workers, nil
		}
		return d
	})
	t.Cleanup(func() { schemes = before })
	return again
}

// drawCosts gives all existing passes random costs: in half of the draws less than all sweeps, so that passes
// are used.
func drawCosts(c *passCosts, r *rand.Rand) {
	sweeps := 1 + float64(100*r.IntN(2))
	c.By[0][1], c.By[1][1], c.Wait = sweeps, sweeps*(1+r.Float64()), r.Float64()*float64(r.IntN(2))
	for d := 2; d <= deepestPass; d++ {
		for norms := range c.By {
			cost := &c.By[norms][d]
			if !math.IsInf(*cost, 1) {
				*cost = float64(d) * r.Float64()
			}
		}
	}
}

// checkedCase is a linear step on any grid with any boundary conditions.
type checkedCase struct {
	grid    domain.Grid
	parts   domain.Vec
	group   int
	real    domain.Element
	kind    stencil.Kind
	stencil stencil.Stencil
	faces   boundary.Faces
	path    p2p.Path
}

func newCheckedCase(t *testing.T, r *rand.Rand, devices int, change float64) (c checkedCase) {
	t.Helper()
	c.path = p2p.Staged
	dims := 2 + r.IntN(2)
	kinds := stencil.Kinds(dims)
	c.kind, c.real = kinds[r.IntN(len(kinds))], []domain.Element{domain.Float64, domain.Float32}[r.IntN(2)]
	c.stencil = must(stencil.HeatOf(c.kind, []float64{1, 1, 1}[:dims], 1, change))(t)
	c.parts = domain.Vec{1, 1, 1}
	c.parts[r.IntN(dims)] = 1 + r.IntN(devices)
	var periodic [3]bool
	alone := c.parts.Product() == 1
	for a := range dims {
		periodic[a] = r.IntN(3) == 0 && (!alone || r.IntN(2) == 0)
	}
	if c.group = 1; !alone || periodic != [3]bool{} {
		c.group = 2 + r.IntN(4)
	}
	var size []int
	for a := range dims {
		radius := c.stencil.AxisRadius(a)
		size = append(size, c.parts[a]*radius*c.group+r.IntN(19)+1)
		low, high := c.wall(r, radius), c.wall(r, radius)
		c.faces[2*a], c.faces[2*a+1] = low, high
	}
	c.grid = must(domain.NewGrid(size, periodic[:len(size)]))(t)
	return c
}

// wall returns a boundary condition that a stencil of a radius supports.
func (c *checkedCase) wall(r *rand.Rand, radius int) (w boundary.Condition) {
	value := r.Float64()
	switch k := r.IntN(5); {
	case k == 0:
		w.Kind = boundary.Neumann
	case k == 1 && c.kind.Shape == stencil.StarShape:
		w.Kind = boundary.Outflow
	case k == 2 && c.kind.Shape == stencil.StarShape:
		w = boundary.Condition{Kind: boundary.Dirichlet, Odd: radius > 1, Profile: func() boundary.Profile {
			return func(values []float64, at domain.Vec, t float64) {
				for i := range values {
					values[i] = value + 1e-3*math.Sin(t+float64(at[0]+i)-float64(at[1]))
				}
			}
		}}
	default:
		w = boundary.Condition{Kind: boundary.Dirichlet, Odd: radius > 1, Values: []float64{value}}
	}
	return w
}

func (c *checkedCase) String() string {
	walls := ""
	for i, f := range c.faces[:2*c.grid.Dims] {
		switch {
		case c.grid.Periodic[i/2]:
			walls += "p"
		case f.Profile != nil:
			walls += "t"
		default:
			walls += string(f.Kind[:1])
		}
	}
	return strings.ReplaceAll(fmt.Sprintf("%v/parts=%v/group=%d/%s/%v/%s", c.grid.Size, c.parts, c.group, c.real, c.kind, walls), " ", "x")
}

// checkedRun is the case prepared for a scheme.
type checkedRun struct {
	u      *Variable
	runner *Runner
	name   Scheme
}

// ready prepares the case; ok is false if its ghosts are not supported.
func (c *checkedCase) ready(t *testing.T, set *testdevices.Set, name Scheme) (made checkedRun, ok bool) {
	t.Helper()
	cut, err1 := domain.Decompose(c.grid, c.parts)
	if err1 != nil {
		t.Fatal(err1)
	}
	place, err1 := halo.Place(cut, set.Devices[:len(cut.Subdomains)])
	width := c.stencil.Radius()
	for a := range c.grid.Dims {
		width.Minus[a] *= c.group
		width.Plus[a] *= c.group
	}
	spec := halo.Spec{Name: "u", Element: c.real, Width: width}
	if c.group > 1 || c.kind.Shape == stencil.BoxShape {
		spec.Connectivity = halo.Corners
	}
	u, err2 := NewVariable(place, spec, 2)
	point, _, err3 := sweep.Linear(c.stencil, c.real)
	succeeds(t, errors.Join(err1, err2, err3))
	t.Cleanup(func() { u.Close() })
	u.Boundary = c.faces
	step := &Step{
		Stages:   []Stage{{Reads: []Access{u.At(0, c.stencil.Footprint()).Named("u")}, Writes: []Access{u.At(1, nil).Named("next")}, Point: &point}},
		Measured: []*Variable{u}, Group: c.group, Length: 0.1,
	}
	plan := must(step.Plan(set.Links, c.path))(t)
	x, err := NewRunner(t.Context(), step, plan, set.Compiler)
	if err != nil {
		if strings.Contains(err.Error(), "to mirror them") {
			return made, false
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return checkedRun{u, x, name}, true
}

// begin sets the variable to a field at step 0.
func (c *checkedRun) begin(t *testing.T) {
	t.Helper()
	c.u.newest.Store(0)
	value := func(p domain.Vec) float64 {
		return math.Sin(float64(p[0]*p[0]+3*p[1]) + math.Cos(float64(7*p[2]-p[1])))
	}
	var err error
	if c.u.Spec.Element == halo.Float32 {
		err = halo.FillPoints(c.u.Level(0), func(p domain.Vec) float32 { return float32(value(p)) })
	} else {
		err = halo.FillPoints(c.u.Level(0), value)
	}
	succeeds(t, errors.Join(err, c.u.SetAll()))
}

func (c *checkedRun) steps(t *testing.T, o Options) Result {
	t.Helper()
	o.Scheme, o.Limit = c.name, testLimit
	res := must(c.runner.Run(t.Context(), o))(t)
	return res
}

// values returns the bits of the newest level.
func (c *checkedRun) values(t *testing.T) (bits []uint64) {
	t.Helper()
	if c.u.Spec.Element == halo.Float32 {
		all := must(halo.ReadAll[float32](c.u.Level(c.u.Newest())))(t)
		for _, v := range all {
			bits = append(bits, uint64(math.Float32bits(v)))
		}
		return bits
	}
	all := must(halo.ReadAll[float64](c.u.Level(c.u.Newest())))(t)
	for _, v := range all {
		bits = append(bits, math.Float64bits(v))
	}
	return bits
}

// sameRuns fails the test unless two schemes stop at the same step, for the same reason, with the same norms
// and fields.
func sameRuns(t *testing.T, got, want *checkedRun, o Options) (steps int64) {
	t.Helper()
	a, b := got.steps(t, o), want.steps(t, o)
	a.Scheme, a.Loop, a.UpdatesPerSecond, a.Bytes = b.Scheme, b.Loop, b.UpdatesPerSecond, b.Bytes
	if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", b) {
		t.Fatalf("at most %d steps, checks every %d, tolerance %v %s:\n%+v, not\n%+v", o.Steps, o.CheckEvery, o.Tolerance, o.Norm, a, b)
	}
	if !reflect.DeepEqual(got.values(t), want.values(t)) {
		t.Fatalf("at most %d steps, checks every %d, tolerance %v %s: different fields after %d steps", o.Steps, o.CheckEvery, o.Tolerance, o.Norm, a.Steps)
	}
	return a.Steps
}

// For any division of steps into passes, a run ends at the same step as without passes, with the same history
// and field, and the next run continues from there: for the tolerance, the last step, or an interval at any
// level of a pass.
func TestRunsEndWithinPasses(t *testing.T) {
	testdevices.InTurn(t, 1, 8)
	r := rand.New(rand.NewPCG(11, 3))
	again := addAnyCosts(t, r)
	testdevices.EachKernel(t, 3, func(t *testing.T, set *testdevices.Set) {
		if set.Devices[0].GoKernels {
			t.Skip("SKIPPED: CPU devices have no passes")
		}
		cases, tries := len(testdevices.Again(2, testdevices.Some(8, testdevices.Numbers(14)))), 14
		if testdevices.OnCPU(set.Devices[0]) {
			if cases, tries = 1, 6; testdevices.Long() { // each compiles a dozen programs
				cases = 8
			}
		}
		eachCase(t, set, r, cases, func() float64 { return 0.05 }, func(t *testing.T, passes, plain *checkedRun) {
			for try := range tries {
				endsWithin(t, passes, plain, 1+int64(try)%5, r)
			}
		})
		if *again < cases {
			t.Errorf("%d passes were repeated in %d cases", *again, cases)
		}
		*again = 0
	})
}

// eachCase draws cases that can be prepared, with steps of some length, for TwoStream and for passes with
// random costs.
func eachCase(t *testing.T, set *testdevices.Set, r *rand.Rand, cases int, length func() float64, run func(t *testing.T, passes, plain *checkedRun)) {
	for i := 0; i < cases; {
		c := newCheckedCase(t, r, len(set.Devices), length())
		plain, ok := c.ready(t, set, TwoStream)
		if !ok {
			continue
		}
		i++
		t.Run(c.String(), func(t *testing.T) {
			passes, _ := c.ready(t, set, anyCosts)
			run(t, &passes, &plain)
		})
	}
}

// endsWithin compares some consecutive runs, which begin at any level.
func endsWithin(t *testing.T, passes, plain *checkedRun, every int64, r *rand.Rand) {
	plain.begin(t)
	long := plain.steps(t, Options{Steps: 30, CheckEvery: 1, History: true}).History
	plain.begin(t)
	passes.begin(t)
	done := int64(0)
	if n := r.IntN(6); n > 0 {
		done = sameRuns(t, passes, plain, Options{Steps: int64(n), CheckEvery: every, History: true})
	}
	o := Options{Steps: 25, CheckEvery: every, History: true, Norm: []Norm{MaxNorm, L2Norm}[r.IntN(2)]}
	aim := long[done+int64(r.IntN(14))].Norms[0] // any level of any pass
	if o.Tolerance = aim.MaxChange; o.Norm == L2Norm {
		o.Tolerance = aim.L2Change
	}
	sameRuns(t, passes, plain, o)
	sameRuns(t, passes, plain, Options{Steps: int64(1 + r.IntN(9)), CheckEvery: every, History: true})
	sameRuns(t, passes, plain, Options{Steps: 2*lookSteps + int64(r.IntN(60)), lookTime: 1})
}

// A run that diverges ends at the same check, within a pass or not.
func TestDivergenceWithinPasses(t *testing.T) {
	testdevices.InTurn(t, 0, 4)
	r := rand.New(rand.NewPCG(5, 8))
	again := addAnyCosts(t, r)
	set := testdevices.CPU(t, 3)
	cases := len(testdevices.Again(1, testdevices.Numbers(4))) // each compiles a dozen programs
	eachCase(t, set, r, cases, func() float64 { return math.Pow(10, 2+30*r.Float64()) }, func(t *testing.T, passes, plain *checkedRun) {
		for every := int64(1); every < 6; every++ {
			plain.begin(t)
			passes.begin(t)
			if n := sameRuns(t, passes, plain, Options{Steps: 400, CheckEvery: every}); n == 400 {
				t.Error("the run does not diverge")
			}
		}
	})
	if *again == 0 {
		t.Error("no pass was repeated")
	}
}
