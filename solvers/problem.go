// Package solvers solves Laplace, heat and other equations on a grid that is decomposed over several devices. It runs
// steps until the number of iterations is reached, the change is small enough, or the context ends.
//
// A Problem defines the equation. New creates a solver for it, which runs with any scheme of package scheme. The fields
// are bitwise identical for every scheme, message path and number of devices.
package solvers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
)

// Problem is a discretized equation: the field at step 0, and the stencil that computes the field after a step.
type Problem struct {
	Grid     domain.Grid           // points and periodic axes
	Spacing  []float64             // spacing per axis; a grid of one dimension has only the spacing of x
	Stencil  stencil.Stencil       // weights of a step
	Element  domain.Element        // Float32 or Float64
	Boundary [6]Condition          // conditions at x-, x+, y-, y+, z-, z+; those beyond Grid.Dims are ignored
	Initial  *stencil.Expression   // initial field, at t = 0
	TimeStep float64               // length of a step; 0 for problems without time
	Exact    []*stencil.Expression // exact solution of each field, which may use t; nil if unknown; default none
	Sums     sums.Mode             // mode of the sums of norms; default reproducible
	Group    int                   // exchange interval in steps; 0 counts as 1; see scheme.Step

	Diffusivity float64 // diffusivity for flux and Robin walls; 0 counts as 1

	Statistics []Statistic // quantities that Solver.Statistics accumulates; default none

	courant *sweep.Courant // see scheme.Step.Courant

	// Stable is a bound of TimeStep, from the terms of the equation except Ignored; 0: unknown.
	Stable  float64
	Ignored []string // terms that read only the point, such as reactions

	measured string // name of the field whose norms are computed; "": all fields

	name   string            // name of the field; "": "u"
	start  []float64         // coordinate of the start of each axis; nil: 0
	system *system           // set for an Equation that is not a Stencil, and for problems of single variables, see of
	reads  stencil.Footprint // for a single variable: offsets at which it is read
	given  bool              // for a single variable: steps only read it

	parameters map[string]float64 // initial values of parameters that may change
}

// A Statistic is a quantity of a field at each point over time, accumulated from samples.
type Statistic struct {
	Kind  StatisticKind // what is accumulated
	Field string        // one of Problem.Fields
}

// Name returns the name of the statistic, such as "mean_u".
func (s Statistic) Name() string { return string(s.Kind) + "_" + s.Field }

// StatisticKind is a kind of statistics.
type StatisticKind string

// The kinds of statistics. Each is stored in the element of its field. The variance is that of all samples, the sum of
// squares divided by their number, by Welford's recurrence; it also accumulates the mean.
const (
	Mean     StatisticKind = "mean"
	Variance StatisticKind = "variance"
	Min      StatisticKind = "min"
	Max      StatisticKind = "max"
)

var errNoPlan = errors.New("solvers: the problem or its plan is nil")

// NewPlan plans the exchanges of the problem's step over a path. The errors are those of halo.NewPlan.
func (p *Problem) NewPlan(place *halo.Placement, links *p2p.Links, path p2p.Path) (*scheme.Plan, error) {
	var drafts []*scheme.Variable
	for i := range p.variables() {
		drafts = append(drafts, scheme.DraftVariable(place, p.of(i).Field(), p.levels(i)))
	}
	step, err := p.step(drafts)
	if err != nil {
		return nil, err
	}
	return step.Plan(links, path)
}

// firstPlan returns the exchange after the first stage that has one, or nil.
func firstPlan(stages []*halo.Plan) *halo.Plan {
	if i := slices.IndexFunc(stages, func(p *halo.Plan) bool { return p != nil }); i >= 0 {
		return stages[i]
	}
	return nil
}

// specs returns the Specs of all variables, one per level of each variable.
func (p *Problem) specs() (all []halo.Spec) {
	for i := range p.variables() {
		all = append(all, slices.Repeat([]halo.Spec{p.of(i).Field()}, p.levels(i))...)
	}
	return all
}

// levels returns the number of fields of a variable. A step reads one or two levels of a computed variable and writes
// another; other variables have one level.
func (p *Problem) levels(variable int) int {
	switch {
	case variable >= p.computed():
		return 1
	case p.system != nil && len(p.system.reads(variable, -1)) > 0:
		return 3
	}
	return 2
}

