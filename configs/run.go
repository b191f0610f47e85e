package configs

// A Run is all that a run needs to know, complete and checked. Its JSON and YAML forms are configs themselves, which
// Load reads back as the same Run.
type Run struct {
	Solver        string   `json:"solver" yaml:"solver"` // "laplace" or "heat"
	Grid          Grid     `json:"grid" yaml:"grid"`
	Stencil       Stencil  `json:"stencil" yaml:"stencil"`
	Precision     string   `json:"precision" yaml:"precision"` // "float64" or "float32"
	Boundary      Boundary `json:"boundary" yaml:"boundary"`
	Initial       string   `json:"initial" yaml:"initial"`                 // the field at the start, an expression
	Exact         string   `json:"exact,omitempty" yaml:"exact,omitempty"` // what it should become; "": not known
	Heat          *Heat    `json:"heat,omitempty" yaml:"heat,omitempty"`   // nil unless Solver is "heat"
	Stop          Stop     `json:"stop" yaml:"stop"`
	Devices       Devices  `json:"devices" yaml:"devices"`
	Decomposition Parts    `json:"decomposition" yaml:"decomposition"` // nil: the planner's choice
	Exchange      Exchange `json:"exchange" yaml:"exchange"`
	Output        Output   `json:"output" yaml:"output"`
}

// The values of Run.Solver.
const (
	SolverLaplace = "laplace"
	SolverHeat    = "heat"
)

// Auto is the word for what halox is to choose.
const Auto = "auto"

// Dims returns the number of dimensions, 2 or 3.
func (r *Run) Dims() int { return len(r.Grid.Size) }

// Spacing returns the distance between points on each of the Dims axes.
func (r *Run) Spacing() []float64 { return r.Grid.Spacing }

// Periodic returns which of the Dims axes are periodic.
func (r *Run) Periodic() []bool {
	periodic := make([]bool, r.Dims())
	for axis := range periodic {
		periodic[axis] = r.Boundary.Face(axis, 0).Kind == Periodic
	}
	return periodic
}

// StableStep returns the largest time step with which the explicit heat solver is stable, as the stencil's kind says. It
// is 0 for another solver.
func (r *Run) StableStep() float64 {
	if r.Heat == nil {
		return 0
	}
	return r.Heat.Stable
}

// TimeStep returns the time between two steps of the heat solver: the one set, or StableStep. It is 0 for another solver.
func (r *Run) TimeStep() float64 {
	if r.Heat == nil {
		return 0
	}
	return r.Heat.DT
}

// run reads and checks everything. Sections whose keys depend on others come after them.
func (r *reader) run() *Run {
	run := &Run{Solver: r.solver()}
	r.steady = run.Solver == SolverLaplace
	run.Grid.Size = r.size()
	run.Precision = r.word("precision", "float64", "float32")
	run.Boundary = r.boundary()
	run.Grid.Spacing = r.spacing(run.Grid.Size, run.Boundary)
	run.Stencil = r.stencil(run)
	run.Initial = r.field("initial")
	run.Exact = r.field("exact")
	run.Heat = r.heat(run)
	run.Stop = r.stop()
	run.Devices = r.devices()
	run.Decomposition = r.decomposition(run)
	run.Exchange = r.exchange(run.Boundary)
	run.Output = r.output(run.Grid.Size, run.Stop)
	return run
}

// solver reads the one word without which nothing goes.
func (r *reader) solver() string {
	if _, ok := r.lookup("solver"); !ok {
		r.missing("solver")
		return ""
	}
	return r.word("solver", SolverLaplace, SolverHeat)
}
