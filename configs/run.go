package configs

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/solvers"
)

// Auto is the value with which halox chooses a setting.
const Auto = "auto"

// Cells is the value of Grid.Kind for which Dirichlet walls are half a spacing from the nearest point.
const Cells = "cells"

// The values of Run.Solver.
const (
	SolverLaplace = "laplace"
	SolverHeat    = "heat"

	SolverEquation = "equation"
)

// A Run is the complete, checked config of a run. Its JSON form is a config, from which Load reads the same Run. The
// schema has an entry for each key, with its default and limits.
type Run struct {
	Solver    string   `json:"solver"`             // SolverLaplace, SolverHeat or SolverEquation
	Grid      Grid     `json:"grid"`               // section grid
	Stencil   Stencil  `json:"stencil,omitzero"`   // section stencil
	Precision string   `json:"precision"`          // "float64" or "float32"
	Boundary  Boundary `json:"boundary,omitempty"` // section boundary
	Initial   string   `json:"initial,omitempty"`  // initial field, an expression
	Exact     PerField `json:"exact,omitempty"`    // exact solutions, expressions
	Unit      PerField `json:"unit,omitempty"`     // units of the values, for labels
	Heat      *Heat    `json:"heat,omitempty"`     // nil unless Solver is "heat"
	Laplace   *Laplace `json:"laplace,omitempty"`  // nil unless Solver is "laplace" and has a source

	// Only for solver equation, see Equation.
	Parameters map[string]float64 `json:"parameters,omitempty"` // numbers by name
	Constants  Definitions        `json:"constants,omitempty"`  // constant fields
	Let        Definitions        `json:"let,omitempty"`        // formulas that are substituted for their names
	Fields     Fields             `json:"fields,omitempty"`     // computed fields
	Equations  Definitions        `json:"equations,omitempty"`  // rate of each field
	Update     Definitions        `json:"update,omitempty"`     // next value of each field, instead of Equations

	Define        Stored        `json:"define,omitempty"`        // formulas that are stored
	Accelerations Definitions   `json:"accelerations,omitempty"` // second derivatives, instead of Equations
	Stages        []Definitions `json:"stages,omitempty"`        // new values by stage, instead of Equations
	Time          *Time         `json:"time,omitempty"`          // section time; nil for other solvers

	Measure Definitions `json:"measure,omitempty"` // numbers reduced from the fields, see solvers.Equation.Measures

	Stop          Stop     `json:"stop"`          // section stop
	Devices       Devices  `json:"devices"`       // section devices
	Decomposition Parts    `json:"decomposition"` // subdomains along each axis
	Exchange      Exchange `json:"exchange"`      // section exchange
	Output        Output   `json:"output"`        // section output

	Checkpoint *Checkpoint `json:"checkpoint,omitempty"` // section checkpoint; nil if none are written
	Faults     Faults      `json:"faults,omitzero"`      // section faults
}

// A Grid defines the owned points and the distances between them, per axis, x first.
type Grid struct {
	Size    []int     `json:"size"`            // owned points
	Spacing []float64 `json:"spacing"`         // distance between points
	Start   []float64 `json:"start,omitempty"` // start of each axis, for solver equation; nil: 0
	End     []float64 `json:"end,omitempty"`   // end of each axis; nil once Spacing is known
	Kind    string    `json:"points"`          // "nodes" (default) or Cells
}

// Points returns the number of points of the grid.
func (g Grid) Points() int64 {
	points := int64(1)
	for _, n := range g.Size {
		points *= int64(n)
	}
	return points
}

// Stencil selects the points that a step reads.
type Stencil struct {
	Points int    `json:"points"` // number of points
	Shape  string `json:"shape"`  // "star", "box"
}

// Heat contains the keys of section heat.
type Heat struct {
	DT          float64     `json:"dt"`               // time between two steps
	Diffusivity Coefficient `json:"diffusivity"`      // positive
	Source      string      `json:"source,omitempty"` // source term of du/dt, a formula; "": none
	Force       bool        `json:"force"`            // accept DT even if it is not stable
	Stable      float64     `json:"-"`                // see Run.StableStep
}

