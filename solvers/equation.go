package solvers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
)

// Equation is a system of partial differential equations of first or second order in time, or of update formulas for
// the next values, written in the language of docs/reference/equations.md. Problem converts it to a problem, which can
// be passed to Open and New.
type Equation struct {
	Size    []int          // points per axis, 1 to 3 axes
	Start   []float64      // start coordinate of each axis; nil: 0
	End     []float64      // end coordinate of each axis; nil: computed from Spacing
	Spacing []float64      // distance between points per axis; nil: from End, or such that each axis has length 1
	Element domain.Element // type of all fields: float32 or float64
	Fields  []EquationFor  // fields with their equations, at least one

	Parameters map[string]float64 // numbers by name
	Variable   []string           // Parameters that Solver.SetParameters may change; only formulas may use them
	Constants  []Definition       // constant fields; each may use the ones before it
	Let        []Definition       // formulas that are substituted for their names; each may use the ones before it
	Define     []Stored           // formulas that are stored and exchanged; each may use the ones before it
	Stages     [][]Definition     // stages of a step, each with new values of fields; replaces the formulas of Fields

	Integrator Integrator // integration method; default Euler, or Leapfrog with Acceleration; ignored with Update

	TimeStep float64 // length of a step; 0: 0.9 times the largest stable step, or 1 with Update or Stages without dt
	Force    bool    // accept TimeStep even if it is known to be unstable
	Until    float64 // if positive, end time of the run: TimeStep is reduced so that a step ends there, see Steps

	// Speed, if set, replaces TimeStep: the length of each step is CFL times the smallest spacing over the largest
	// value of this formula of the fields at the beginning of the step, and the last step ends at Until.
	Speed string
	CFL   float64 // Courant number, with Speed

	Sums  sums.Mode // mode of the sums of norms; default reproducible
	Group int       // exchange interval in steps; 0 counts as 1

	Measured string // name of the field whose norms are computed; "": all fields

	Open func(name string) (File, error) // opens files named in formulas and expressions; nil: files are not allowed
}

// safety is the default TimeStep of an Equation, as a fraction of the largest stable step.
const safety = 0.9

// EquationFor is a field and its equation.
type EquationFor struct {
	Name string // name in formulas, required

	// Exactly one of these formulas is set, the same one for all fields; none with Equation.Stages.
	Rate         string // derivative with respect to time
	Acceleration string // second derivative with respect to time
	Update       string // value after the next step

	Initial     string           // expression for the value at t = 0, required
	InitialRate string           // expression for the derivative at t = 0, with Acceleration; "": 0
	Exact       string           // expression for the exact solution, see Problem.Exact; "": unknown
	Previous    string           // expression for the value one step before t = 0, if Update uses previous; "": Initial
	Boundary    [6]ConditionText // conditions at x-, x+, y-, y+, z-, z+, as in Problem.Boundary
}

// Stored is a named formula whose values are stored, so that operators can be applied to it.
type Stored struct {
	Definition
	Boundary [6]ConditionText // conditions, as for fields; "": periodic along periodic axes, Neumann along others
}

// The forms of equations, named as in a config.
const (
	rates         = "equations"
	accelerations = "accelerations"
	updates       = "update"
	stages        = "stages"
)

// formula returns the formula of a field in the given form.
func (f *EquationFor) formula(form string) string {
	return map[string]string{rates: f.Rate, accelerations: f.Acceleration, updates: f.Update}[form]
}

// form returns the form of the equations, which is that of the first field.
func (e *Equation) form() string {
	switch first := &e.Fields[0]; {
	case len(e.Stages) > 0:
		return stages
	case first.Update != "":
		return updates
	case first.Acceleration != "":
		return accelerations
	}
	return rates
}

// ConditionText is a Condition whose value is text.
type ConditionText struct {
	Kind     BoundaryKind // kind of the condition
	Value    string       // expression, for kinds with a value
	Transfer string       // expression for the transfer coefficient h of a Robin wall; "": 0
	Half     bool         // a Dirichlet wall is half a spacing from the nearest point; default: if another field's is

	// Diffusivity is an expression for D of flux and Robin walls; "": that of the only diffusion along the axis in the
	// rate or acceleration of the field, such as D*lap(u) or div(D, u).
	Diffusivity string
}

// Definition is a formula with a name.
type Definition struct {
	Name, Formula string // both required
}

// PartError is an error in one part of an Equation. Parts are named as in a config: "equations.u".
type PartError struct {
	Part string // key of the part
	Err  error  // cause
}

// Error names the part and the cause.
func (e *PartError) Error() string { return fmt.Sprintf("solvers: %s: %v", e.Part, e.Err) }

