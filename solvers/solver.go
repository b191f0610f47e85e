package solvers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/checkpoint"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Solver is a problem prepared on its devices. Run runs steps until the options or the context end the run, see
// scheme.Runner. The result contains the norms of one variable.
type Solver struct {
	resources streams.Resources
	*scheme.Runner
	Statistics *Statistics // of Problem.Statistics; nil if there are none

	problem   *Problem
	variables []*scheme.Variable // fields that steps compute come first

	parameters map[string]float64 // parameters that may change
}

// New prepares a problem on the devices of a plan from Problem.NewPlan: it compiles kernels, and allocates and fills
// the fields. If there is too little memory for the fields, it returns streams.ErrOutOfMemory and allocates nothing;
// DryRun returns the total memory. If processes share the grid, all of them must call New; if it fails in one, it
// returns an error in all. If the context ends during the fill, New returns the error of the context. Close frees
// everything that New allocated.
func New(ctx context.Context, p *Problem, plan *scheme.Plan, c *kernels.Compiler) (s *Solver, err error) {
	return newSolver(ctx, p, plan, c, nil)
}

// newSolver is New for the start of a problem or, if saved is set, for the continuation from a checkpoint of
// Solver.State.
func newSolver(
	ctx context.Context, p *Problem, plan *scheme.Plan, c *kernels.Compiler, saved *checkpoint.Checkpoint,
) (s *Solver, err error) {
	if p == nil || plan == nil || firstPlan(plan.Stages) == nil {
		return nil, errNoPlan
	}
	place := firstPlan(plan.Stages).Placement
	s = &Solver{problem: p, parameters: p.parameters}
	defer func() {
		if err != nil {
			s, err = nil, errors.Join(err, s.Close())
		}
	}()
	s.variables, err = newVariables(p, place)
	for _, v := range s.variables {
		s.resources.Add(v)
	}
	if err := place.Agree(context.Background(), "allocate the fields", err); err != nil {
		return s, err
	}
	step, err := s.fill(ctx, saved != nil)
	if err := place.Agree(context.Background(), "fill the fields", err); err != nil {
		return s, err
	}
	if saved != nil {
		err := s.restore(ctx, saved)
		if err := place.Agree(context.Background(), "restore the fields", err); err != nil {
			return s, err
		}
	} else if p.system != nil && p.system.start != nil && !place.FirstDevice().IsDry() {
		err := s.start(ctx, *step, plan, c)
		if err := place.Agree(context.Background(), "start the fields", err); err != nil {
			return s, err
		}
	}
	if s.Runner, err = scheme.NewRunner(ctx, step, plan, c); err == nil {
		s.resources.Add(s.Runner)
	}
	if err == nil && len(p.Statistics) > 0 {
		s.Statistics, err = newStatistics(ctx, p, s.variables, c)
		s.resources.Add(&s.Statistics.resources)
	}
	return s, err
}

// fill fills the fields and returns the step. If the fields of steps are restored later, it fills only their ghosts.
func (s *Solver) fill(ctx context.Context, restored bool) (*scheme.Step, error) {
	if err := s.fillLevel(ctx, 0, s.problem.of, restored); err != nil {
		return nil, err
	}
	for _, v := range s.variables {
		if err := v.SetAll(); err != nil {
			return nil, err
		}
	}
	if !restored {
		if err := s.fillLevel(ctx, -1, s.problem.before, false); err != nil {
			return nil, err
		}
	}
	return s.problem.step(s.variables)
}

// State returns the fields that determine the following steps, by names: "u" for the values of u after the last step,
// and "u@-1" for those of the step before. Setup.Restore continues from a checkpoint of them. Statistics come last.
func (s *Solver) State() (all []checkpoint.Array) {
	all = s.state()
	if s.Statistics != nil {
		for i, f := range s.Statistics.Fields() {
			all = append(all, checkpoint.Array{Name: s.Statistics.Names[i], Field: f})
		}
	}
	return all
}

func (s *Solver) state() (all []checkpoint.Array) {
	for i, v := range s.variables[:s.problem.written()] {
		of := s.problem.of(i)
		for level := range v.Levels() - 1 {
			if needed := s.problem.system != nil && len(s.problem.system.reads(i, -level)) > 0; needed ||
				level == 0 && i < s.problem.computed() {
				name := cmp.Or(of.name, "u")
				if level > 0 {
					name = fmt.Sprintf("%s@-%d", name, level)
				}
				all = append(all, checkpoint.Array{Name: name, Field: v.Level(v.Newest() - int64(level))})
			}
		}
	}
	return all
}