// Laplace contains the keys of section laplace.
type Laplace struct {
	Source string `json:"source"` // f in lap(u) + f = 0, a formula
}

// Stop defines when a run ends.
type Stop struct {
	Iterations int     `json:"iterations"`          // maximum steps, at least 1
	Time       float64 `json:"time,omitempty"`      // value of t at which the run ends, for solver equation; 0: none
	Tolerance  float64 `json:"tolerance,omitempty"` // value of Norm at which the run ends; 0: no limit
	WallTime   string  `json:"wall_time,omitempty"` // duration after which the run ends, such as "90s"; "": no limit
	Field      string  `json:"field,omitempty"`     // field whose norms are computed; "": all fields
	Norm       string  `json:"norm"`                // norm of the change of a step: "max" or "l2"; or NormResidual
	CheckEvery int     `json:"check_every"`         // steps between two checks of the change
	Sums       string  `json:"sums"`                // mode of sums: "reproducible" or "fast"
}

// Checkpoint defines when a run writes checkpoints, and where.
type Checkpoint struct {
	Folder string `json:"folder"` // of the checkpoints
	Every  struct {
		Steps   int     `json:"steps,omitempty"`   // between two checkpoints; 0: not by steps
		Minutes float64 `json:"minutes,omitempty"` // between two checkpoints; 0: not by time
	} `json:"every,omitzero"` // when checkpoints are due: the zero value is only on request and at the end
	Keep     int    `json:"keep"`     // number of checkpoints to keep
	Compress string `json:"compress"` // "auto", "none" or "zstd"
	Grace    string `json:"grace"`    // limit of the last checkpoint of an interrupted run, such as "30s"
	OnError  string `json:"on_error"` // "warn" or "stop"
}

// Limit returns Checkpoint.Grace as a duration.
func (c *Checkpoint) Limit() time.Duration {
	limit, _ := time.ParseDuration(c.Grace) // already checked
	return limit
}

// Faults defines what follows when a device or the process is lost.
type Faults struct {
	Restarts int `json:"restarts"` // maximum number of restarts from checkpoints; 0: the run ends
}

// NormResidual is the norm that bounds the residual of the equation, see solvers.Problem.ResidualScale.
const NormResidual = "residual"

// Devices selects the devices of a run.
type Devices struct {
	Backend string `json:"backend"`       // auto, or one of streams.Backends
	Count   Count  `json:"count"`         // number per process; 0: as many as are suitable
	IDs     []int  `json:"ids,omitempty"` // numbers of devices in the backend; nil: the first Count devices

	Without []string `json:"-"` // devices that were lost, see halo.Devices
}

// Exchange configures how subdomains exchange their boundary regions.
type Exchange struct {
	Scheme  string `json:"scheme"`          // "auto" or one of scheme.All
	Order   string `json:"order,omitempty"` // one of the scheme's orders; "" for its default
	Path    string `json:"path"`            // "auto" or one of p2p.Paths
	Network string `json:"network"`         // "auto" or one of mpi.Networks
	Steps   Count  `json:"steps"`           // steps between two exchanges; 0: halox tries several
}

// Output names the output files of a run. An empty name writes no file.
type Output struct {
	Picture Files     `json:"picture,omitempty"` // .png, .svg or .pdf
	Slice   string    `json:"slice"`             // plane of a 3-D picture: "auto", "z=16" or "z=0.5"
	Colors  string    `json:"colors"`            // scale of colors of pictures, one of plot.ColorMaps
	Range   []float64 `json:"range,omitempty"`   // values of the first and the last color; nil: those of the field
	Label   Files     `json:"label,omitempty"`   // names of values with their units, in place of paths
	Field   Files     `json:"field,omitempty"`   // .npy or .vti
	Record  string    `json:"record,omitempty"`  // .json
	History bool      `json:"history"`           // include the norms of every check in the record

	Statistics Statistics `json:"statistics,omitzero"` // section output.statistics

	Series []Series `json:"series,omitempty"` // fields that are written while the run goes on

	Probes  []Probe `json:"probes,omitempty"` // points whose values are written while the run goes on
	OnError string  `json:"on_error"`         // "warn", or OnErrorStop: the run ends if a probe cannot be written
}