// Unwrap returns the cause.
func (e *PartError) Unwrap() error { return e.Err }

// equationReader parses an equation and collects the errors.
type equationReader struct {
	*Equation
	stageMaker
	p      *Problem
	files  map[string]*placedFile
	half   [6]bool // faces that are half a spacing from the nearest point, as a face that is not Dirichlet is
	errors []error
}

// note records an error in a part.
func (r *equationReader) note(part string, err error) {
	if err != nil {
		r.errors = append(r.errors, &PartError{part, err})
	}
}

// Problem converts the equation to a problem. It reports the errors of all parts, as PartErrors.
func (e *Equation) Problem() (*Problem, error) {
	r := &equationReader{Equation: e}
	if len(e.Fields) == 0 {
		r.note("fields", errors.New("must have at least one field"))
	} else if r.grid(); len(r.errors) == 0 {
		r.names()
		r.fields()
	}
	return r.p, errors.Join(r.errors...)
}

// grid creates the problem with its grid.
func (r *equationReader) grid() {
	first := &r.Fields[0]
	periodic := make([]bool, len(r.Size))
	for a := range periodic {
		periodic[a] = first.Boundary[2*a].Kind == Periodic
	}
	grid, err := domain.NewGrid(r.Size, periodic)
	if err != nil {
		r.note("grid.size", err)
		return
	}
	for name, list := range map[string][]float64{"start": r.Start, "end": r.End, "spacing": r.Spacing} {
		if err := domain.CheckPerAxis(name, len(list), len(r.Size)); err != nil {
			r.note("grid."+name, err)
			return
		}
	}
	r.p = &Problem{
		Grid: grid, Element: r.Element, Sums: r.Sums, Group: r.Group, TimeStep: r.TimeStep,
		system: &system{named: len(r.Fields)}, measured: r.Measured,
	}
	for i := range r.Fields {
		field := &r.Fields[i]
		for k, face := range domain.Faces(len(r.Size)) {
			kind, other := field.Boundary[k].Kind, first.Boundary[k].Kind
			if kind != other && (kind == Periodic || other == Periodic) {
				r.note("fields."+field.Name+".boundary", fmt.Errorf(
					"must have the periodic faces of the other fields, and %v is %s, not %s", face, kind, other))
			}
			r.half[k] = r.half[k] || kind != Periodic && kind != Dirichlet || field.Boundary[k].Half
		}
	}
	for i := range r.Fields {
		field := &r.Fields[i]
		r.p.system.fields = append(r.p.system.fields, systemField{name: field.Name, walls: r.kinds(field)})
	}
	r.p.Spacing = r.Spacing
	if r.Spacing == nil {
		for a := range r.Size {
			h := r.p.axis(a).UnitSpacing()
			if r.End != nil {
				h *= r.End[a] - r.start(a)
			}
			if !(h > 0) || math.IsInf(h, 0) {
				r.note("grid.end", fmt.Errorf("must be beyond the start of each axis, got %v after %v", r.End[a],
					r.start(a)))
				return
			}
			r.p.Spacing = append(r.p.Spacing, h)
		}
	}
	if all := r.integrators(); !slices.Contains(all, r.integrator()) {
		r.note("time.integrator", fmt.Errorf("must be one of %q with %s, got %q", all, r.form(), r.Integrator))
	}
	r.p.start = r.Start
	c := r.p.coordinates(0)
	r.stageMaker = stageMaker{sheet: stencil.NewSheet(len(r.Size), c), system: r.p.system, element: r.Element}
	if r.Open != nil {
		r.sheet.Files = r.file
	}
}

// file opens a file that a formula names; each file is opened once.
func (r *equationReader) file(name string, linear bool) (stencil.Rows, error) {
	key := fmt.Sprint(name, linear)
	if known := r.files[key]; known != nil {
		return known, nil
	}
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	placed, err := r.p.place(f, name, linear, r.Size)
	if err != nil {
		return nil, err
	}
	if r.files == nil {
		r.files = map[string]*placedFile{}
	}
	r.files[key] = placed
	return placed, nil
}

func (r *equationReader) start(axis int) float64 {
	if r.Start == nil {
		return 0
	}
	return r.Start[axis]
}

// kinds returns the walls of a field without their values.
func (r *equationReader) kinds(f *EquationFor) (all [6]Condition) {
	for i, face := range domain.Faces(3) {
		all[i].Half = f.Boundary[i].Half || r.half[i]
		if all[i].Kind = f.Boundary[i].Kind; face.Axis() >= len(r.Size) {
			all[i].Kind = Neumann // the grid does not have this axis, and no operator reads along it
		}
	}
	return all
}

