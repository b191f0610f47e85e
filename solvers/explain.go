package solvers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Explanation describes what a step of a problem computes, and which schemes support the problem.
type Explanation struct {
	Levels    map[string]int      `json:"levels"`    // time levels by variable
	Stages    []ExplainedStage    `json:"stages"`    // stages in order
	Weights   []ExplainedWeight   `json:"weights"`   // weights of a step that is a linear stencil; otherwise empty
	Exchanged []ExplainedExchange `json:"exchanges"` // exchanges of ghosts
	Parts     []ExplainedPart     `json:"parts"`     // parts of formulas that are not computed at each point and step
	Schemes   []ExplainedScheme   `json:"schemes"`   // all schemes
	TimeStep  string              `json:"time_step"` // the time step and its bound, see Problem.StepText
}

// ExplainedStage is a stage of a step. Its costs per point assume that each value is read from memory once.
type ExplainedStage struct {
	Name       string          `json:"name"`                 // name in traces
	Reads      []ExplainedRead `json:"reads"`                // levels that the stage reads
	Writes     []ExplainedRead `json:"writes"`               // levels that the stage writes
	Bytes      int             `json:"bytes_per_point"`      // bytes read and written
	Operations map[string]int  `json:"operations_per_point"` // by name
	CUDA       string          `json:"cuda"`                 // source of its point function
	Time       float64         `json:"time"`                 // time of the results, in steps
}

// ExplainedRead is an access to a level of a variable.
type ExplainedRead struct {
	Name     string       `json:"name"`     // name in the source
	Variable string       `json:"variable"` // name of the variable
	Level    int          `json:"level"`    // 0: the newest level before the step
	Points   []domain.Vec `json:"points"`   // offsets from the point
}

// ExplainedWeight is the factor by which a linear step multiplies a value.
type ExplainedWeight struct {
	Offset domain.Vec `json:"offset"` // offset from the point
	Weight float64    `json:"weight"` // factor
}

// ExplainedPart is a part of formulas that is computed only once, or once per step.
type ExplainedPart struct {
	Name  string `json:"name"`            // name of the variable, or name in the source of a stage
	Stage int    `json:"stage,omitempty"` // stage that uses a per-step value, from 1; 0 for a variable
	Text  string `json:"text"`            // expression
	Along string `json:"along,omitempty"` // axes along which the variable is stored, as "xy": it is a table of these
}

// ExplainedExchange is an exchange of the ghosts of a variable.
type ExplainedExchange struct {
	Variable string        `json:"variable"`  // name of the variable
	Stage    int           `json:"stage"`     // stage before the exchange, from 1; 0: once before the first step
	Width    domain.Radius `json:"layers"`    // layers per side
	Corners  string        `json:"neighbors"` // neighbors: at faces only, or also at edges and corners
}

// ExplainedScheme is a scheme and, if it does not support the problem, the reason.
type ExplainedScheme struct {
	Scheme  scheme.Scheme `json:"scheme"`            // name of the scheme
	Refusal string        `json:"refusal,omitempty"` // error of the scheme; "" if it supports the problem
}

