package configs

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/solvers"
)

// Auto is the word for what halox chooses.
const Auto = "auto"

// The values of Run.Solver.
const (
	SolverLaplace = "laplace"
	SolverHeat    = "heat"
)

// A Run is the complete, checked config of a run. Its JSON form is a config itself, which Load reads back as the
// same Run. The schema has an entry for each key, with its default and limits.
type Run struct {
	Solver        string   `json:"solver"` // SolverLaplace or SolverHeat
	Grid          Grid     `json:"grid"`
	Stencil       Stencil  `json:"stencil"`
	Precision     string   `json:"precision"` // "float64" or "float32"
	Boundary      Boundary `json:"boundary"`
	Initial       string   `json:"initial"`         // the field at the start, an expression
	Exact         string   `json:"exact,omitempty"` // the exact solution; "": not known
	Heat          *Heat    `json:"heat,omitempty"`  // nil unless Solver is "heat"
	Stop          Stop     `json:"stop"`
	Devices       Devices  `json:"devices"`
	Decomposition Parts    `json:"decomposition"`
	Exchange      Exchange `json:"exchange"`
	Output        Output   `json:"output"`
}

// A Grid is the owned points and the distances between them, per axis, x first.
type Grid struct {
	Size    []int     `json:"size"`
	Spacing []float64 `json:"spacing"`
}

// Points returns the number of points of the grid.
func (g Grid) Points() int64 {
	points := int64(1)
	for _, n := range g.Size {
		points *= int64(n)
	}
	return points
}

// Stencil selects the number and the shape of the points that a step reads.
type Stencil struct {
	Points int    `json:"points"`
	Shape  string `json:"shape"` // "star", "box"
}

// Heat has the keys of the heat solver alone.
type Heat struct {
	DT          float64 `json:"dt"` // time between two steps
	Diffusivity float64 `json:"diffusivity"`
	Force       bool    `json:"force"` // take DT even if it is not stable
	Stable      float64 `json:"-"`     // see Run.StableStep
}

// Stop says when a run ends.
type Stop struct {
	Iterations int     `json:"iterations"`          // steps at most, from 1
	Tolerance  float64 `json:"tolerance,omitempty"` // of Norm, to end at; 0: none
	Norm       string  `json:"norm"`                // of the change of a step: "max" or "l2"; or NormResidual
	CheckEvery int     `json:"check_every"`         // steps between two checks of the change
	Sums       string  `json:"sums"`                // of squares: "reproducible" or "fast"
}

// NormResidual is the norm that bounds the residual of the equation, see solvers.Problem.ResidualScale.
const NormResidual = "residual"

// Devices says what a run runs on.
type Devices struct {
	Backend string `json:"backend"`       // auto, or one of streams.Backends
	Count   Count  `json:"count"`         // per process; 0: all that fit
	IDs     []int  `json:"ids,omitempty"` // the backend's numbers; nil: the first Count
}

// Exchange says how subdomains send their boundary regions to each other.
type Exchange struct {
	Scheme  string `json:"scheme"`          // "auto" or one of scheme.All
	Order   string `json:"order,omitempty"` // one of the scheme's orders; "" if it has none
	Path    string `json:"path"`            // "auto" or one of p2p.Paths
	Network string `json:"network"`         // "auto" or one of mpi.Networks
	Steps   Count  `json:"steps"`           // between two exchanges; 0: halox tries some
}

// Output names the files that a run writes. An empty name writes none.
type Output struct {
	Picture string `json:"picture,omitempty"` // .png, .svg or .pdf
	Slice   string `json:"slice"`             // the plane of a 3-D picture: "auto" or "z=16"
	Field   string `json:"field,omitempty"`   // .npy
	Record  string `json:"record,omitempty"`  // .json
	History bool   `json:"history"`           // keep the norms of every check in the record
}

// A Face is the boundary condition of one face. An axis is periodic as a whole.
type Face struct {
	Kind  boundary.Kind // solvers.Periodic or one of boundary.Kinds
	Value string        // of kinds that have one: a number or an expression, of t too if the solver is heat
}

// MarshalJSON writes the face as a config does.
func (f Face) MarshalJSON() ([]byte, error) {
	if f.Value != "" {
		return json.Marshal(map[boundary.Kind]string{f.Kind: f.Value})
	}
	return json.Marshal(f.Kind)
}

// A Boundary has the condition of every face of the grid, by the name of the face: "x-", "x+", "y-", ...
type Boundary map[string]Face

// faceName returns the name of a face. Axes count from 0; side is 0 for the face at the low end.
func faceName(axis, side int) string { return "xyz"[axis:axis+1] + "-+"[side:side+1] }

// Face returns the condition at the end of an axis. Axes count from 0; side is 0 for the face at the low end.
func (b Boundary) Face(axis, side int) Face { return b[faceName(axis, side)] }

// A Count is a number of devices or steps, or 0 where halox chooses it.
type Count int

// MarshalJSON writes 0 as "auto".
func (c Count) MarshalJSON() ([]byte, error) {
	if c == 0 {
		return json.Marshal(Auto)
	}
	return json.Marshal(int(c))
}

// Parts is the number of subdomains along each axis; nil where halox chooses it.
type Parts []int

// MarshalJSON writes nil as "auto".
func (p Parts) MarshalJSON() ([]byte, error) {
	if p == nil {
		return json.Marshal(Auto)
	}
	return json.Marshal([]int(p))
}

// Dims returns the number of dimensions, 1 to 3. A grid of one is one row of points.
func (r *Run) Dims() int { return len(r.Grid.Size) }

// Spacing returns the distance between points on each of the Dims axes.
func (r *Run) Spacing() []float64 { return r.Grid.Spacing }

// Periodic returns which of the Dims axes are periodic.
func (r *Run) Periodic() []bool {
	periodic := make([]bool, r.Dims())
	for axis := range periodic {
		periodic[axis] = r.Boundary.Face(axis, 0).Kind == solvers.Periodic
	}
	return periodic
}

// StableStep returns the largest time step with which the explicit heat solver is stable; 0 for another solver.
func (r *Run) StableStep() float64 {
	if r.Heat == nil {
		return 0
	}
	return r.Heat.Stable
}

// TimeStep returns the time between two steps of the heat solver: the one set, or StableStep; 0 for another solver.
func (r *Run) TimeStep() float64 {
	if r.Heat == nil {
		return 0
	}
	return r.Heat.DT
}

// Plane returns the axis across the plane that a picture shows, and the plane's 0-based index on it: what output.slice
// says, or the middle plane of z. A grid of fewer than three dimensions is plane 0 of axis 2.
func (r *Run) Plane() (axis, index int) {
	if r.Dims() < 3 {
		return 2, 0
	}
	if axis, index, ok := parsePlane(r.Output.Slice); ok {
		return axis, index
	}
	return 2, r.Grid.Size[2] / 2
}

var planeForm = regexp.MustCompile(`^([xyz])=([0-9]+)$`)

// parsePlane reads "z=16".
func parsePlane(text string) (axis, index int, ok bool) {
	m := planeForm.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, false
	}
	index, err := strconv.Atoi(m[2])
	return strings.Index("xyz", m[1]), index, err == nil
}
