package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/results/field"
	"github.com/halox/halox/solvers"
)

// solversOf returns the solvers that accept a key.
func solversOf(name string) []string {
	section, _, _ := strings.Cut(name, ".")
	switch {
	case section == "heat":
		return []string{SolverHeat}
	case section == "laplace":
		return []string{SolverLaplace}
	case name == "stop.time":
		return []string{SolverHeat, SolverEquation}
	case slices.Contains([]string{"stencil", "initial"}, section):
		return []string{SolverLaplace, SolverHeat}
	case slices.Contains([]string{"grid.start", "grid.end"}, name) ||
		slices.Contains([]string{"parameters", "constants", "let", "define", "fields", "equations",
			"accelerations", "update", "stages", "time"}, section):
		return []string{SolverEquation}
	}
	return nil // all solvers
}

// solver rejects keys that only other solvers accept.
func (c *checker) solver() {
	if !c.good("solver") || c.run.Solver == "" {
		return
	}
	for _, k := range keys {
		if of := solversOf(k.name); of != nil && !slices.Contains(of, c.run.Solver) && c.given(k.name) {
			c.reject(k.name, "must not be set with solver %s", c.run.Solver)
		}
	}
}

// An entry is a key and value of a mapping, with its origin.
type entry struct {
	name  string
	value *yaml.Node
}

// entries returns the entries of a mapping of names, which is the value of a key.
func (c *checker) entries(path string, from origin, n *yaml.Node) (all []entry) {
	if n == nil || n.Kind != yaml.MappingNode {
		if n != nil && n.ShortTag() != "!!null" {
			c.problems.add(from, path, n, "must have names with values")
		}
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, at := n.Content[i].Value, from
		if s, ok := c.entered[join(path, name)]; ok {
			at = s.from
		} else if at.line > 0 && n.Content[i].Line > 0 {
			at.line = n.Content[i].Line
		}
		if strings.ContainsAny(name, "()") { // the comma in a formula started another entry
			c.problems.add(at, join(path, name), nil, "must be a name; a formula with a comma must be in quotes here")
			continue
		}
		c.parts[join(path, name)] = setting{join(path, name), n.Content[i+1], at}
		if slices.ContainsFunc(all, func(e entry) bool { return e.name == name }) {
			c.problems.add(at, join(path, name), nil, "must be given once")
			continue
		}
		all = append(all, entry{name, n.Content[i+1]})
	}
	return all
}

// named returns the entries of a key of the schema.
func (c *checker) named(key string) []entry {
	s, ok := c.lookup(key)
	if !ok {
		return nil
	}
	return c.entries(key, s.from, s.node)
}

// part records a problem in a part of an equation.
func (c *checker) part(name, reason string, args ...any) {
	s, ok := setting{}, false
	for at := name; !ok && at != ""; at = at[:max(0, strings.LastIndex(at, "."))] {
		if s, ok = c.parts[at]; !ok {
			s, ok = c.lookup(at)
		}
	}
	if !s.given() {
		s.from.source = c.file
	}
	exact := c.parts[name]
	if n := exact.node; n != nil && n.Kind == yaml.MappingNode {
		exact.node = nil // it has separate parts
	}
	c.problems.add(s.from, cmp.Or(exact.key, name), exact.node, reason, args...)
}

// definitions decodes formulas by name.
func (c *checker) definitions(key string) Definitions { return c.formulas(key, c.named(key)) }

func (c *checker) formulas(path string, of []entry) (all Definitions) {
	for _, e := range of {
		text, ok := formulaText(e.value)
		if !ok {
			c.part(join(path, e.name), "must be %s", formulaMust)
		}
		all = append(all, solvers.Definition{Name: e.name, Formula: text})
	}
	return all
}

// formulaText returns a number, a text or a file as formula text. It does not parse the text.
func formulaText(n *yaml.Node) (string, bool) {
	if value, ok := decimal(n); ok {
		return number(value), true
	}
	if n.Kind == yaml.MappingNode {
		return fileText(n)
	}
	return text(n), text(n) != "" && n.ShortTag() == "!!str"
}