// restore sets the state to that of a checkpoint.
func (s *Solver) restore(ctx context.Context, saved *checkpoint.Checkpoint) (err error) {
	for _, v := range s.variables[:s.problem.written()] {
		err = errors.Join(err, v.SetNewest(saved.Step))
	}
	for _, a := range s.state() {
		if err == nil {
			err = saved.Read(ctx, a.Name, a.Field)
		}
	}
	return err
}

// fillLevel fills one level of some variables, or only the ghosts of those that steps write.
func (s *Solver) fillLevel(ctx context.Context, level int64, of func(variable int) *Problem, ghosts bool) error {
	fillOne := fill[float64]
	if s.problem.Element == domain.Float32 {
		fillOne = fill[float32]
	}
	for i, v := range s.variables {
		if p := of(i); p != nil {
			if err := fillOne(ctx, v.Level(level), p, ghosts && i < s.problem.written()); err != nil {
				return err
			}
		}
	}
	return nil
}

// start computes the level before the first step from the rates stored there, by running a step of zero duration. This
// step computes level 2, which uses the same memory as level -1, from level 1; level 0 holds the rates.
func (s *Solver) start(ctx context.Context, step scheme.Step, plan *scheme.Plan, c *kernels.Compiler) error {
	step.Stages, step.Length = s.problem.stages(s.problem.system.start, s.variables), 0
	for i := range step.Stages {
		if give := step.Stages[i].Parameters; give != nil {
			step.Stages[i].Parameters = func(_ sweep.Moment, p any) error {
				return give(sweep.Moment{Step: 1, Length: s.problem.TimeStep}, p)
			}
		}
	}
	newest := func(level int64) (err error) {
		for _, v := range s.variables {
			err = errors.Join(err, v.SetNewest(level))
		}
		return err
	}
	err := errors.Join(s.fillLevel(ctx, 0, s.problem.before, false), newest(1))
	if err := firstPlan(plan.Stages).Placement.Agree(context.Background(), "fill the rates", err); err != nil {
		return err
	}
	r, err := scheme.NewRunner(ctx, &step, plan, c)
	if err != nil {
		return err
	}
	_, err = r.Run(ctx, scheme.Options{Scheme: scheme.TwoStream, Steps: 1})
	return errors.Join(err, r.Close(), s.fillLevel(ctx, 0, func(i int) *Problem {
		if s.problem.before(i) == nil {
			return nil
		}
		return s.problem.of(i)
	}, false), newest(0))
}

// newVariables allocates the variables of a problem. Their content is undefined. If it fails, it also returns the
// variables that were allocated.
func newVariables(p *Problem, place *halo.Placement) (all []*scheme.Variable, err error) {
	if err := p.check(place); err != nil {
		return nil, err
	}
	for i := range p.variables() {
		v, err := scheme.NewVariable(place, p.of(i).Field(), p.levels(i))
		if err != nil {
			return all, err
		}
		v.Boundary = p.of(i).boundary()
		all = append(all, v)
	}
	return all, nil
}

// Close frees everything that New allocated. Closing twice is not an error.
func (s *Solver) Close() error { return s.resources.Close() }

// SetParameters sets parameters of an Equation for later runs, by name. Equation.Variable must contain the names. Other
// parameters keep their values. If processes share the grid, all of them must call it with the same values. It returns
// an error during a run.
func (s *Solver) SetParameters(values map[string]float64) error {
	next := maps.Clone(s.parameters)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := next[name]; !ok {
			return fmt.Errorf("solvers: parameter %s must be one of Equation.Variable, %q", name,
				slices.Sorted(maps.Keys(next)))
		}
		if next[name] = values[name]; math.IsNaN(next[name]) || math.IsInf(next[name], 0) {
			return fmt.Errorf("solvers: parameter %s must be finite, got %v", name, next[name])
		}
	}
	for stage := range s.Plans() {
		if s.problem.system == nil {
			break
		}
		if values := s.problem.valuesOf(&s.problem.system.stages[stage]); values != nil {
			if err := s.Runner.SetParameters(stage, values.Parameters(next)); err != nil {
				return err
			}
		}
	}
	s.parameters = next
	return nil
}

// Plan returns the messages after a stage.
func (s *Solver) Plan() *halo.Plan { return firstPlan(s.Plans()) }

// Field returns the field after the last step; for a system, the first field.
func (s *Solver) Field() *halo.Field { return s.field(0) }

// Fields returns the fields of Problem.Fields after the last step.
func (s *Solver) Fields() (all []*halo.Field) {
	for i := range s.problem.computed() {
		all = append(all, s.field(i))
	}
	return all
}