// A Face is the boundary condition of one face. An axis is periodic at both faces or at neither.
type Face struct {
	Kind     boundary.Kind // solvers.Periodic or one of boundary.Kinds
	Value    string        // for kinds with a value: a number or an expression, with t for the heat solver
	Transfer string        // transfer coefficient h of kind robin, like Value, which then is the ambient value

	Diffusivity string // D of flux and robin, with solver equation; "": that of the equation
}

// MarshalJSON encodes the face as in a config.
func (f Face) MarshalJSON() ([]byte, error) {
	switch {
	case f.Kind == boundary.Robin:
		return json.Marshal(map[boundary.Kind]robin{f.Kind: {orNumber(f.Transfer), f.Value, orNumber(f.Diffusivity)}})
	case f.Diffusivity != "":
		return json.Marshal(map[boundary.Kind]any{f.Kind: map[string]string{"value": f.Value, "D": f.Diffusivity}})
	case f.Value != "":
		return json.Marshal(map[boundary.Kind]string{f.Kind: f.Value})
	}
	return json.Marshal(f.Kind)
}

// robin is a Robin face as in a config.
type robin struct {
	H       any    `json:"h"`
	Ambient string `json:"ambient"`
	D       any    `json:"D,omitempty"`
}

// orNumber returns the number that a text is, or else the text; nil for "".
func orNumber(text string) any {
	if value, err := strconv.ParseFloat(text, 64); err == nil {
		return value
	}
	if text == "" {
		return nil
	}
	return text
}

// A Boundary maps the name of each face of the grid ("x-", "x+", "y-", ...) to its condition.
type Boundary map[string]Face

// faceName returns the name of a face. Axes are counted from 0; side is 0 for the face at the low end.
func faceName(axis, side int) string { return "xyz"[axis:axis+1] + "-+"[side:side+1] }

// Face returns the condition at one end of an axis. Axes are counted from 0; side is 0 for the face at the low end.
func (b Boundary) Face(axis, side int) Face { return b[faceName(axis, side)] }

// A Count is a number of devices or steps; 0 if halox chooses it.
type Count int

// MarshalJSON encodes 0 as "auto".
func (c Count) MarshalJSON() ([]byte, error) {
	if c == 0 {
		return json.Marshal(Auto)
	}
	return json.Marshal(int(c))
}

// Parts is the number of subdomains along each axis; nil if halox chooses it.
type Parts []int

// MarshalJSON encodes nil as "auto".
func (p Parts) MarshalJSON() ([]byte, error) {
	if p == nil {
		return json.Marshal(Auto)
	}
	return json.Marshal([]int(p))
}

// Limit returns Stop.WallTime as a duration; 0 if it is not set.
func (s *Stop) Limit() time.Duration {
	limit, _ := time.ParseDuration(s.WallTime) // already checked
	return limit
}

// Dims returns the number of dimensions, 1 to 3. A grid of one dimension is one row of points.
func (r *Run) Dims() int { return len(r.Grid.Size) }

// Spacing returns the distance between points on each of the Dims axes.
func (r *Run) Spacing() []float64 { return r.Grid.Spacing }

// Periodic returns which of the Dims axes are periodic.
func (r *Run) Periodic() []bool {
	periodic, b := make([]bool, r.Dims()), r.Boundary
	if len(r.Fields) > 0 {
		b = r.Fields[0].Boundary
	}
	for axis := range periodic {
		periodic[axis] = b.Face(axis, 0).Kind == solvers.Periodic
	}
	return periodic
}

// StableStep returns the largest stable time step of the explicit heat solver. It returns 0 for other solvers, or if
// the diffusivity is not a single number.
func (r *Run) StableStep() float64 {
	if r.Heat == nil {
		return 0
	}
	return r.Heat.Stable
}

