package scheme

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// maxPeriod is the maximum number of phases of steps: launches are prepared for each.
const maxPeriod = 32

// Check returns an error unless the parts of the step are valid and consistent. It is called by New and
// NewRunner.
func (s *Step) Check() error {
	if s == nil || len(s.Stages) == 0 {
		return fmt.Errorf("scheme: Step.Stages must not be empty")
	}
	for i := range s.Stages {
		if err := s.Stages[i].check(); err != nil {
			return fmt.Errorf("scheme: stage %d %q: %w", i, s.Stages[i].title(), err)
		}
	}
	p := s.placement()
	if err := checkOwners(p); err != nil {
		return err
	}
	for _, v := range s.variables() {
		if v.levels[0].Placement != p {
			return fmt.Errorf("scheme: variable %q must have the placement of the other variables", v.Spec.Name)
		}
	}
	if l := s.Length; math.IsNaN(l) || math.IsInf(l, 0) {
		return fmt.Errorf("scheme: Step.Length must be finite, got %v", l)
	}
	if s.Sums != "" && !slices.Contains(sums.Modes(), s.Sums) {
		return fmt.Errorf("scheme: Step.Sums must be one of %q, got %q", sums.Modes(), s.Sums)
	}
	if n := s.period(); n > maxPeriod {
		return fmt.Errorf("scheme: the least common multiple of the numbers of levels and of Step.Group (%d) "+
			"must be at most %d, got %d", s.group(), maxPeriod, n)
	}
	last := &s.Stages[len(s.Stages)-1]
	switch {
	case s.Pace != nil && s.Courant != nil:
		return errors.New("scheme: Step.Pace and Step.Courant must not both be set")
	case s.paced() && (last.Point == nil || len(last.Point.Reductions) == 0 || len(last.Writes) > 0):
		return fmt.Errorf("scheme: Step.Pace: the last stage must only have reductions, got %q", last.title())
	case s.Courant != nil && (last.Point.Reductions[0].Op != sweep.Max || !(s.Courant.Distance > 0)):
		return fmt.Errorf("scheme: Step.Courant: the distance must be positive and the first reduction of stage %q "+
			"the largest value, got %v and %q", last.title(), s.Courant.Distance, last.Point.Reductions[0].Op)
	}
	for i, v := range s.Measured {
		switch {
		case v == nil:
			return errors.New("scheme: a variable in Step.Measured is nil")
		case slices.Contains(s.Measured[:i], v):
			return fmt.Errorf("scheme: variable %q is in Step.Measured twice", v.Spec.Name)
		}
		if _, ok := v.real(); !ok || !slices.Contains(s.variables(), v) || v.Levels() < 2 && !s.measuredInPlace(v) {
			return fmt.Errorf("scheme: Step.Measured: variable %q must be float32 or float64 and written by a stage, "+
				"with two levels or more, or in place by a point function", v.Spec.Name)
		}
	}
	return s.checkGroup()
}

// measuredBy returns the measured variables that no stage after this one writes: it may take their norms.
func (s *Step) measuredBy(st *Stage) []*Variable {
	return slices.DeleteFunc(slices.Clone(s.Measured), func(v *Variable) bool {
		for i := len(s.Stages) - 1; &s.Stages[i] != st; i-- {
			if slices.ContainsFunc(s.Stages[i].Writes, func(a Access) bool { return a.Variable == v }) {
				return true
			}
		}
		return false
	})
}

// measuredInPlace reports whether a point function updates the variable in place.
func (s *Step) measuredInPlace(v *Variable) bool {
	return slices.ContainsFunc(s.Stages, func(st Stage) bool {
		return st.Point != nil && slices.ContainsFunc(st.sweepAccesses([]*Variable{v}),
			func(a sweep.Access) bool { return a.Before != "" })
	})
}