// Explain describes what a step computes. Dry runs on the devices of the session determine which schemes support the
// problem, without compiling: whether kernels fit on a device only shows when they run.
func (s *Setup) Explain(ctx context.Context) (e *Explanation, err error) {
	place := s.Place.DryRun()
	defer func() { err = errors.Join(err, streams.CloseAll(place.Devices)) }()
	variables, step, err := s.Problem.newStep(place)
	for _, v := range variables {
		defer v.Close()
	}
	if err != nil {
		return nil, err
	}
	e = &Explanation{Levels: map[string]int{}, TimeStep: s.Problem.StepText()}
	for _, v := range variables {
		e.Levels[v.Spec.Name] = v.Levels()
	}
	for _, stage := range step.Stages {
		e.Stages = append(e.Stages, explained(&stage, place.Grid.Size))
		if linear, ok := stage.Point.Linear(); ok {
			e.Weights = append(e.Weights, ExplainedWeight{Weight: linear.Center})
			for _, g := range linear.Groups {
				for _, o := range g.Offsets() {
					e.Weights = append(e.Weights, ExplainedWeight{o, g.Weight})
				}
			}
		}
	}
	if system := s.Problem.system; system != nil {
		for i, g := range system.given {
			one := ExplainedPart{Name: s.Problem.of(len(system.fields) + i).name, Text: g.Text()}
			for a := range s.Problem.Grid.Dims {
				if g.VariesAlong(a) {
					one.Along += "xyz"[a:][:1]
				}
			}
			e.Parts = append(e.Parts, one)
		}
		for i, stage := range system.stages {
			for k, v := range stage.form.Values {
				e.Parts = append(e.Parts, ExplainedPart{Name: fmt.Sprintf("Values[%d]", k), Stage: i + 1, Text: v.Text()})
			}
		}
	}
	for i, plan := range append(s.plan.Stages, s.plan.Once) {
		if plan == nil {
			continue
		}
		for _, spec := range plan.Specs {
			after := (i + 1) % (len(s.plan.Stages) + 1)
			e.Exchanged = append(e.Exchanged, ExplainedExchange{spec.Name, after, spec.Width,
				[]string{"faces", "faces and edges", "faces, edges and corners"}[spec.Connectivity]})
		}
	}
	ended, end := context.WithCancel(ctx)
	end()
	compiler := s.Session.Compiler.Ahead(ended).Compiler() // compiles nothing
	for _, name := range scheme.All() {
		one := ExplainedScheme{Scheme: name}
		if err := s.suits(ctx, name, compiler); err != nil {
			one.Refusal = strings.TrimPrefix(err.Error(), fmt.Sprintf("scheme: %v: ", scheme.ErrUnsuited))
		}
		e.Schemes = append(e.Schemes, one)
	}
	return e, ctx.Err()
}

// StepText describes the time step, the largest stable step, and the terms of the equation that it ignores.
func (p *Problem) StepText() string {
	switch text := fmt.Sprintf("%.6g", p.TimeStep); {
	case p.courant != nil:
		return fmt.Sprintf("%.6g over the largest speed at each step", p.courant.Distance)
	case p.TimeStep == 0:
		return "none"
	case p.Stable == 0:
		return text + ", no bound is known"
	case len(p.Ignored) > 0:
		return text + fmt.Sprintf(", stable up to %.6g, ignoring ", p.Stable) + strings.Join(p.Ignored, ", ")
	default:
		return text + fmt.Sprintf(", stable up to %.6g", p.Stable)
	}
}

// explained describes a stage of a grid of some points per axis.
func explained(s *scheme.Stage, size [3]int) ExplainedStage {
	one := ExplainedStage{Name: s.Name, Operations: s.Point.Operations(), CUDA: s.Point.CUDA, Time: cmp.Or(s.Time, 1)}
	if s.Time == scheme.Beginning {
		one.Time = 0
	}
	for _, all := range []struct {
		of []scheme.Access
		to *[]ExplainedRead
	}{{s.Reads, &one.Reads}, {s.Writes, &one.Writes}} {
		for _, a := range all.of {
			points := a.Reads
			if len(points) == 0 {
				points = append(points, domain.Vec{})
			}
			*all.to = append(*all.to, ExplainedRead{a.Name, a.Variable.Spec.Name, a.Level, points})
			table := false // it stays in a cache
			for axis, constant := range a.Variable.Spec.Constant {
				table = table || constant && size[axis] > 1
			}
			if !table {
				one.Bytes += a.Variable.Spec.Element.Size()
			}
		}
	}
	return one
}

// suits returns an error if the scheme does not support the problem on the devices of the session, as far as is known
// without compiled kernels.
func (s *Setup) suits(ctx context.Context, name scheme.Scheme, compiler *kernels.Compiler) error {
	needs := name.Needs()
	if err := needs.CheckDevices(name, len(s.Place.Devices)); err != nil {
		return err
	}
	plan, err := s.Problem.NewPlan(s.Place, s.Session.Links, cmp.Or(needs.Path, p2p.Auto))
	if err != nil {
		return err
	}
	o := s.options.Options
	o.Scheme = name
	all, err := DryRun(ctx, s.Problem, plan, compiler, o)
	if errors.Is(err, streams.ErrNotCompiled) {
		return nil
	}
	if err != nil {
		return err
	}
	return scheme.Fit(all)
}