// names declares all names.
func (r *equationReader) names() {
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		declare := r.sheet.Number
		if slices.Contains(r.Variable, name) {
			declare = r.sheet.Variable
		}
		r.note("parameters."+name, declare(name, r.Parameters[name]))
	}
	r.p.parameters = map[string]float64{}
	for _, name := range r.Variable {
		value, ok := r.Parameters[name]
		if !ok {
			r.note("parameters."+name, errors.New("must be set: Equation.Variable names it"))
		}
		r.p.parameters[name] = value
	}
	for _, c := range r.Constants {
		r.note("constants."+c.Name, r.sheet.Let(c.Name, c.Formula, true))
	}
	for i, f := range r.Fields {
		r.note("fields."+f.Name, r.sheet.Field(f.Name))
		r.p.system.arrays = append(r.p.system.arrays, array{i, 0})
	}
	switch r.form() {
	case accelerations:
		for i := range r.Fields {
			r.before = append(r.before, r.array(i, -1))
		}
	case updates:
		r.sheet.Updates()
		for i := range r.Fields {
			r.p.system.arrays = append(r.p.system.arrays, array{i, -1})
		}
	}
	for i := range r.Fields {
		r.next = append(r.next, r.array(i, 1))
	}
	for _, d := range r.Define {
		r.note("define."+d.Name, r.store(d.Name, r.wallsOfStored(&d)))
	}
	for _, l := range r.Let {
		r.note("let."+l.Name, r.sheet.Let(l.Name, l.Formula, false))
	}
	for i, d := range r.Define {
		formula, err := r.sheet.Formula(d.Formula)
		r.note("define."+d.Name, err)
		if err == nil {
			r.note("define."+d.Name, r.define(i, formula))
		}
		r.values("define."+d.Name, d.Boundary, len(r.Fields)+i, noRate)
	}
}

// wallsOfStored returns the walls of a stored formula, which are at the same positions as the walls of the fields.
func (r *equationReader) wallsOfStored(d *Stored) [6]Condition {
	walls := r.kinds(&EquationFor{Boundary: d.Boundary})
	for i, face := range domain.Faces(len(r.Size)) {
		axis := r.p.axis(face.Axis())
		if walls[i].Kind == "" {
			if walls[i].Kind = Neumann; axis.Ends[0].Kind == Periodic {
				walls[i].Kind = Periodic
			}
		}
		if (walls[i].Kind == Periodic) != (axis.Ends[0].Kind == Periodic) {
			r.note(fmt.Sprintf("define.%s.boundary.%v", d.Name, face), errors.New("must be periodic if the fields are"))
		}
		walls[i].Half = walls[i].Half || axis.distance(i%2) != 1
	}
	return walls
}

// These stand for a formula where there is none.
const (
	noRate  = -1 // the field has no rate or acceleration
	unknown = -2 // the formula has an error, which is reported
)

// values parses the values of walls of a field. The formula is its rate or acceleration, noRate or unknown.
func (r *equationReader) values(part string, texts [6]ConditionText, field, formula int) {
	for k, face := range domain.Faces(len(r.Size)) {
		text, to, at := texts[k], &r.p.system.fields[field].walls[k], fmt.Sprintf("%s.boundary.%v", part, face)
		one, _ := r.sheet.Value("1")
		by, d, ok := one, one, true
		if text.Kind == boundary.Flux || text.Kind == boundary.Robin {
			var err error
			if text.Diffusivity != "" {
				if d, err = r.sheet.Value(text.Diffusivity); err != nil {
					r.note(at, fmt.Errorf("in D: %w", err))
				}
			} else if ok = formula == unknown; formula >= 0 {
				d, ok = r.sheet.Diffusivity(formula, field, face.Axis())
			}
			if !ok {
				r.note(at, errNoDiffusivity[text.Kind])
				continue
			}
			if by = d; text.Kind == boundary.Flux && d != one {
				to.Kind = Neumann
			}
		}
		read := func(text string, by int, to **stencil.Expression) {
			if text != "" {
				value, err := r.sheet.Value(text)
				r.note(at, err)
				*to = r.sheet.Ratio(text, value, by)
			}
		}
		if text.Kind == boundary.Robin {
			read(text.Value, one, &to.Value)
		} else {
			read(text.Value, by, &to.Value)
		}
		read(text.Transfer, by, &to.Transfer)
	}
}

