package solvers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Solver is a problem made ready on its devices. Run steps until the options or the context say stop, see
// scheme.Runner; the result has the norms of one variable.
type Solver struct {
	resources streams.Resources
	*scheme.Runner
	problem *Problem
	u       *scheme.Variable
}

// New makes a problem ready on the devices of a plan of Problem.NewPlan: it compiles, allocates and fills the fields.
// Close frees what New made. Where there is too little memory for the fields, the error is
// streams.ErrOutOfMemory, and nothing is allocated: DryRun says what else is needed. Where processes share the grid all
// call New, and where one fails all return an error. Where the context ends, so does the filling, and New returns the
// context's error.
func New(ctx context.Context, p *Problem, plan *scheme.Plan, c *kernels.Compiler) (s *Solver, err error) {
	if plan == nil || len(plan.Stages) != 1 || plan.Stages[0] == nil {
		return nil, errNoPlan
	}
	place := plan.Stages[0].Placement
	s = &Solver{problem: p}
	defer func() {
		if err != nil {
			s, err = nil, errors.Join(err, s.Close())
		}
	}()
	if err = p.fits(plan); err == nil {
		if s.u, err = newVariable(p, place); err == nil {
			s.resources.Add(s.u)
		}
	}
	if err := place.Agree(context.Background(), "allocate the fields", err); err != nil {
		return s, err
	}
	step, err := s.fill(ctx)
	if err := place.Agree(context.Background(), "fill the fields", err); err != nil {
		return s, err
	}
	if s.Runner, err = scheme.NewRunner(ctx, step, plan, c); err == nil {
		s.resources.Add(s.Runner)
	}
	return s, err
}

// fill fills the fields, and returns the step.
func (s *Solver) fill(ctx context.Context) (*scheme.Step, error) {
	fillOne := fill[float64]
	if s.problem.Real == kernels.Float32 {
		fillOne = fill[float32]
	}
	if err := fillOne(ctx, s.u.Level(0), s.problem); err != nil {
		return nil, err
	}
	if err := s.u.SetAll(); err != nil {
		return nil, err
	}
	return s.problem.step(s.u)
}

// levels is how many fields a solver has: steps read one and write the other.
const levels = 2

// newVariable allocates the variable of a problem, which holds anything.
func newVariable(p *Problem, place *halo.Placement) (*scheme.Variable, error) {
	if err := p.check(place); err != nil {
		return nil, err
	}
	u, err := scheme.NewVariable(place, p.Field(), levels)
	if err != nil {
		return nil, err
	}
	u.Boundary = p.boundary()
	return u, nil
}

// Close frees what New made. Closing twice is no error.
func (s *Solver) Close() error { return s.resources.Close() }

// Plan returns the messages of a step.
func (s *Solver) Plan() *halo.Plan { return s.Plans()[0] }

// Field returns the field as the last step left it.
func (s *Solver) Field() *halo.Field { return s.u.Level(s.Done()) }

// Fastest returns the trials of all schemes for the problem on a placement, the shortest first, see
// scheme.Fastest.
func Fastest(
	ctx context.Context, p *Problem, place *halo.Placement, s scheme.Search, o scheme.Options,
) (trials []scheme.Trial, known bool, err error) {
	u, step, err := p.newStep(place)
	if err = scheme.Agreed(place, err); err != nil {
		if u != nil {
			err = errors.Join(err, u.Close())
		}
		return nil, false, err
	}
	trials, known, err = scheme.Fastest(ctx, step, s, o)
	return trials, known, errors.Join(err, u.Close())
}

// newStep makes a step of a new variable.
func (p *Problem) newStep(place *halo.Placement) (*scheme.Variable, *scheme.Step, error) {
	u, err := newVariable(p, place)
	if err != nil {
		return nil, nil, err
	}
	step, err := p.step(u)
	return u, step, err
}

// Ahead begins to compile the programs of a run of the problem, or those that Fastest will need, in addition to those
// that Search.Ahead has begun for another problem, see scheme.Ahead. It takes any
// placement of the problem's subdomains on devices like those of the run. What cannot be had New or Fastest says.
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

// DryRun returns what a run of the problem holds on each device of a plan, with all that New makes and all that
// is read of the field afterwards, see scheme.DryRun.
func DryRun(
	ctx context.Context, p *Problem, plan *scheme.Plan, c *kernels.Compiler, o scheme.Options,
) (all []scheme.Memory, err error) {
	real := plan.Stages[0].Placement
	place := real.DryRun()
	defer func() { err = errors.Join(err, streams.CloseAll(place.Devices)) }()
	s, err := New(ctx, p, plan.On(place), c)
	if errors.Is(err, streams.ErrOutOfMemory) { // there is not even the address space
		return nil, cmp.Or(Fit(p, real), err)
	}
	if err != nil {
		return nil, err
	}
	return s.Runner.DryRun(ctx, o)
}