// check returns an error if the parts of the problem and the placement are inconsistent.
func (p *Problem) check(place *halo.Placement) error {
	if p == nil || place == nil || place.Decomposition == nil {
		return errors.New("solvers: the problem or its placement is nil")
	}
	if place.Grid != p.Grid {
		return fmt.Errorf("solvers: the placement must be for the grid of the problem")
	}
	return p.checkParts()
}

// MaxGroup is the maximum exchange interval in steps. With two levels per variable, it keeps the number of phases
// within the limit of package scheme.
const MaxGroup = 16

// checkParts returns an error if the parts of the problem are inconsistent.
func (p *Problem) checkParts() error {
	dims := p.Grid.Dims
	if p.Group < 0 || p.Group > MaxGroup {
		return fmt.Errorf("solvers: steps between two exchanges must be between 1 and %d, got %d", MaxGroup, p.Group)
	}
	row := len(p.Spacing) == 1 && dims == 2 && p.Grid.Size[1] == 1
	if len(p.Spacing) != dims && !row || p.system == nil && p.Stencil.Dims != dims {
		return fmt.Errorf("solvers: grid, spacings and stencil must have equal dimensions, got %d, %d and %d",
			dims, len(p.Spacing), p.Stencil.Dims)
	}
	if p.system != nil && p.Initial == nil { // not the problem of a single variable
		for i := range p.variables() {
			if err := p.of(i).checkParts(); err != nil {
				return fmt.Errorf("field %s: %w", p.of(i).name, err)
			}
		}
		return nil
	}
	if !p.Element.IsReal() || p.Initial == nil {
		return fmt.Errorf("solvers: must have a type and an initial field, got %q and %v", p.Element, p.Initial)
	}
	for i, face := range domain.Faces(dims) {
		w := p.Boundary[i]
		if w.Kind == boundary.Given && p.system != nil {
			continue // the variable is only read, so it has no walls
		}
		if (w.Kind == Periodic) != p.Grid.Periodic[face.Axis()] {
			return fmt.Errorf("solvers: face %v must be periodic if and only if its axis is", face)
		}
		if w.Kind != Periodic && !slices.Contains(boundary.Kinds(), w.Kind) {
			return fmt.Errorf("solvers: face %v must be one of %q, or periodic, got %q", face, boundary.Kinds(), w.Kind)
		}
		if w.Kind.Values() == boundary.Required && w.Value == nil {
			return fmt.Errorf("solvers: face %v must have a value", face)
		}
		if p.corners() > halo.Faces && w.moves() && p.hasDirichlet() {
			return fmt.Errorf("solvers: the value at face %v varies in time: stencils must be along the axes "+
				"where a Dirichlet face is at the first ghosts, and this one has %d points", face, len(p.footprint()))
		}
		if p.radius(face.Axis()) > 2 {
			return fmt.Errorf("solvers: the stencil must reach at most 2 points along %c, got %d",
				"xyz"[face.Axis()], p.radius(face.Axis()))
		}
	}
	return nil
}

// hasDirichlet reports whether a wall sets the values of ghosts.
func (p *Problem) hasDirichlet() bool {
	return slices.ContainsFunc(p.Boundary[:2*p.Grid.Dims], Condition.sets)
}

// boundary returns the conditions at the faces of the grid. Values that do not change with time are set once, see fill.
func (p *Problem) boundary() (all boundary.Faces) {
	for i, face := range domain.Faces(p.Grid.Dims) {
		w := p.Boundary[i]
		if w.Kind == Periodic {
			continue
		}
		all[i] = p.condition(i)
		c := &all[i]
		c.Odd = w.sets() && p.radius(face.Axis()) > 1
		if w.Value != nil && c.Kind.Values() != boundary.None && (w.moves() || !w.sets()) {
			c.Profile, c.Uniform, c.Steady = p.profile(i, w.Value, !w.sets()), !w.Value.Varies(), !w.moves()
		}
		if w.Kind == boundary.Robin && w.Transfer != nil && !w.Transfer.IsNumber() {
			c.Transfers = p.profile(i, w.Transfer, true)
			c.Uniform = c.Uniform && !w.Transfer.Varies()
		}
	}
	return all
}