// check returns an error unless the stage and its accesses are valid.
func (st *Stage) check() error {
	if len(st.Writes) == 0 && (st.Point == nil || len(st.Point.Reductions) == 0 || len(st.Reads) == 0) {
		return errors.New("must write a variable or have reductions")
	}
	for a := range st.accesses {
		if err := st.checkAccess(a); err != nil {
			return err
		}
	}
	for i, w := range st.Writes {
		if w.around() {
			return fmt.Errorf("%q must be written only at the point itself", w.Name)
		}
		if w.Variable.Spec.IsConstant() {
			return fmt.Errorf("%q is constant along an axis, and must not be written", w.Name)
		}
		if n := w.Variable.Levels(); n > 1 && w.Level != 1 {
			return fmt.Errorf("%q, a variable of %d levels, must not be written at level %+d: "+
				"a step writes level +1", w.Name, n, w.Level)
		}
		if slices.ContainsFunc(st.Writes[:i], w.sameField) {
			return fmt.Errorf("%q must not be written twice", w.Name)
		}
		if err := st.checkInPlace(w); err != nil {
			return err
		}
	}
	if (st.Point == nil) == (st.Kernels == nil) {
		return errors.New("must have either Point or Kernels")
	}
	if !(st.Time >= 0 && st.Time <= 1 || st.Time == Beginning) {
		return fmt.Errorf("field Time must be between 0 and 1, or Beginning, got %v", st.Time)
	}
	return st.checkPoint()
}

// tooWide describes, for each axis, how far a variable is read on either side of a point, and how wide its
// ghosts are.
func tooWide(read, ghosts domain.Radius) string {
	text := "read farther than its ghosts are wide:"
	for a := range 3 {
		if read.Minus[a] > ghosts.Minus[a] || read.Plus[a] > ghosts.Plus[a] {
			text += fmt.Sprintf(" %c %d and %d of %d and %d", "xyz"[a], read.Minus[a], read.Plus[a], ghosts.Minus[a],
				ghosts.Plus[a])
		}
	}
	return text
}

// checkAccess returns an error unless a variable has the accessed level and ghosts. A component with its own
// width must not be read beyond it: those ghosts are not exchanged. Reads of all components together by user
// kernels are not checked.
func (st *Stage) checkAccess(a Access) error {
	v := a.Variable
	if v == nil || len(v.levels) == 0 {
		return errors.New("the variable of an access is nil")
	}
	if st.Point != nil && v.Spec.IsTyped() {
		return fmt.Errorf("variable %q has values of type %v, which only user kernels support", a.Name, v.Spec.Type)
	}
	if a.Level > 1 || a.Level < 1-v.Levels() {
		return fmt.Errorf("variable %q has %d levels and cannot be read at level %+d", a.Name, v.Levels(), a.Level)
	}
	if r, w := a.footprint().Radius(), v.Spec.Width; !w.Contains(r) {
		return fmt.Errorf("%q is %s", a.Name, tooWide(r, w))
	}
	for c, w := range v.Spec.Widths {
		reads := a.Reads
		switch {
		case c < len(a.Components):
			reads = a.Components[c]
		case st.Kernels != nil:
			continue
		}
		if r := reads.Radius(); !w.Contains(r) {
			return fmt.Errorf("component %d of %q is %s", c, a.Name, tooWide(r, w))
		}
	}
	if a.footprint().Axes() > 1+int(v.Spec.Connectivity) {
		return fmt.Errorf("%q is read in edges or corners, but has no ghosts there: see halo.Spec.Connectivity", a.Name)
	}
	return nil
}

// checkInPlace returns an error unless a field that the stage writes is read only at the point itself, and by
// one access of a point function.
func (st *Stage) checkInPlace(w Access) error {
	reads := 0
	for _, r := range st.Reads {
		if !w.sameField(r) {
			continue
		}
		reads++
		switch {
		case r.around():
			return fmt.Errorf("%q is written in place and read around a point: add a level to the variable", w.Name)
		case st.Point != nil && r.Name != w.Name:
			return fmt.Errorf("%q is updated in place and read as %q: both accesses must have one name", w.Name, r.Name)
		case st.Point != nil && reads > 1:
			return fmt.Errorf("%q is updated in place and must be read by only one access", w.Name)
		}
	}
	return nil
}