// errNoDiffusivity are the errors of walls without D.
var errNoDiffusivity = map[BoundaryKind]error{
	boundary.Flux: errors.New("must have a D, as {flux: {value: 0.1, D: 1}}: D du/dn = value, and the equation has no " +
		"single D*lap(u) or div(D, u); for du/dn = value write {neumann: value}"),
	boundary.Robin: errors.New("must have a D, as {robin: {h: 1, ambient: 0, D: 1}}: D du/dn = h*(ambient - u), and the " +
		"equation has no single D*lap(u) or div(D, u)"),
}

// fields parses the equation, initial value and boundary of each field.
func (r *equationReader) fields() {
	var formulas []int
	form := r.form()
	for i, f := range r.Fields {
		formula, err := 0, error(nil)
		if form != stages {
			formula, err = r.sheet.Formula(f.formula(form))
			r.note(form+"."+f.Name, err)
		}
		rate := formula
		if form == updates || form == stages {
			rate = noRate
		} else if err != nil {
			rate = unknown
		}
		if f.Rate+f.Acceleration+f.Update != f.formula(form) {
			r.note(form+"."+f.Name, errors.New("must be the only form of equations"))
		}
		formulas = append(formulas, formula)
		field := &r.p.system.fields[i]
		if f.Previous != "" {
			field.previous, err = r.sheet.Expression(f.Previous)
			r.note("fields."+f.Name+".previous", err)
		}
		if form == accelerations {
			field.previous, err = r.sheet.Expression(cmp.Or(f.InitialRate, "0"))
			r.note("fields."+f.Name+".rate", err)
		}
		var exact *stencil.Expression
		if f.Exact != "" {
			exact, err = r.sheet.Expression(f.Exact)
			r.note("exact."+f.Name, err)
		}
		r.p.Exact = append(r.p.Exact, exact)
		field.initial, err = r.sheet.Expression(f.Initial)
		r.note("fields."+f.Name+".initial", err)
		r.values("fields."+f.Name, f.Boundary, i, rate)
	}
	inStages, speed := r.stages(), r.speed()
	if len(r.errors) > 0 {
		return
	}
	switch {
	case r.Speed != "":
	case form == updates || form == stages:
		var all []int
		if form == updates {
			all = append(all, formulas...)
		}
		for _, of := range r.stored {
			all = append(all, of.formula)
		}
		for _, byField := range inStages {
			all = slices.AppendSeq(all, maps.Values(byField))
		}
		if r.TimeStep == 0 && slices.ContainsFunc(all, func(f int) bool { return r.sheet.Uses(f, "dt") }) {
			r.note("time.dt", fmt.Errorf("must be a number: formulas of %s use dt", form))
		}
		r.p.TimeStep = cmp.Or(r.p.TimeStep, 1)
	default:
		r.timeStep(formulas)
	}
	if len(r.errors) > 0 {
		return
	}
	s, ok := r.sheet.Linear(formulas[0], r.p.TimeStep)
	if ok && form == rates && r.integrator() == Euler && r.Speed == "" {
		field := r.p.system.fields[0]
		r.p.Stencil, r.p.Boundary, r.p.Initial = s, field.walls, field.initial
		r.p.name, r.p.system = field.name, nil
		return
	}
	r.dt, r.paced = r.p.TimeStep, r.Speed != ""
	switch form {
	case updates:
		r.stage(formulas, r.next, nil, 0, 1)
	case stages:
		r.update(inStages)
	case accelerations:
		r.leapfrog(formulas)
	default:
		r.integrate(r.integrator(), formulas)
	}
	if r.paced {
		now := map[int]int{}
		for i := range r.Fields {
			now[i] = r.next[i]
		}
		r.addStage([]int{r.sheet.Replace(speed, now)}, nil, 0, 1)
		r.p.system.stages[len(r.p.system.stages)-1].by = []sweep.Operation{sweep.Max}
		r.p.courant = &sweep.Courant{Distance: r.CFL * slices.Min(r.p.Spacing), Until: r.Until}
	}
	r.note(form, r.failed)
	for i, f := range r.Fields {
		if f.Previous != "" && (form != updates || r.p.levels(i) == 2) {
			r.note("fields."+f.Name+".previous", fmt.Errorf("must not be set: no rule uses previous(%s)", f.Name))
		}
	}
	var around stencil.Footprint
	for i := range r.p.written() {
		around = around.Join(r.p.of(i).reads)
	}
	if around.Axes() == 0 {
		r.note(form, errors.New("must use an operator such as lap: no equation reads another point"))
	}
}