// condition returns the condition at a face that is not periodic, without its values.
func (p *Problem) condition(i int) boundary.Condition {
	c := boundary.Condition{Kind: p.Boundary[i].Kind, Half: p.Boundary[i].Half, Diffusivity: p.Diffusivity}
	if h := p.Boundary[i].Transfer; h != nil && h.IsNumber() {
		c.Transfer = h.NewEvaluator(p.coordinates(0)).At(0, 0, 0)
	}
	if i/2 < len(p.Spacing) { // a grid of one dimension has one spacing
		c.Spacing = p.Spacing[i/2]
	}
	return c
}

// profile returns the values of an expression along a face: at the first ghosts, or half a spacing closer to the grid.
func (p *Problem) profile(i int, of *stencil.Expression, half bool) func() boundary.Profile {
	at := p.coordinates(0)
	if half {
		at.Shift[i/2] += 0.5 - float64(i%2)
	}
	return func() boundary.Profile {
		ev := of.NewEvaluator(at)
		return func(values []float64, at domain.Vec, t float64) {
			ev.SetTime(t)
			ev.Row(values, at[0], at[1], at[2])
		}
	}
}

// step returns the time step of the variables.
func (p *Problem) step(variables []*scheme.Variable) (*scheme.Step, error) {
	step := &scheme.Step{Length: p.TimeStep, Measured: variables[:p.computed()], Sums: p.Sums, Group: p.Group}
	if i := slices.Index(p.Fields(), p.measured); i >= 0 {
		step.Measured = variables[i : i+1]
	}
	if p.system != nil {
		step.Stages, step.Courant = p.stages(p.system.stages, variables), p.courant
		return step, nil
	}
	point, accesses, err := sweep.Linear(p.Stencil, p.Element)
	if err != nil {
		return nil, err
	}
	step.Stages = []scheme.Stage{{
		Name: "sweep", Point: &point,
		Reads:  []scheme.Access{variables[0].At(0, accesses[0].Footprint).Named(accesses[0].Name)},
		Writes: []scheme.Access{variables[0].At(1, nil).Named(accesses[1].Name)},
	}}
	return step, nil
}

// stages converts the stages of a system.
func (p *Problem) stages(of []systemStage, variables []*scheme.Variable) (all []scheme.Stage) {
	for i := range of {
		stage := p.stage(&of[i], variables)
		if stage.Name = "sweep"; len(of) > 1 {
			stage.Name = fmt.Sprintf("sweep %d", i+1)
		}
		all = append(all, stage)
	}
	return all
}

func (p *Problem) stage(of *systemStage, variables []*scheme.Variable) scheme.Stage {
	s := p.system
	point, reads, results := sweep.Formula(of.form, p.Grid.Dims, p.Element)
	if of.by != nil {
		point, reads = sweep.Measure(of.form, of.by, p.Grid.Dims, p.Element)
	}
	stage := scheme.Stage{Point: &point, Time: of.time}
	if values := p.valuesOf(of); values != nil {
		point.Parameters = values.Parameters(p.parameters)
		if of.form.Changes() {
			stage.Parameters, point.Values = values.Give, values
		}
	}
	read := func(a array) {
		next := reads[len(stage.Reads)]
		stage.Reads = append(stage.Reads, variables[a.variable].At(a.level, next.Footprint).Named(next.Name))
	}
	for number, footprint := range of.form.Fields {
		if len(footprint) > 0 {
			read(s.arrays[number])
		}
	}
	for _, g := range of.form.Given {
		read(array{len(s.fields) + slices.Index(s.given, g.Expression), 0})
	}
	for k, number := range of.writes {
		a := s.arrays[number]
		stage.Writes = append(stage.Writes, variables[a.variable].At(a.level, nil).Named(results[k].Name))
	}
	return stage
}

// valuesOf returns the values of a stage's formulas that depend only on the time, the step and parameters; nil if there
// are none.
func (p *Problem) valuesOf(stage *systemStage) *sweep.Values {
	if len(stage.form.Values) == 0 {
		return nil
	}
	return sweep.NewValues(stage.form, p.Element, p.coordinates(0), stage.begins)
}

// ResidualScale returns the ratio of the residual at a point to the change in a step at that point. The residual of the
// Laplace equation is the Laplacian of the field before the step; the residual of the heat equation is the rate of
// change.
func (p *Problem) ResidualScale() float64 {
	if p.TimeStep > 0 {
		return 1 / p.TimeStep
	}
	return 1 / p.Stencil.Rate(p.Spacing)
}