// fileText returns {file: NAME, interpolate: linear} as an expression.
func fileText(n *yaml.Node) (src string, ok bool) {
	name, way := "", ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := text(n.Content[i+1])
		switch n.Content[i].Value {
		case "file":
			name = value
		case "interpolate":
			if way = ", linear"; value != "linear" {
				return "", false
			}
		default:
			return "", false
		}
	}
	quote := "\""
	if strings.Contains(name, quote) {
		quote = "'"
	}
	return "file(" + quote + name + quote + way + ")", name != "" && !strings.Contains(name, quote)
}

// readsFile matches calls of file in an expression.
var readsFile = regexp.MustCompile(`\bfile\s*\(`)

// openFile opens a file of numbers.
func openFile(name string) (solvers.File, error) {
	f, err := field.Open(name)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "results: "))
	}
	return f, nil
}

// equation decodes and checks the keys that only solver equation has.
func (c *checker) equation() {
	r := c.run
	c.everyField = r.Boundary
	r.Boundary, r.Initial, r.Stencil, r.Heat, r.Laplace = nil, "", Stencil{}, nil, nil
	for _, e := range c.named("parameters") {
		value, ok := decimal(e.value)
		if !ok {
			c.part(join("parameters", e.name), "must be a finite number")
			continue
		}
		if r.Parameters == nil {
			r.Parameters = map[string]float64{}
		}
		r.Parameters[e.name] = value
	}
	r.Constants, r.Let = c.definitions("constants"), c.definitions("let")
	r.Equations, r.Update = c.definitions("equations"), c.definitions("update")
	r.Accelerations = c.definitions("accelerations")
	for _, key := range []string{"exact", "unit", "time.dt"} { // origins of entries
		if s, ok := c.lookup(key); ok && s.node.Kind == yaml.MappingNode {
			_ = c.named(key)
		}
	}
	if r.Time.DT.Speed != "" {
		if r.Stop.Norm == NormResidual && r.Stop.Tolerance > 0 {
			c.reject("stop.norm", "must not be %s with a speed in time.dt", NormResidual)
		}
	}
	for _, e := range c.named("define") {
		r.Define = append(r.Define, c.stored(e))
	}
	if s, ok := c.lookup("stages"); ok && s.given() {
		if s.node.Kind != yaml.SequenceNode {
			c.reject("stages", "must be a list of stages, as [{u: FORMULA}]")
			return
		}
		for i, n := range s.node.Content {
			path := fmt.Sprintf("stages.%d", i+1)
			r.Stages = append(r.Stages, c.formulas(path, c.entries(path, s.from, n)))
		}
	}
	for _, e := range c.named("fields") {
		r.Fields = append(r.Fields, c.field(e))
	}
	slices.SortStableFunc(r.Fields, func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
	for _, all := range []Definitions{r.Equations, r.Accelerations, r.Update} {
		slices.SortStableFunc(all, func(a, b solvers.Definition) int { return cmp.Compare(a.Name, b.Name) })
	}
	c.matching()
	c.spacingOfEquation()
	if len(c.problems) > 0 || len(r.Grid.Size) == 0 {
		return
	}
	p, err := r.Equation().Problem()
	eachPart(err, func(part string, err error) { c.part(part, "%v", err) })
	if err != nil {
		return
	}
	r.Grid.Spacing, r.Grid.End, r.Time.DT.Length = p.Spacing, nil, p.TimeStep
	steps := int64(AnySteps)
	if r.Time.DT.Speed == "" {
		steps = p.Steps(r.Stop.Time)
	}
	c.stopTime(steps)
}

// AnySteps is Stop.Iterations of a run that ends at Stop.Time after an unknown number of steps.
const AnySteps = math.MaxInt32

// stopTime sets the number of iterations needed to reach stop.time, unless stop.iterations is smaller.
func (c *checker) stopTime(steps int64) {
	if s := &c.run.Stop; s.Time > 0 && (!c.given("stop.iterations") || steps < int64(s.Iterations)) {
		s.Iterations = int(steps)
	}
}

// outputFields checks that output files refer to existing fields.
func (c *checker) outputFields() {
	names := c.fieldNames()
	for key, all := range map[string]PerField{"exact": c.run.Exact, "unit": c.run.Unit} {
		for _, d := range all {
			switch {
			case d.Name == "" && len(names) > 1:
				c.reject(key, "must have one per field, as {%s: ...}", names[0])
			case d.Name != "" && len(names) > 0 && !slices.Contains(names, d.Name):
				c.part(join(key, d.Name), "must be the name of one of the fields %s", strings.Join(names, ", "))
			}
		}
	}
	if f := c.run.Stop.Field; f != "" && len(names) > 0 && !slices.Contains(names, f) {
		c.reject("stop.field", "must be one of the fields %s", strings.Join(names, ", "))
	}
	o := c.run.Output
	named := map[string]Files{"output.picture": o.Picture, "output.field": o.Field, "output.label": o.Label}
	for key, files := range named {
		for _, f := range files {
			switch {
			case f.Field == "" && len(names) > 1:
				what := map[bool]string{false: "file", true: "text"}[key == "output.label"]
				c.reject(key, "must have a %s per field, as {%s: %s}", what, names[0], strings.ToUpper(what))
			case f.Field != "" && len(names) > 0 && !slices.Contains(names, f.Field):
				const reason = "must name fields, which are %s"
				if s, ok := c.entered[join(key, f.Field)]; ok {
					c.problems.add(s.from, s.key, nil, reason, strings.Join(names, ", "))
				} else {
					c.reject(key, reason, strings.Join(names, ", "))
				}
			}
		}
	}
}

// eachPart calls f for each error of a part of an equation.
func eachPart(err error, f func(part string, err error)) {
	switch one := err.(type) {
	case nil:
	case *solvers.PartError:
		f(one.Part, one.Err)
	case interface{ Unwrap() []error }:
		for _, e := range one.Unwrap() {
			eachPart(e, f)
		}
	default:
		f("equations", err)
	}
}

// stored decodes an entry of define: a formula, or a mapping that contains one.
func (c *checker) stored(e entry) Field {
	f, ok, path := Field{Name: e.name, Boundary: Boundary{}}, false, join("define", e.name)
	if f.Initial, ok = formulaText(e.value); ok {
		return f
	}
	f.Initial = ""
	for _, key := range c.entries(path, c.parts[path].from, e.value) {
		switch name := join(path, key.name); key.name {
		case "formula":
			if f.Initial, ok = formulaText(key.value); !ok {
				c.part(name, "must be %s", expressionMust)
			}
		case "boundary":
			c.faces(name, f.Boundary, key.value)
		default:
			c.part(name, "unknown key, must be one of formula, boundary")
		}
	}
	if f.Initial == "" {
		c.part(path, "must be a formula, or have one as {formula: FORMULA}")
	}
	return f
}

// field decodes a field.
func (c *checker) field(e entry) Field {
	f := Field{Name: e.name, Initial: "0", Boundary: Boundary{}}
	path := join("fields", e.name)
	at := c.parts[path].from
	for _, key := range c.entries(path, at, e.value) {
		name := join(path, key.name)
		ok := true
		switch key.name {
		case "initial":
			if f.Initial, ok = formulaText(key.value); !ok {
				c.part(name, "must be %s", formulaMust)
			}
		case "rate":
			if f.Rate, ok = formulaText(key.value); !ok {
				c.part(name, "must be %s", expressionMust)
			}
		case "previous":
			if f.Previous, ok = formulaText(key.value); !ok {
				c.part(name, "must be %s", formulaMust)
			}
		case "boundary":
			c.faces(name, f.Boundary, key.value)
		default:
			c.part(name, "unknown key, must be one of initial, rate, previous, boundary")
		}
	}
	for name, face := range c.everyField {
		if _, ok := f.Boundary[name]; !ok {
			f.Boundary[name] = face
		}
	}
	for axis := range c.run.Dims() {
		for side := range 2 {
			name, other := faceName(axis, side), faceName(axis, 1-side)
			if f.Boundary[name].Kind == solvers.Periodic && f.Boundary[other].Kind != solvers.Periodic {
				c.part(join(join(path, "boundary"), name), "must not be periodic unless %s is", other)
			}
		}
	}
	return f
}

// faces decodes the boundary conditions of a field. A face takes precedence over its axis.
func (c *checker) faces(path string, to Boundary, n *yaml.Node) {
	known := map[string][]string{}
	if c.run.Dims() == 0 {
		return // reported as a problem of grid.size
	}
	for axis := range c.run.Dims() {
		both := []string{faceName(axis, 0), faceName(axis, 1)}
		known["xyz"[axis:axis+1]], known[both[0]], known[both[1]] = both, both[:1], both[1:]
	}
	all := c.entries(path, c.parts[path].from, n)
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(len(a.name), len(b.name)) })
	for _, e := range all {
		name := join(path, e.name)
		faces, ok := known[e.name]
		if !ok {
			c.part(name, "unknown face, must be one of %s", either(slices.Sorted(maps.Keys(known))))
			continue
		}
		face, why := faceNode(e.value, formulaText)
		if why == invalid {
			why = "must be " + either(formsOfFaces())
		}
		if why != "" {
			c.part(name, "%s", why)
		}
		for _, f := range faces {
			to[f], c.parts[join(path, f)] = face, c.parts[name]
		}
	}
}