// stages parses the formulas of the stages, by field.
func (r *equationReader) stages() (all []map[int]int) {
	if r.form() != stages {
		return nil
	}
	missing := r.p.Fields()
	for i, list := range r.Stages {
		byField := map[int]int{}
		for _, d := range list {
			part := fmt.Sprintf("stages.%d.%s", i+1, d.Name)
			field := slices.IndexFunc(r.Fields, func(f EquationFor) bool { return f.Name == d.Name })
			formula, err := r.sheet.Formula(d.Formula)
			_, twice := byField[field]
			switch {
			case field < 0:
				err = errors.New("must be the name of one of fields")
			case twice:
				err = errors.New("must be given only once in a stage")
			}
			r.note(part, err)
			byField[field] = formula
			missing = slices.DeleteFunc(missing, func(name string) bool { return name == d.Name })
		}
		if len(list) == 0 {
			r.note("stages", fmt.Errorf("must have a formula in each stage, but stage %d has none", i+1))
		}
		all = append(all, byField)
	}
	if len(missing) > 0 {
		r.note("stages", fmt.Errorf("must have a formula for field %s", missing[0]))
	}
	return all
}

// integrators returns the integrators for the form of the equation.
func (r *equationReader) integrators() []Integrator {
	if r.form() == accelerations {
		return []Integrator{Leapfrog}
	}
	return slices.Sorted(maps.Keys(integrators))
}

func (r *equationReader) integrator() Integrator {
	if r.form() == accelerations {
		return cmp.Or(r.Integrator, Leapfrog)
	}
	return cmp.Or(r.Integrator, Euler)
}

// speed parses Speed.
func (r *equationReader) speed() int {
	if r.Speed == "" {
		return 0
	}
	speed, err := r.sheet.Steady(r.Speed)
	if err == nil {
		reads := r.sheet.Form(speed).Fields
		if !slices.ContainsFunc(reads, func(f stencil.Footprint) bool { return len(f) > 0 }) {
			err = errors.New("must use a field")
		}
		if slices.ContainsFunc(reads[len(r.Fields):], func(f stencil.Footprint) bool { return len(f) > 0 }) {
			err = errors.New("must not use previous or a formula of define")
		}
	}
	r.note("time.dt.speed", err)
	switch {
	case !(r.CFL > 0) || math.IsInf(r.CFL, 0):
		r.note("time.dt.cfl", fmt.Errorf("must be a positive number, got %v", r.CFL))
	case r.form() == accelerations:
		r.note("time.dt", errors.New("must be a number with accelerations: leapfrog takes steps of one length"))
	case slices.Contains(r.Variable, "dt"):
		r.note("parameters.dt", errors.New("must not be named dt with a speed"))
	}
	return speed
}

// timeStep sets or checks the time step.
func (r *equationReader) timeStep(formulas []int) {
	stable, damped, method := math.Inf(1), math.Inf(1), integrators[r.integrator()]
	for i, f := range r.Fields {
		dt, all, err := r.sheet.StableStep(formulas[i], i, method.stability)
		if r.form() == accelerations {
			dt, all, err = r.sheet.StableLeapfrog(formulas[i], i)
		}
		coupled := errors.Is(err, stencil.ErrNoBound)
		if coupled { // the bound is that of all fields together
			stable, damped, all = math.Inf(1), math.Inf(1), math.Inf(1)
			dt, i, err = r.sheet.StableSystem(formulas, len(method.stages))
			f = r.Fields[i]
		}
		stable, damped = min(stable, dt), min(damped, all)
		if err != nil && r.TimeStep == 0 {
			if errors.Is(err, stencil.ErrNoBound) && r.form() == rates {
				err = fmt.Errorf("%w; for diffusivities up to D, time.dt is stable up to %.4g/D", err, r.sheet.EulerBound())
			}
			r.note(r.form()+"."+f.Name, err)
		} else if err != nil {
			stable, damped = math.Inf(1), math.Inf(1)
		}
		if coupled || err != nil && r.TimeStep != 0 {
			break
		}
	}
	bound := stable
	if safety*stable > damped { // the default is stable without the decay, but not with it
		bound = damped
	}
	if !math.IsInf(bound, 0) {
		r.p.Stable, r.p.Ignored = bound, r.sheet.Ignored
	}
	switch {
	case len(r.errors) > 0:
	case r.TimeStep == 0 && r.p.Stable == 0:
		r.note("time.dt", errors.New("must be a number: no difference bounds the time step"))
	case r.TimeStep == 0:
		r.p.TimeStep = safety * bound
	case r.TimeStep > stable && !r.Force: // terms that are ignored may balance the decay
		r.note("time.dt", fmt.Errorf("must be at most %v to be stable on this grid, unless time.force is set", stable))
	}
	if n := r.p.Steps(r.Until); r.Until > 0 && n > 0 {
		r.p.TimeStep = r.Until / float64(n)
	}
}