// footprint returns the offsets at which a step reads the field or, for a system, any variable.
func (p *Problem) footprint() stencil.Footprint {
	switch {
	case p.reads != nil:
		return p.reads
	case p.system == nil:
		return p.Stencil.Footprint()
	}
	var all stencil.Footprint
	for i := range p.variables() {
		all = all.Join(p.of(i).reads)
	}
	return all
}

// reach returns the radius of the footprint, symmetric along each axis.
func (p *Problem) reach() domain.Radius { return bothSides(p.footprint()) }

func bothSides(all stencil.Footprint) (r domain.Radius) {
	f := all.Radius()
	for a := range 3 {
		r.Minus[a] = max(f.Minus[a], f.Plus[a])
	}
	r.Plus = r.Minus
	return r
}

// stageReaches returns the radius of each stage of a step.
func (p *Problem) stageReaches() []domain.Radius {
	if p.system == nil {
		return []domain.Radius{p.reach()}
	}
	all := make([]domain.Radius, len(p.system.stages))
	for i := range all {
		all[i] = bothSides(p.system.stages[i].form.Footprint())
	}
	return all
}

// Width returns the width of the ghost regions: the sum of the radii of all stages of the steps between two exchanges.
func (p *Problem) Width() (w domain.Radius) {
	if p.Group <= 1 {
		return p.reach()
	}
	for _, r := range p.stageReaches() { // all variables are swept over the same box
		for a := range 3 {
			w.Minus[a], w.Plus[a] = w.Minus[a]+p.Group*r.Minus[a], w.Plus[a]+p.Group*r.Plus[a]
		}
	}
	return w
}

// CheckBoundary returns an error if a subdomain of the decomposition has fewer layers than Neumann boundaries mirror.
func (p *Problem) CheckBoundary(cut *domain.Decomposition) error {
	for i := range p.written() {
		if err := p.of(i).checkMirrors(cut); err != nil {
			return err
		}
	}
	return nil
}

func (p *Problem) checkMirrors(cut *domain.Decomposition) error {
	r := p.reach()
	for _, side := range domain.Faces(p.Grid.Dims) {
		a := side.Axis()
		wall, layers := 2*a, r.Minus[a]
		if side.Positive() {
			wall, layers = 2*a+1, r.Plus[a]
		}
		c := p.condition(wall)
		if err := c.CheckMirror(cut, side, layers); err != nil {
			return fmt.Errorf("face %v: %w", side, err)
		}
	}
	return nil
}

// Field returns the Spec of the field that a solver sweeps; for a system, the first field. Swept ghosts include edges
// and corners.
func (p *Problem) Field() halo.Spec {
	if p.system != nil && p.reads == nil {
		p = p.of(0)
	}
	s := halo.Spec{Name: cmp.Or(p.name, "u"), Element: p.Element, Width: p.Width(), Connectivity: p.corners()}
	if p.Group > 1 {
		s.Connectivity = halo.Corners
	}
	if p.given {
		for a := range p.Grid.Dims {
			s.Constant = append(s.Constant, !p.Initial.VariesAlong(a))
		}
	}
	return s
}

// radius returns the radius of the stencil along an axis.
func (p *Problem) radius(axis int) int { return p.reach().Plus[axis] }

// corners returns which neighbors own points that the stencil reads.
func (p *Problem) corners() halo.Connectivity {
	return halo.Faces + halo.Connectivity(max(1, p.footprint().Axes())-1)
}

// coordinates returns the coordinates of the grid for expressions at step n, see Axis.
func (p *Problem) coordinates(n int64) stencil.Coordinates {
	c := stencil.Coordinates{Size: p.Grid.Size, Time: float64(n) * p.TimeStep}
	for a, h := range p.Spacing {
		if c.Spacing[a], c.Shift[a] = h, p.axis(a).distance(0); p.start != nil {
			c.Shift[a] += p.start[a] / h
		}
	}
	return c
}

// axis returns an axis of the grid.
func (p *Problem) axis(a int) Axis {
	walls := &p.Boundary
	if p.system != nil { // all fields have walls of these kinds
		walls = &p.system.fields[0].walls
	}
	return Axis{p.Grid.Size[a], [2]Condition(walls[2*a : 2*a+2])}
}