func (s *Solver) field(i int) *halo.Field { return s.variables[i].Level(s.Done()) }

// Fastest returns the trials of all schemes for the problem on a placement, fastest first, see scheme.Fastest.
func Fastest(
	ctx context.Context, p *Problem, place *halo.Placement, s scheme.Search, o scheme.Options,
) (trials []scheme.Trial, known bool, err error) {
	variables, step, err := p.newStep(place)
	if err = scheme.Agreed(place, err); err == nil {
		trials, known, err = scheme.Fastest(ctx, step, s, o)
	}
	for _, v := range variables {
		err = errors.Join(err, v.Close())
	}
	return trials, known, err
}

// newStep creates a step with new variables.
func (p *Problem) newStep(place *halo.Placement) (all []*scheme.Variable, step *scheme.Step, err error) {
	if all, err = newVariables(p, place); err == nil {
		step, err = p.step(all)
	}
	return all, step, err
}

// Ahead starts compiling the programs that a run of the problem or Fastest will need, in addition to those that
// Search.Ahead has started for another problem, see scheme.Ahead. It accepts any placement of the problem's subdomains
// on devices like those of the run. It ignores errors, which New or Fastest report.
func Ahead(ctx context.Context, p *Problem, place *halo.Placement, s scheme.Search, o scheme.Options) *kernels.Ahead {
	if p.check(place) == nil && !place.FirstDevice().GoKernels {
		dry := place.DryRun()
		defer func() { _ = streams.CloseAll(dry.Devices) }()
		if _, step, err := p.newStep(dry); err == nil {
			return scheme.Ahead(ctx, step, s, o)
		}
	}
	if s.Ahead != nil {
		return s.Ahead
	}
	return s.Compiler.Ahead(ctx)
}

// DryRun returns the memory that a run of the problem needs on each device of a plan, including everything that New
// allocates and that reading the field afterwards needs, see scheme.DryRun.
func DryRun(
	ctx context.Context, p *Problem, plan *scheme.Plan, c *kernels.Compiler, o scheme.Options,
) (all []scheme.Memory, err error) {
	real := firstPlan(plan.Stages).Placement
	place := real.DryRun()
	defer func() { err = errors.Join(err, streams.CloseAll(place.Devices)) }()
	s, err := New(ctx, p, plan.On(place), c)
	if errors.Is(err, streams.ErrOutOfMemory) { // the address space is too small
		return nil, cmp.Or(Fit(p, real), err)
	}
	if err != nil {
		return nil, err
	}
	if all, err = s.Runner.DryRun(ctx, o); err != nil {
		return nil, err
	}
	for _, a := range s.State() {
		for rank, d := range place.Devices {
			i := slices.IndexFunc(all, func(m scheme.Memory) bool { return place.IsLocal(rank) && m.Device == d.Real() })
			if i < 0 {
				continue
			}
			if all[i].State == nil {
				all[i].State = map[string]int64{}
			}
			all[i].State[a.Name] += a.Field.Parts[rank].Data.Memory.Size()
		}
	}
	return all, nil
}

// Fit returns streams.ErrOutOfMemory if the fields of a problem do not fit on a placement.
func Fit(p *Problem, place *halo.Placement) error {
	err := halo.Fit(place, 1, p.specs()...)
	if errors.Is(err, streams.ErrOutOfMemory) {
		return fmt.Errorf("%w: use more devices, float32 or a smaller grid", err)
	}
	return err
}

// Deviation compares a field with an exact solution, an expression that may depend on t; field is an index in
// Problem.Fields. It returns an error if the expression is not finite at a point, or if the context ends. If processes
// share the grid, all of them must call it; only rank 0 gets the result, and the context is ignored.
func (s *Solver) Deviation(ctx context.Context, field int, exact *stencil.Expression) (Deviation, error) {
	if s.problem.Element == domain.Float32 {
		return deviation[float32](ctx, s.field(field), s.problem, exact, s.Done(), s.Time())
	}
	return deviation[float64](ctx, s.field(field), s.problem, exact, s.Done(), s.Time())
}

// Read copies the owned points of box, which must be in this process, to dst, x fastest without gaps.
func (s *Solver) Read(dst []float64, box domain.Box) error {
	if s.problem.Element == domain.Float64 {
		return halo.Read(dst, s.Field(), box)
	}
	return widened(dst, func(narrow []float32) error { return halo.Read(narrow, s.Field(), box) })
}

