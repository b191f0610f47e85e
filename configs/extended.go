package configs

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/solvers"
	"github.com/halox/halox/stencil"
)

// A Coefficient is a number, one number per axis, or an expression of coordinates.
type Coefficient struct {
	Axes    []float64 // one number for all axes, or one per axis
	Formula string    // expression, instead of Axes
}

// Number returns the number if it is the same for all axes; otherwise ok is false.
func (k Coefficient) Number() (value float64, ok bool) {
	if len(k.Axes) != 1 {
		return 0, false
	}
	return k.Axes[0], true
}

// along returns the number for an axis; 0 for an expression.
func (k Coefficient) along(axis int) float64 {
	if len(k.Axes) == 0 {
		return 0
	}
	return k.Axes[min(axis, len(k.Axes)-1)]
}

// MarshalJSON encodes the coefficient as in a config.
func (k Coefficient) MarshalJSON() ([]byte, error) {
	switch value, ok := k.Number(); {
	case ok:
		return json.Marshal(value)
	case k.Formula != "":
		return json.Marshal(k.Formula)
	}
	return json.Marshal(k.Axes)
}

// decode sets k to the value of a node. It returns false if the node is not a valid coefficient. Numbers must be
// positive.
func (k *Coefficient) decode(n *yaml.Node) (ok bool) {
	positive := func(n *yaml.Node) (float64, bool) {
		value, ok := decimal(n)
		return value, ok && value > 0
	}
	switch value, number := decimal(n); {
	case number:
		k.Axes, ok = []float64{value}, value > 0
	case n.Kind == yaml.SequenceNode:
		k.Axes, ok = each(n, positive)
	default:
		k.Formula, ok = formulaText(n)
	}
	return ok
}

// Names of the terms of heat and laplace in the formula of their equation.
const (
	onlyField       = "u"
	sourceName      = "source"
	diffusivityName = "diffusivity"
)

// extended returns a run of solver heat or laplace as an equation if a stencil cannot represent it: if it has a source,
// a diffusivity that is not a single number, or files. If always is true, it always returns an equation.
func (r *Run) extended(always bool) *solvers.Equation {
	e := &solvers.Equation{Size: r.Grid.Size, Spacing: r.Grid.Spacing, Group: max(1, int(r.Exchange.Steps)),
		Force: true, Open: openFile}
	source, k := "", Coefficient{Axes: []float64{1}}
	switch {
	case r.Heat != nil && r.Solver == SolverHeat:
		source, k, e.TimeStep, e.Force = r.Heat.Source, r.Heat.Diffusivity, r.Heat.DT, r.Heat.Force || r.Heat.Stable > 0
	case r.Solver == SolverLaplace:
		if r.Laplace != nil {
			source = r.Laplace.Source
		}
		jacobi, err := stencil.LaplaceOf(r.Stencil.kind(), r.Grid.Spacing)
		if err != nil {
			return nil
		}
		e.TimeStep = jacobi.Rate(r.Grid.Spacing)
	}
	one, constant := k.Number()
	files := readsFile.MatchString(r.Initial)
	for _, f := range r.Boundary {
		files = files || readsFile.MatchString(f.Value) || readsFile.MatchString(f.Transfer)
	}
	if source == "" && constant && !files && !always {
		return nil
	}
	field := solvers.EquationFor{Name: onlyField, Initial: r.Initial, Exact: r.Exact.of(onlyField)}
	switch {
	case constant:
		field.Rate = number(one) + "*" + laplacian(r.Stencil.kind(), r.Grid.Spacing)
	case k.Formula != "":
		e.Constants = []solvers.Definition{{Name: diffusivityName, Formula: k.Formula}}
		field.Rate = "div(" + diffusivityName + ", u)"
	default:
		var terms []string
		for a, value := range k.Axes {
			terms = append(terms, fmt.Sprintf("%s*d%[2]c%[2]c(u)", number(value), "xyz"[a]))
		}
		field.Rate = strings.Join(terms, " + ")
	}
	if source != "" {
		e.Let = []solvers.Definition{{Name: sourceName, Formula: source}}
		field.Rate += " + " + sourceName
	}
	field.Boundary = r.conditions(r.Boundary)
	for i := range field.Boundary {
		if field.Boundary[i].Diffusivity = diffusivityName; k.Formula == "" {
			field.Boundary[i].Diffusivity = number(k.along(i / 2))
		}
	}
	e.Fields = []solvers.EquationFor{field}
	return e
}

// Measured is like Equation, for solvers.Equation.Measures, but also converts runs that a stencil can represent. It
// returns nil if nothing is measured.
func (r *Run) Measured() *solvers.Equation {
	if len(r.Measure) == 0 {
		return nil
	}
	if e := r.Equation(); e != nil {
		return e
	}
	return r.extended(true)
}

func (s Stencil) kind() stencil.Kind {
	return stencil.Kind{Points: s.Points, Shape: stencil.Shape(s.Shape)}
}

// laplacian returns the formula of the Laplacian for a kind of stencil.
func laplacian(kind stencil.Kind, spacing []float64) string {
	if kind == stencil.Kinds(len(spacing))[0] {
		return "lap(u)"
	}
	step, err := stencil.HeatOf(kind, spacing, 1, 1)
	if err != nil {
		return "lap(u)" // the spacing is invalid, which the caller reports
	}
	terms := []string{number(step.Center-1) + "*u"}
	for _, g := range step.Groups {
		var points []string
		for _, o := range g.Offsets() {
			at := strings.ReplaceAll(strings.Trim(fmt.Sprint(o[:len(spacing)]), "[]"), " ", ", ")
			points = append(points, "at(u, "+at+")")
		}
		terms = append(terms, number(g.Weight)+"*("+strings.Join(points, " + ")+")")
	}
	return "(" + strings.Join(terms, " + ") + ")"
}

// inherited records the errors of an equation created by extended under the keys that caused them.
func (c *checker) inherited(err error) {
	section := "heat"
	if c.run.Solver == SolverLaplace {
		section = "laplace"
	}
	key := func(part string) string {
		part = strings.TrimPrefix(part, "fields."+onlyField+".")
		switch part {
		case "constants." + diffusivityName:
			return "heat." + diffusivityName
		case "let." + sourceName:
			return section + "." + sourceName
		case "time.dt":
			return "heat.dt"
		case "equations." + onlyField:
			if c.given("heat." + diffusivityName) {
				return "heat." + diffusivityName
			}
			return section + "." + sourceName
		}
		return part
	}
	words := strings.NewReplacer("time.", "heat.")
	eachPart(err, func(part string, err error) { c.reject(key(part), "%s", words.Replace(err.Error())) })
}