// checkPoint returns an error unless the accesses are valid for a point function.
func (st *Stage) checkPoint() error {
	if st.Parameters != nil && (st.Point == nil || st.Point.Parameters == nil) {
		return errors.New("Stage.Parameters without Point.Parameters, whose fields it sets")
	}
	if st.Point == nil {
		return nil
	}
	if dims := st.placement().Grid.Dims; st.Point.Dims != dims {
		return fmt.Errorf("point function %q has %d dimensions, must have the %d of the grid: set Point.Dims",
			st.Point.Name, st.Point.Dims, dims)
	}
	for _, a := range st.pointAccesses() {
		if s := a.Variable.Spec; s.Components > 1 && !s.SoA {
			return fmt.Errorf("%q must have a separate array for each component (SoA) in a point function", a.Name)
		}
	}
	return nil
}

// checkNorms returns an error unless the options are consistent with the norms of the step.
func (o Options) checkNorms(s *Step) error {
	switch {
	case o.Norm != "" && o.Norm != MaxNorm && o.Norm != L2Norm:
		return fmt.Errorf("scheme: Options.Norm must be %q or %q, got %q", MaxNorm, L2Norm, o.Norm)
	case !(o.Tolerance >= 0):
		return fmt.Errorf("scheme: Options.Tolerance must be at least 0 (0: none), got %v", o.Tolerance)
	case o.CheckEvery < 0:
		return fmt.Errorf("scheme: Options.CheckEvery must be at least 0 (only for divergence), got %d", o.CheckEvery)
	case o.Tolerance > 0 && len(s.Measured) == 0:
		return fmt.Errorf("scheme: Options.Tolerance needs norms, got %v: set Step.Measured", o.Tolerance)
	case o.Tolerance > 0 && o.CheckEvery == 0:
		return fmt.Errorf("scheme: Options.Tolerance needs Options.CheckEvery, got %v", o.Tolerance)
	case o.History && len(s.Measured) == 0 && len(s.Reductions()) == 0:
		return errors.New("scheme: Options.History needs norms or reductions: set Step.Measured")
	}
	return nil
}

// If processes share the grid, each has a Runner of all subdomains, with launches, streams and workers for
// those that it owns. Processes agree on time, contexts and errors, which may differ, so that all decide
// alike.

var errNoContext = errors.New("scheme: the context is nil: see context.Background")

// live returns an error if the context is nil or has ended.
func live(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ctx.Err()
}

// isShared reports whether other processes take part in work with a placement. In a dry run none does.
func isShared(p *halo.Placement) bool { return !p.Processes.IsAlone() && !p.FirstDevice().IsDry() }

// agree returns the worst result of all processes that share the grid, on all of them: an error that wraps
// ErrUnsuited, streams.ErrOutOfMemory or kernels.ErrNotCompiled on one does so on all. All call it. In a dry
// run it returns the result of this process.
func agree(p *halo.Placement, what string, mine error) error {
	return p.Agree(context.Background(), what, mine, ErrUnsuited, streams.ErrOutOfMemory, kernels.ErrNotCompiled)
}

// tell notifies the other processes of a failure of this one.
func tell(p *halo.Placement, err error) error {
	if err == nil || !isShared(p) {
		return err
	}
	first := p.Processes.Err()
	switch {
	case first == nil:
		return p.Processes.Fail(err)
	case errors.Is(err, first):
		return err
	}
	return fmt.Errorf("%w (%w)", first, err)
}

// checkOwners returns an error if a process owns no subdomain: it would not take part in agreements.
func checkOwners(p *halo.Placement) error {
	if p.Processes.IsAlone() {
		return nil
	}
	for process := range p.Processes.Size() {
		if !slices.Contains(p.Owners, process) {
			return fmt.Errorf("scheme: every process must own a subdomain, %s owns none of %d",
				p.Processes.Name(process), len(p.Owners))
		}
	}
	return nil
}