// Gather copies the points of a box of a field to dst, x fastest; field is an index in Problem.Fields or, after these,
// in Statistics.Names. If processes
// share the grid, all of them must call it; only rank 0 gets the points in dst.
func (s *Solver) Gather(ctx context.Context, field int, dst []float64, box domain.Box) error {
	all := s.Fields()
	if s.Statistics != nil {
		all = append(all, s.Statistics.Fields()...)
	}
	if s.problem.Element == domain.Float64 {
		return halo.Gather(ctx, dst, all[field], box, 0)
	}
	return widened(dst, func(narrow []float32) error { return halo.Gather(ctx, narrow, all[field], box, 0) })
}

// widened reads values as float32 and converts them to dst.
func widened(dst []float64, read func(narrow []float32) error) error {
	narrow := make([]float32, len(dst))
	err := read(narrow)
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return err
}

// recallTrials returns the cached trials of the schemes for the problem, see Fastest.
func recallTrials(
	ctx context.Context, p *Problem, place *halo.Placement, s scheme.Search, o scheme.Options,
) (trials []scheme.Trial, known bool, err error) {
	dry := place.DryRun()
	s.Known = true
	trials, known, err = Fastest(ctx, p, dry, s, o)
	if errors.Is(err, streams.ErrOutOfMemory) {
		err = nil // the address space is too small, so there were no trials
	}
	return trials, known, errors.Join(err, streams.CloseAll(dry.Devices))
}

// groupsTried are the exchange intervals to try, if subdomains have enough layers.
var groupsTried = [...]int{1, 2, 4, 8}

// trier is the type of Fastest and recallTrials.
type trier func(
	context.Context, *Problem, *halo.Placement, scheme.Search, scheme.Options,
) (trials []scheme.Trial, known bool, err error)

// eachGroup tries several exchange intervals: 1, 2, 4 and 8 steps, if subdomains own the layers that their neighbors
// need and there is enough memory. It returns all trials, fastest first, each with its interval in Group. When a search
// reaches its time limit, it tries no further intervals, see scheme.Search.Begun. Without neighbors there is nothing to
// exchange, so only 1 is tried, except for a scheme that exchanges within a device. known is true if all trials were
// cached.
func eachGroup(
	ctx context.Context, p *Problem, place *halo.Placement, s scheme.Search, o scheme.Options, try trier,
) (all []scheme.Trial, known bool, err error) {
	if err := p.check(place); err != nil {
		return nil, false, err
	}
	known = true
	if s.Begun.IsZero() {
		s.Begun = time.Now()
	}
	var tried []*Problem
	for _, steps := range groupsTried {
		of := *p
		of.Group = steps
		if steps > 1 && (isolated(place) && !s.Scheme.Needs().LocalGroups || !groups(s.Scheme) ||
			place.CheckWidth(of.Width()) != nil) {
			break
		}
		tried = append(tried, &of)
		if own := s.Ahead == nil; !s.Known && (own || steps > 1) { // compile all programs in parallel
			if s.Ahead = Ahead(ctx, &of, place, s, o); own {
				defer s.Ahead.Stop()
			}
		}
	}
	for i, of := range tried {
		trials, ok, err := try(ctx, of, place, s, o)
		if errors.Is(err, streams.ErrOutOfMemory) && i > 0 {
			break
		}
		if err != nil {
			return nil, false, err
		}
		known = known && ok
		if len(trials) == 0 { // no trial is cached, or the search has reached its limit
			known = false
			break
		}
		all = append(all, trials...)
	}
	slices.SortStableFunc(all, func(a, b scheme.Trial) int { return cmp.Compare(a.Step, b.Step) })
	return all, known, nil
}

// groups reports whether a scheme supports several steps between two exchanges, or Auto may be one that does.
func groups(name scheme.Scheme) bool {
	return name == scheme.Auto || name == "" || name.Needs().Groups
}

// isolated reports whether no subdomain has a neighbor.
func isolated(place *halo.Placement) bool {
	for _, side := range domain.Faces(place.Grid.Dims) {
		if _, ok := place.Neighbor(0, side); ok {
			return false
		}
	}
	return true
}

// ExtraPoints returns the number of points of others that all subdomains sweep in the steps between two
// exchanges.
func (p *Problem) ExtraPoints(place *halo.Placement) (extra int64) {
	if p.Group <= 1 {
		return 0
	}
	var layers domain.Radius
	all := slices.Repeat(p.stageReaches(), p.Group)
	for _, r := range slices.Backward(all[1:]) { // the last stage sweeps no ghosts
		for a := range 3 {
			layers.Minus[a], layers.Plus[a] = layers.Minus[a]+r.Minus[a], layers.Plus[a]+r.Plus[a]
		}
		for rank, s := range place.Subdomains {
			extra += place.Grown(rank, layers).Points() - s.Box.Points()
		}
	}
	return extra
}