// Coordinate returns the coordinate of the points with the given index on an axis.
func (p *Problem) Coordinate(axis, index int) float64 {
	c := p.coordinates(0)
	return c.At(axis, index)
}

// First returns the coordinates of the first point.
func (p *Problem) First() (all []float64) {
	for a := range p.Spacing {
		all = append(all, p.Coordinate(a, 0))
	}
	return all
}

// Wall returns a function that evaluates the value of a Dirichlet wall of a field at a time, and how many spacings the
// wall is from the nearest points. Faces are in the order of domain.Faces. The function takes the indices of a nearest
// point, and is not safe for concurrent use. It is nil for other walls, and for walls that change with time if the time
// is unknown: NaN.
func (p *Problem) Wall(field, face int, t float64) (value func(at domain.Vec) float64, distance float64) {
	w, axis, end := p.of(field).Boundary[face], face/2, face%2
	if w.Kind != Dirichlet || w.Value == nil || math.IsNaN(t) && w.moves() {
		return nil, 0
	}
	c := p.coordinates(0)
	distance = p.axis(axis).distance(end)
	c.Shift[axis] += (distance - 1) * float64(2*end-1)
	ev := w.Value.NewEvaluator(c)
	ev.SetTime(t)
	return func(at domain.Vec) float64 {
		at[axis] += 2*end - 1
		return ev.At(at[0], at[1], at[2])
	}, distance
}

// Condition is the boundary condition of one face of the grid.
type Condition struct {
	Kind     BoundaryKind        // kind of the condition
	Value    *stencil.Expression // value for kinds that have one, g of boundary.Kind; may use t; default nil
	Transfer *stencil.Expression // transfer coefficient h of a Robin wall; may use t; nil: 0
	Half     bool                // a Dirichlet wall is half a spacing from the nearest point; default false
}

// BoundaryKind is a kind of boundary condition: one of boundary.Kinds, or Periodic.
type BoundaryKind = boundary.Kind

// The kinds of walls. Axis describes their positions. A Dirichlet wall is at the position of the first ghosts, which
// have its value there; if the value changes with time, it is taken at the time of the field that the ghosts belong to.
// If the stencil has radius 2, a ghost of the second layer is twice the first ghost minus the owned point before it, as
// for a field that is odd about the wall. All other walls, and Dirichlet walls with Half, are half a spacing from the
// nearest point, see boundary.Kind. Ghosts behind a Neumann wall without a value mirror the owned points, so the flux
// through the wall is zero and sums are conserved. A Periodic face connects to the opposite face of the grid.
//
// Stencils of second order keep their order with all of them. Stencils of fourth order keep it at Neumann boundaries,
// and at Dirichlet boundaries across which the second derivative of the field is 0, as for constant boundary values. At
// other Dirichlet boundaries they are of second order.
//
// For edges and corners, periodic axes are resolved first. If several Dirichlet walls set the same ghost, the wall of
// the last axis applies. The other walls follow in the order x, y, z.
const (
	Dirichlet              = boundary.Dirichlet
	Neumann                = boundary.Neumann
	Periodic  BoundaryKind = "periodic"
)

// sets reports whether the wall sets the values of ghosts.
func (w Condition) sets() bool { return w.Kind == Dirichlet && !w.Half }

// moves reports whether the wall's value changes with time.
func (w Condition) moves() bool {
	uses := func(e *stencil.Expression) bool { return e != nil && e.Uses("t") }
	return w.Kind.Values() != boundary.None && (uses(w.Value) || w.Kind == boundary.Robin && uses(w.Transfer))
}

// distance returns the distance of the wall at an end of an axis from the nearest point, in spacings. Problem.check
// rejects unknown kinds.
func (a Axis) distance(end int) float64 {
	c := boundary.Condition{Kind: a.Ends[end].Kind, Half: a.Ends[end].Half}
	if c.Kind == Periodic {
		return float64(end)
	}
	d, err := c.Distance()
	if err != nil {
		return math.NaN()
	}
	return d
}