// localRanks returns the subdomains of this process.
func localRanks(p *halo.Placement) (ranks []int) {
	for rank := range p.Subdomains {
		if p.IsLocal(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// Plan has the exchanges of a step.
type Plan struct {
	Stages []*halo.Plan // after each stage; nil if none is needed
	Once   *halo.Plan   // before the first step of a run, for variables that are only read; nil if none is needed
}

// Plan plans the exchanges of the step over a path. Errors are those of halo.NewPlan.
func (s *Step) Plan(links *p2p.Links, path p2p.Path) (p *Plan, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	p = &Plan{}
	for i := range s.Stages {
		plan, err := s.planOf(links, path, s.sentSpecs(i))
		if err != nil {
			return nil, err
		}
		p.Stages = append(p.Stages, plan)
	}
	p.Once, err = s.planOf(links, path, specsOf(s.onlyRead()))
	return p, err
}

// planOf plans one exchange, nil if there is nothing to exchange.
func (s *Step) planOf(links *p2p.Links, path p2p.Path, specs []halo.Spec) (*halo.Plan, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	return halo.NewPlan(s.placement(), links, path, specs...)
}

// On returns the plan for another placement of the same subdomains; nil for a nil plan.
func (p *Plan) On(place *halo.Placement) *Plan {
	if p == nil {
		return nil
	}
	on := func(one *halo.Plan) *halo.Plan {
		if one == nil {
			return nil
		}
		return one.On(place)
	}
	moved := &Plan{Once: on(p.Once)}
	for _, stage := range p.Stages {
		moved.Stages = append(moved.Stages, on(stage))
	}
	return moved
}

// pointAccess is an access of a point function: the reads and writes of a stage to one level of a variable.
// An update in place is one access that is read and written.
type pointAccess struct {
	Access
	write bool
}

// pointAccesses joins the reads and writes of a stage, reads first.
func (st *Stage) pointAccesses() (all []pointAccess) {
	for _, r := range st.Reads {
		all = append(all, pointAccess{Access: r})
	}
	for _, w := range st.Writes {
		at := slices.IndexFunc(all, func(a pointAccess) bool { return w.sameField(a.Access) })
		if at < 0 {
			at = len(all)
			all = append(all, pointAccess{Access: w})
		}
		all[at].write = true
	}
	return all
}

// sweepAccesses returns the accesses for package sweep. Norms of measured variables are taken if the stage
// also reads the level before at the point, or updates it in place.
func (st *Stage) sweepAccesses(measured []*Variable) (all []sweep.Access) {
	accesses := st.pointAccesses()
	for _, a := range accesses {
		s := sweep.Access{
			Name: a.Name, Element: a.Variable.Spec.Element, Components: a.Variable.Spec.Components,
			Footprint: a.Reads, Footprints: a.Components, Write: a.write, Sparse: a.Sparse,
		}
		copy(s.Constant[:], a.Variable.Spec.Constant)
		inPlace := a.write && slices.ContainsFunc(st.Reads, a.sameField)
		if inPlace {
			s.Footprint = stencil.Point()
		}
		if a.write && slices.Contains(measured, a.Variable) {
			s.Before = st.before(accesses, a, inPlace)
		}
		all = append(all, s)
	}
	return all
}

// before returns the name of the access to the level before a written one, "" if the stage does not read it
// at the point.
func (st *Stage) before(all []pointAccess, written pointAccess, inPlace bool) string {
	if inPlace && written.Variable.Levels() == 1 {
		return written.Name
	}
	for _, a := range all {
		if a.Variable == written.Variable && a.Level == written.Level-1 && !a.write && a.atPoint() {
			return a.Name
		}
	}
	return ""
}

// arrays returns the arrays of the accesses in step n on a subdomain.
func (st *Stage) arrays(rank int, n int64) (all sweep.Arrays) {
	for _, a := range st.pointAccesses() {
		f := a.field(n)
		components, _ := f.Spec.Arrays()
		var arrays []kernels.Array
		for c := range components {
			arrays = append(arrays, f.Array(rank, c))
		}
		all = append(all, arrays)
	}
	return all
}