// TimeStep returns the time step: heat.dt or time.dt. It is 0 for solver laplace, and if it follows from the fields.
func (r *Run) TimeStep() float64 {
	switch {
	case r.Heat != nil:
		return r.Heat.DT
	case r.Time != nil:
		return r.Time.DT.Length
	}
	return 0
}

// parsePlane parses a plane such as "z=16", an index, or "z=0.5", a coordinate.
func parsePlane(text string) (axis int, at float64, index, ok bool) {
	name, value, _ := strings.Cut(text, "=")
	if axis = strings.Index("xyz", name); len(name) != 1 || axis < 0 {
		return 0, 0, false, false
	}
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return axis, float64(n), true, true
	}
	at, err := strconv.ParseFloat(value, 64)
	return axis, at, false, err == nil && at-at == 0 && strings.ContainsAny(value, ".e")
}

// Definitions are formulas by name, in the order of the config.
type Definitions []solvers.Definition

// of returns the formula with a name, or "" if there is none.
func (d Definitions) of(name string) string {
	if i := slices.IndexFunc(d, func(one solvers.Definition) bool { return one.Name == name }); i >= 0 {
		return d[i].Formula
	}
	return ""
}

// MarshalJSON encodes the formulas as in a config.
func (d Definitions) MarshalJSON() ([]byte, error) {
	return ordered(len(d), func(i int) (string, any) { return d[i].Name, d[i].Formula })
}

// PerField are texts by field; the name "" stands for the only field.
type PerField Definitions

// of returns the text for a field, or "" if there is none.
func (p PerField) of(field string) string {
	if len(p) == 1 && p[0].Name == "" {
		return p[0].Formula
	}
	return Definitions(p).of(field)
}

// MarshalJSON encodes the texts as in a config: a single text, or one per field.
func (p PerField) MarshalJSON() ([]byte, error) {
	if len(p) == 1 && p[0].Name == "" {
		return json.Marshal(p[0].Formula)
	}
	return Definitions(p).MarshalJSON()
}

// Stored contains the formulas of section define: fields that have a formula.
type Stored []Field

// MarshalJSON encodes the formulas as in a config.
func (s Stored) MarshalJSON() ([]byte, error) {
	return ordered(len(s), func(i int) (string, any) {
		return s[i].Name, map[string]any{"formula": s[i].Initial, "boundary": s[i].Boundary}
	})
}

// A Field is a field of solver equation.
type Field struct {
	Name     string   `json:"-"`                  // name in formulas
	Initial  string   `json:"initial"`            // value at t = 0, an expression
	Rate     string   `json:"rate,omitempty"`     // rate at t = 0, with Accelerations; "": 0
	Previous string   `json:"previous,omitempty"` // value one step before; "": as Initial
	Boundary Boundary `json:"boundary"`           // section boundary of the field
}

// Fields are the fields of solver equation, by name.
type Fields []Field

// MarshalJSON encodes the fields as in a config.
func (f Fields) MarshalJSON() ([]byte, error) {
	return ordered(len(f), func(i int) (string, any) { return f[i].Name, f[i] })
}

// A File is an output file of one field, or another text for it.
type File struct {
	Field string // name of the field; "": the only field
	Path  string // file name
}

// Files are the output files of one kind, or texts for fields.
type Files []File

// MarshalJSON encodes the files as in a config: a single name, or one name per field.
func (f Files) MarshalJSON() ([]byte, error) {
	if len(f) == 1 && f[0].Field == "" {
		return json.Marshal(f[0].Path)
	}
	return ordered(len(f), func(i int) (string, any) { return f[i].Field, f[i].Path })
}