// Fit returns an error, which is streams.ErrOutOfMemory, if the fields of a problem do not fit on a placement.
func Fit(p *Problem, place *halo.Placement) error {
	err := halo.Fit(place, levels, p.Field())
	if errors.Is(err, streams.ErrOutOfMemory) {
		return fmt.Errorf("%w: use more devices, float32 or a smaller grid", err)
	}
	return err
}

// Deviation compares the field with an exact solution, an expression that may depend on t; it is an error if it is not
// finite at a point. When the context ends, so does Deviation, with its error. Where processes share the grid all call
// it, rank 0 has the result, and it goes on to its end.
func (s *Solver) Deviation(ctx context.Context, exact *stencil.Expression) (Deviation, error) {
	if s.problem.Real == kernels.Float32 {
		return deviation[float32](ctx, s.Field(), s.problem, exact, s.Done())
	}
	return deviation[float64](ctx, s.Field(), s.problem, exact, s.Done())
}

// Read copies the owned points of box, which lie in this process, to dst, x fastest without gaps.
func (s *Solver) Read(dst []float64, box domain.Box) error {
	if s.problem.Real == kernels.Float64 {
		return halo.Read(dst, s.Field(), box)
	}
	return widened(dst, func(narrow []float32) error { return halo.Read(narrow, s.Field(), box) })
}

// Gather is Read where processes share the grid: rank 0 gets all points of the box in dst, which others ignore. All
// call it.
func (s *Solver) Gather(ctx context.Context, dst []float64, box domain.Box) error {
	if s.problem.Real == kernels.Float64 {
		return halo.Gather(ctx, dst, s.Field(), box, 0)
	}
	return widened(dst, func(narrow []float32) error { return halo.Gather(ctx, narrow, s.Field(), box, 0) })
}

// widened fills dst with what is read as float32.
func widened(dst []float64, read func(narrow []float32) error) error {
	narrow := make([]float32, len(dst))
	err := read(narrow)
	for i, v := range narrow {
		dst[i] = float64(v)
	}
	return err
}

// recallTrials returns the remembered trials of the schemes for the problem, see Fastest.
func recallTrials(
	ctx context.Context, p *Problem, place *halo.Placement, s scheme.Search, o scheme.Options,
) (trials []scheme.Trial, known bool, err error) {
	dry := place.DryRun()
	s.Known = true
	trials, known, err = Fastest(ctx, p, dry, s, o)
	if errors.Is(err, streams.ErrOutOfMemory) {
		err = nil // there is not even the address space, so none were made
	}
	return trials, known, errors.Join(err, streams.CloseAll(dry.Devices))
}

// groupsTried are the numbers of steps between two exchanges that are tried, where subdomains have the layers.
var groupsTried = [...]int{1, 2, 4, 8}

// trier is Fastest, or recallTrials.
type trier func(
	context.Context, *Problem, *halo.Placement, scheme.Search, scheme.Options,
) (trials []scheme.Trial, known bool, err error)

// eachGroup tries several numbers of steps between two exchanges: 1, 2, 4 and 8, as far as subdomains own the layers
// that their neighbours then need, and there is memory. It returns the trials of all, the shortest first; each has its
// number in Group. A search at its time limit tries no more of them, see scheme.Search.Begun. Without neighbors
// there is nothing to exchange, and only 1 is tried, except for a scheme that exchanges within a device. known says
// that all were remembered.
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
		if steps > 1 && (isolated(place) && !s.Scheme.Needs().Within || !groups(s.Scheme) ||
			place.CheckWidth(of.Width()) != nil) {
			break
		}
		tried = append(tried, &of)
		if own := s.Ahead == nil; !s.Known && (own || steps > 1) { // all compile side by side
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
		if len(trials) == 0 { // none is remembered, or the search has taken its time
			known = false
			break
		}
		all = append(all, trials...)
	}
	slices.SortStableFunc(all, func(a, b scheme.Trial) int { return cmp.Compare(a.Step, b.Step) })
	return all, known, nil
}

// groups reports whether a scheme runs several steps between two exchanges, or Auto may be one that does.
func groups(name scheme.Scheme) bool {
	return name == scheme.Auto || name == "" || name.Needs().Groups
}

// isolated reports whether no subdomain has a neighbour.
func isolated(place *halo.Placement) bool {
	for _, side := range domain.Faces(place.Grid.Dims) {
		if _, ok := place.Neighbour(0, side); ok {
			return false
		}
	}
	return true
}

// ExtraPoints returns how many points that others own all subdomains sweep in the steps between two exchanges.
func (p *Problem) ExtraPoints(place *halo.Placement) (extra int64) {
	r := p.Stencil.Radius()
	var layers domain.Radius
	for range max(1, p.Group) - 1 {
		for a := range 3 {
			layers.Minus[a], layers.Plus[a] = layers.Minus[a]+r.Minus[a], layers.Plus[a]+r.Plus[a]
		}
		for rank, s := range place.Subdomains {
			extra += place.Grown(rank, layers).Points() - s.Box.Points()
		}
	}
	return extra
}