// Axis describes the points of one axis of a grid and the walls at its two ends. It runs from end 0, at coordinate 0,
// to end 1. The first ghosts behind a Dirichlet wall have the value of the wall, so the wall is one spacing from the
// nearest point. Other walls, and Dirichlet walls with Half, are half a spacing from it, midway between that point and
// its ghost. A periodic axis begins at its first point and ends where that point repeats.
type Axis struct {
	Points int          // number of points
	Ends   [2]Condition // conditions at ends 0 and 1; only Kind and Half are used
}

// UnitSpacing returns the spacing for which the axis has length 1.
func (a Axis) UnitSpacing() float64 {
	return 1 / (a.distance(0) + float64(a.Points-1) + a.distance(1))
}

// system describes what the steps of an Equation read and write.
type system struct {
	fields []systemField         // variables that stages write, first those of Equation.Fields
	named  int                   // number of Equation.Fields
	given  []*stencil.Expression // variables that stages only read
	arrays []array               // arrays of formulas, by number
	stages []systemStage
	start  []systemStage // stages of Solver.start; nil if there are none
}

// array is a level of a variable, as in scheme.Access.
type array struct{ variable, level int }

// systemField is a variable that stages write.
type systemField struct {
	name     string
	initial  *stencil.Expression
	previous *stencil.Expression // value one step before; nil: as initial; if system.start is set, the rate
	walls    [6]Condition
}

// systemStage is a stage of a step.
type systemStage struct {
	form   *stencil.Form
	writes []int             // array of each result
	time   float64           // see scheme.Stage.Time
	by     []sweep.Operation // reductions of the results, in place of writes
	begins float64           // time at which formulas are evaluated, in steps from the beginning of the step
}

// reads returns the offsets at which stages read a level of a variable.
func (s *system) reads(variable, level int) (all stencil.Footprint) {
	for i := range s.stages {
		form := s.stages[i].form
		for number, reads := range form.Fields {
			if s.arrays[number] == (array{variable, level}) {
				all = all.Join(reads)
			}
		}
		for _, g := range form.Given {
			if variable >= len(s.fields) && g.Expression == s.given[variable-len(s.fields)] {
				all = all.Join(g.Reads)
			}
		}
	}
	return all
}

// Steps returns the number of steps that a problem needs to reach a time.
func (p *Problem) Steps(until float64) int64 {
	return int64(math.Ceil(until / p.TimeStep * (1 - 1e-12)))
}

// variables returns the number of variables of a step: computed fields first, then other variables that the step
// writes, then variables that it only reads.
func (p *Problem) variables() int {
	if p.system == nil {
		return 1
	}
	return len(p.system.fields) + len(p.system.given)
}

// computed returns the number of variables that are fields of the problem.
func (p *Problem) computed() int {
	if p.system == nil {
		return 1
	}
	return p.system.named
}

// written returns the number of variables that a step writes.
func (p *Problem) written() int {
	if p.system == nil {
		return 1
	}
	return len(p.system.fields)
}

// Fields returns the names of the fields that a step computes.
func (p *Problem) Fields() (names []string) {
	if p.system == nil {
		return []string{p.Field().Name}
	}
	for _, f := range p.system.fields[:p.system.named] {
		names = append(names, f.name)
	}
	return names
}

// of returns the problem of a single variable: its initial field, its walls, and the offsets at which it is read.
func (p *Problem) of(variable int) *Problem {
	if p.system == nil {
		return p
	}
	one := *p
	one.reads = stencil.Point()
	for level := range 3 {
		one.reads = one.reads.Join(p.system.reads(variable, level-1))
	}
	if given := variable - len(p.system.fields); given >= 0 {
		one.name, one.Initial, one.given = fmt.Sprintf("given%d", given), p.system.given[given], true
		for i := range one.Boundary {
			if one.Boundary[i].Kind = boundary.Given; p.Grid.Periodic[i/2] {
				one.Boundary[i].Kind = Periodic
			}
		}
	} else {
		field := p.system.fields[variable]
		one.name, one.Initial, one.Boundary = field.name, field.initial, field.walls
	}
	return &one
}

// before returns the problem of a single variable one step before the start, see systemField.previous; nil if the
// variable has the same values as at the start.
func (p *Problem) before(variable int) *Problem {
	if p.system == nil || variable >= len(p.system.fields) || p.system.fields[variable].previous == nil {
		return nil
	}
	one := p.of(variable)
	one.name, one.Initial = "previous "+one.name, p.system.fields[variable].previous
	return one
}