// ordered encodes an object whose keys have a given order.
func ordered(n int, at func(i int) (key string, value any)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		name, value := at(i)
		k, err := json.Marshal(name)
		v, errValue := json.Marshal(value)
		if err := errors.Join(err, errValue); err != nil {
			return nil, err
		}
		b.WriteString(","[:min(i, 1)] + string(k) + ":" + string(v))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Time contains the keys of section time of solver equation.
type Time struct {
	Integrator string   `json:"integrator,omitempty"` // method of time integration; "" for update formulas
	DT         TimeStep `json:"dt"`                   // length of a step
	Force      bool     `json:"force,omitempty"`      // accept DT even if it is known to be unstable
}

// A TimeStep is the length of a step, or how it follows from the fields.
type TimeStep struct {
	Length float64 // length of all steps; 0 with Speed, or if halox chooses it
	CFL    float64 // Courant number, with Speed
	Speed  string  // formula of a speed, instead of Length, see solvers.Equation
}

// MarshalJSON encodes the time step as in a config.
func (s TimeStep) MarshalJSON() ([]byte, error) {
	switch {
	case s.Speed != "":
		return json.Marshal(map[string]any{"cfl": s.CFL, "speed": s.Speed})
	case s.Length == 0:
		return json.Marshal(Auto)
	}
	return json.Marshal(s.Length)
}

// decode sets s to the value of a node. It returns false if the node is not a valid time step.
func (s *TimeStep) decode(n *yaml.Node) (ok bool) {
	if n.Kind != yaml.MappingNode {
		s.Length, ok = decimal(n)
		return ok && s.Length > 0 || text(n) == Auto
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch value := n.Content[i+1]; text(n.Content[i]) {
		case "cfl":
			s.CFL, _ = decimal(value)
		case "speed":
			s.Speed, _ = formulaText(value)
		default:
			return false
		}
	}
	return s.CFL > 0 && s.Speed != ""
}

// Equation returns the equation of a run, without the element type of the fields and the mode of sums. It returns nil
// for a run of solver heat or laplace that a stencil can represent.
func (r *Run) Equation() *solvers.Equation {
	if r.Solver != SolverEquation {
		return r.extended(false)
	}
	e := &solvers.Equation{Size: r.Grid.Size, Start: r.Grid.Start, End: r.Grid.End, Spacing: r.Grid.Spacing,
		Parameters: r.Parameters, Constants: r.Constants, Let: r.Let,
		Integrator: solvers.Integrator(r.Time.Integrator), TimeStep: r.Time.DT.Length, Force: r.Time.Force,
		CFL: r.Time.DT.CFL, Speed: r.Time.DT.Speed,
		Until: r.Stop.Time, Group: max(1, int(r.Exchange.Steps)), Open: openFile,
		Measured: r.Stop.Field,
	}
	for _, f := range r.Fields {
		field := solvers.EquationFor{Name: f.Name, Initial: f.Initial, InitialRate: f.Rate, Previous: f.Previous,
			Exact: r.Exact.of(f.Name),
			Rate:  r.Equations.of(f.Name), Acceleration: r.Accelerations.of(f.Name), Update: r.Update.of(f.Name)}
		field.Boundary = r.conditions(f.Boundary)
		e.Fields = append(e.Fields, field)
	}
	for _, f := range r.Define {
		e.Define = append(e.Define, solvers.Stored{
			Definition: solvers.Definition{Name: f.Name, Formula: f.Initial}, Boundary: r.conditions(f.Boundary)})
	}
	for _, stage := range r.Stages {
		e.Stages = append(e.Stages, stage)
	}
	return e
}

// conditions returns the conditions of a field.
func (r *Run) conditions(b Boundary) (all [6]solvers.ConditionText) {
	for i := range all {
		face := b.Face(i/2, i%2)
		all[i] = solvers.ConditionText{Kind: face.Kind, Value: face.Value, Transfer: face.Transfer,
			Diffusivity: face.Diffusivity, Half: r.Grid.Kind == Cells}
	}
	return all
}

// boundaries returns the boundary conditions of all fields, by key.
func (r *Run) boundaries() map[string]Boundary {
	all := map[string]Boundary{}
	if r.Boundary != nil {
		all["boundary"] = r.Boundary
	}
	for _, f := range r.Fields {
		all["fields."+f.Name+".boundary"] = f.Boundary
	}
	return all
}