// matching checks that fields and equations match.
func (c *checker) matching() {
	r, form, all := c.run, "", Definitions(nil)
	for _, of := range []struct {
		name string
		all  Definitions
	}{{"equations", r.Equations}, {"accelerations", r.Accelerations}, {"update", r.Update}, {"stages", nil}} {
		switch {
		case !c.given(of.name):
		case form != "":
			c.reject(of.name, "must not be set with %s", form)
		default:
			form, all = of.name, of.all
		}
	}
	switch leaps := r.Time.Integrator == string(solvers.Leapfrog); {
	case form == "accelerations":
		if c.given("time.integrator") && !leaps {
			c.reject("time.integrator", "must be %s with accelerations", solvers.Leapfrog)
		}
		r.Time.Integrator = string(solvers.Leapfrog)
	case form == "update" || form == "stages":
		for _, k := range []string{"time.integrator", "time.force"} {
			if c.given(k) {
				c.reject(k, "must not be set with %s", form)
			}
		}
		r.Time.Integrator = ""
	case leaps:
		c.reject("time.integrator", "must not be %s without accelerations", solvers.Leapfrog)
	}
	form = cmp.Or(form, "equations")
	for _, k := range []string{"fields", form} {
		if _, ok := c.lookup(k); !ok {
			c.missing(k)
		}
	}
	for _, f := range r.Fields {
		if f.Previous != "" && form != "update" {
			c.part(join(join("fields", f.Name), "previous"), "must not be set without update")
		}
		if f.Rate != "" && form != "accelerations" {
			c.part(join(join("fields", f.Name), "rate"), "must not be set without accelerations")
		}
		if form != "stages" && !slices.ContainsFunc(all, func(d solvers.Definition) bool { return d.Name == f.Name }) {
			c.part(form, "must have one for field %s", f.Name)
		}
	}
	for _, d := range all {
		if !slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Name == d.Name }) {
			c.part(join(form, d.Name), "must be the name of one of fields")
		}
	}
}

// spacingOfEquation checks the keys of the grid.
func (c *checker) spacingOfEquation() {
	g := &c.run.Grid
	if c.given("grid.spacing") && c.given("grid.end") {
		c.reject("grid.end", "must not be set with grid.spacing")
	}
	for name, list := range map[string][]float64{"grid.start": g.Start, "grid.end": g.End, "grid.spacing": g.Spacing} {
		if list != nil && len(list) != len(g.Size) && c.good(name, "grid.size") {
			c.reject(name, "must have one number per axis of the grid, %d", len(g.Size))
		}
	}
}
