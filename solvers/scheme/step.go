package scheme

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Variable is a field at one or several time levels. Level n, which step n computes, is in field n mod
// Levels. A variable of one level is updated in place, or only read.
//
// A variable keeps track of the newest computed level, and every run continues from there, whichever runner
// ran the steps before. The first level is 0.
//
// Only one run at a time may step a variable, or read it around points: a second run returns an error, and so
// do Close, SetNewest and SetAll during a run. The other methods may be called from any goroutine.
type Variable struct {
	Spec     halo.Spec      // description of the fields
	Boundary boundary.Faces // conditions at the physical boundaries of the grid; default boundary.Given
	levels   []*halo.Field
	newest   atomic.Int64
	computed atomic.Bool          // newest was computed by a run, or set
	ghosts   atomic.Pointer[part] // the run whose parts have set the ghosts last; nil if a run without parts has
}

// NewVariable allocates a variable with 1 to 16 time levels. Its content is undefined. If a device or the
// host has too little memory, the error is streams.ErrOutOfMemory, and nothing is allocated. Close frees the
// memory.
func NewVariable(p *halo.Placement, s halo.Spec, levels int) (*Variable, error) {
	if levels < 1 || levels > maxLevels {
		return nil, fmt.Errorf("scheme: variable %q must have 1 to %d time levels, got %d", s.Name, maxLevels, levels)
	}
	fields, err := halo.NewFields(p, s, levels)
	if err != nil {
		return nil, err
	}
	return &Variable{Spec: fields[0].Spec, levels: fields}, nil // its width is that of the widest component
}

// DraftVariable returns a variable without memory: a step of such can be planned and not run.
func DraftVariable(p *halo.Placement, s halo.Spec, levels int) *Variable {
	v := &Variable{Spec: s}
	for range levels {
		v.levels = append(v.levels, &halo.Field{Spec: s, Placement: p})
	}
	return v
}

// maxLevels is the maximum number of time levels of a variable.
const maxLevels = 16

// Levels returns the number of time levels of the variable, 0 for nil.
func (v *Variable) Levels() int {
	if v == nil {
		return 0
	}
	return len(v.levels)
}

// Level returns the field with the level of a step, counted from 1; 0 is the level before the first step. It
// is nil for a nil variable.
func (v *Variable) Level(step int64) *halo.Field {
	if v == nil {
		return nil
	}
	return v.levels[v.slot(step)]
}

// slot returns the index of a level, which may be negative, among the fields.
func (v *Variable) slot(step int64) int {
	n := int64(len(v.levels))
	return int(((step % n) + n) % n)
}

// Newest returns the newest level: that of the last step which computed the variable, or the argument of
// SetNewest. It is 0 for nil.
func (v *Variable) Newest() int64 {
	if v == nil {
		return 0
	}
	return v.newest.Load()
}

// SetNewest sets the newest level after filling levels: Level(level), and as many before it as steps read.
// Steps continue from there. SetNewest(0) restarts from the content of Level(0).
func (v *Variable) SetNewest(level int64) error {
	release, err := v.hold(true)
	if err != nil {
		return err
	}
	defer release()
	if level < 0 {
		return fmt.Errorf("scheme: the newest level of variable %q must be at least 0, got %d", v.Spec.Name, level)
	}
	v.setNewest(level, true)
	return nil
}

func (v *Variable) setNewest(level int64, computed bool) {
	v.newest.Store(level)
	v.computed.Store(computed)
}

// SetAll copies the level of step 0 to all others, and makes it the newest.
func (v *Variable) SetAll() error {
	release, err := v.hold(true)
	if err != nil {
		return err
	}
	defer release()
	v.newest.Store(0)
	for _, f := range v.levels[1:] {
		if err := halo.CopyTo(f, v.levels[0]); err != nil {
			return err
		}
	}
	return nil
}

// hold holds all levels, until release is called.
func (v *Variable) hold(alone bool) (release func(), err error) {
	if v == nil {
		return nil, errors.New("scheme: the variable is nil: see NewVariable")
	}
	var held uses
	for _, f := range v.levels {
		if err := held.add(f.Hold(alone)); err != nil {
			return nil, err
		}
	}
	return held.release, nil
}

// uses are holds that are released together.
type uses []func()

// add adds a hold, or releases all if it failed.
func (u *uses) add(release func(), err error) error {
	if err != nil {
		u.release()
		return err
	}
	*u = append(*u, release)
	return nil
}

func (u *uses) release() {
	for _, release := range *u {
		release()
	}
}

// At is an access to a level of the variable, relative to the newest one when a step begins: +1 is computed
// by the step, 0 is the newest, -1 the one before. reads is the footprint read around a point; nil is the
// point itself, or nothing for a level that is only written. For a nil variable Step.Check rejects the
// access.
func (v *Variable) At(level int, reads stencil.Footprint) Access {
	if v == nil {
		return Access{Level: level, Reads: reads}
	}
	return Access{Variable: v, Level: level, Reads: reads, Name: v.Spec.Name}
}

// Access is an access of a stage to a level of a variable.
type Access struct {
	Variable *Variable         // the variable
	Level    int               // 0: the newest level; +1: the level that the step computes
	Reads    stencil.Footprint // footprint read around a point; nil: see At
	Name     string            // name in the source of a point function; default Variable.Spec.Name

	// Components has the footprint of each component, if they differ; then Reads is empty.
	Components []stencil.Footprint

	Sparse bool // the point function reads only a few of the offsets per point, see sweep.Access; default false
}

// Sparsely returns the access with Sparse set.
func (a Access) Sparsely() Access {
	a.Sparse = true
	return a
}

// ByComponent returns the access with the footprint of each component.
func (a Access) ByComponent(reads []stencil.Footprint) Access {
	a.Reads, a.Components = nil, reads
	return a
}

// Named returns the access with another name, for point functions with several accesses to one variable.
func (a Access) Named(name string) Access {
	a.Name = name
	return a
}

// field returns the field of the access in a step.
func (a Access) field(step int64) *halo.Field { return a.Variable.Level(step - 1 + int64(a.Level)) }

// slot returns the index of the field among the variable's fields.
func (a Access) slot(step int64) int { return a.Variable.slot(step - 1 + int64(a.Level)) }

// sameField reports whether both are accesses to the same field.
func (a Access) sameField(b Access) bool { return a.Variable == b.Variable && a.slot(1) == b.slot(1) }

// footprint returns the union of the footprints of all components.
func (a Access) footprint() stencil.Footprint {
	all := slices.Clone(a.Reads)
	for _, f := range a.Components {
		all = append(all, f...)
	}
	return all
}

// around reports whether other points than the point itself are read.
func (a Access) around() bool {
	for _, f := range a.Components {
		if f.Axes() > 0 {
			return true
		}
	}
	return a.Reads.Axes() > 0
}

// atPoint reports whether all components are read at the point itself.
func (a Access) atPoint() bool {
	if len(a.Components) == 0 {
		return len(a.Reads) == 0 || a.Reads.Has(domain.Vec{})
	}
	return !slices.ContainsFunc(a.Components, func(f stencil.Footprint) bool {
		return len(f) > 0 && !f.Has(domain.Vec{})
	})
}

// real returns the type of the elements if they can be swept and measured.
func (v *Variable) real() (r domain.Element, ok bool) {
	r = v.Spec.Element
	return r, r.IsReal()
}

// Close frees the memory. It does nothing for a nil or closed variable. During a run it returns an error, and
// the variable stays open.
func (v *Variable) Close() (err error) {
	if v == nil {
		return nil
	}
	for _, f := range v.levels {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Step is the computation of one time step: its stages in order.
type Step struct {
	Name     string      // name of the computation; steps with user kernels need one to cache trials of schemes
	Stages   []Stage     // stages in order, at least one
	Length   float64     // time of a step; level n is at time n*Length; default 0
	Measured []*Variable // variables whose norms are taken: float32 or float64, with two levels or more; default none
	Sums     sums.Mode   // mode of the sums of norms and reductions; default reproducible

	// Pace, if set, replaces Length: it returns the length of the step that begins at a time. reduced are the
	// reductions of the last stage of the step before, which must write nothing and is also run before the first step
	// of a run. A length of 0 ends the run, see StoppedTime, and NaN means that it has diverged. Pace is called between
	// two steps, with the same numbers on all processes, and may keep them for Stage.Parameters. The host waits for the
	// reductions of each step, so each launch, also of a graph, is one step. Default nil.
	Pace func(time float64, reduced []float64) (length float64, err error)

	// Courant, if set, is Pace as data: the first reduction of the last stage is the largest speed, by sweep.Max. GPUs
	// compute the lengths, and a launch of resident has many steps, if Stage.Parameters are nil or of sweep.Values
	// that are exact. Default nil.
	Courant *sweep.Courant

	// Group is the number of steps between two exchanges; 0 counts as 1. If it is larger, a step exchanges
	// nothing between its stages, and all stages except the last of a group also sweep ghosts, as far as the
	// rest of the group needs them. Every variable must have ghosts, including edges and corners, Group times
	// as wide as the total radius of the stages of a step: those of a halo.WideHalo. Boxes of user kernels
	// then extend beyond the subdomain, and along periodic axes beyond the grid. Boundaries with user
	// kernels, staggered variables, and point functions that use the position of a point along a periodic
	// axis are rejected.
	Group int
}

// pace returns Pace or that of Courant, nil if neither is set.
func (s *Step) pace() func(time float64, reduced []float64) (length float64, err error) {
	if s.Courant == nil {
		return s.Pace
	}
	return func(time float64, reduced []float64) (float64, error) { return s.Courant.Next(time, reduced[0]) }
}

// paced reports whether the length of a step follows from reductions.
func (s *Step) paced() bool { return s.Pace != nil || s.Courant != nil }

// Stage is the part of a step between two exchanges. It writes the points of the grid, each subdomain its
// own, by a point function or by user kernels. It may read the levels that it writes only at the point
// itself. A stage whose point function has reductions may write nothing.
type Stage struct {
	Name   string   // name in errors and traces; default: the name of the point function
	Reads  []Access // levels that the stage reads
	Writes []Access // levels that the stage writes

	// Point is the function that computes one point, swept by halox with every scheme; nil if Kernels is set.
	Point *sweep.Point

	// Parameters, if set, computes the parameters of the point function for each step, on the host. It sets fields of
	// the struct that p points to, a copy of Point.Parameters. m.Time(c) is the time after the fraction c of the step.
	// It is called by several threads, more than once per step, and also while the step is prepared, for the first
	// steps: so it must support any step from 1 on, in any order, and have no side effects.
	Parameters func(m sweep.Moment, p any) error

	// Time is the time of the written variables, for boundary values: the fraction of the step after its begin, at most
	// 1; default 0 counts as 1, and Beginning as 0.
	Time float64

	// Kernels, if set, returns a launch of user kernels that sweeps a region of one subdomain, or an error. Set
	// Changing if the launches depend on the step or the time: schemes that queue steps in advance then reject it.
	Kernels  func(Region) (Launch, error)
	Changing bool // default false
}

// Beginning is the Stage.Time of the beginning of a step.
const Beginning = -1.0

// Launch queues a prepared launch for a step, counted from 1, which begins at time t (Step.Length per step).
// It must not allocate. Launches of different regions may be called by several threads at once.
type Launch func(s *streams.Stream, step int64, t float64) error

// kernels calls Kernels. A panic in the launch names the function.
func (st *Stage) kernels(r Region) (launch Launch, err error) {
	defer streams.Caught(&err, "Stage.Kernels of stage", st.Name)
	made, err := st.Kernels(r)
	if err != nil {
		return nil, err
	}
	if made == nil {
		return nil, fmt.Errorf("Stage.Kernels must not return nil, got nil for %s of subdomain %d: "+
			"return a launch that queues nothing if there is no work", r.Name, r.Rank)
	}
	return func(s *streams.Stream, step int64, t float64) (err error) {
		defer streams.Caught(&err, "a launch of Stage.Kernels of stage", st.Name)
		return made(s, step, t)
	}, nil
}

// title is the name of the stage in errors.
func (st *Stage) title() string {
	if st.Name == "" && st.Point != nil {
		return st.Point.Name
	}
	return st.Name
}

// give returns a function that calls Parameters, or nil if Parameters is not set.
func (st *Stage) give() sweep.Give {
	if st.Parameters == nil {
		return nil
	}
	return func(m sweep.Moment, p any) (err error) {
		defer streams.Caught(&err, "Stage.Parameters of stage", st.title())
		if err := st.Parameters(m, p); err != nil {
			return fmt.Errorf("scheme: Stage.Parameters of stage %q, step %d: %w", st.title(), m.Step, err)
		}
		return nil
	}
}

// Kernel is the Launch of a kernel whose arguments do not change.
func Kernel(k *streams.Kernel) Launch {
	return func(s *streams.Stream, _ int64, _ float64) error { return s.Launch(k) }
}

// Region is the region swept by one launch.
type Region struct {
	Rank   int             // rank of the subdomain
	Device *streams.Device // device of the subdomain
	Name   string          // "sweep boundary", "sweep interior" or "sweep"; name in traces
	Boxes  []domain.Box    // points in global indices: up to six disjoint boxes
	Reads  []*halo.Field   // fields of the stage's accesses in the steps of this phase
	Writes []*halo.Field   // fields that the stage writes
}

// group returns the number of steps of a group.
func (s *Step) group() int { return max(1, s.Group) }

// period returns the number of steps after which all variables are in the same fields again, and groups of
// steps begin.
func (s *Step) period() int {
	p := s.group()
	for _, v := range s.variables() {
		p = p / gcd(p, v.Levels()) * v.Levels()
	}
	return p
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// accesses yields all reads of a stage, and then all writes.
func (st *Stage) accesses(yield func(Access) bool) {
	for _, all := range [][]Access{st.Reads, st.Writes} {
		for _, a := range all {
			if !yield(a) {
				return
			}
		}
	}
}

// variables returns all variables of the step, each once.
func (s *Step) variables() (all []*Variable) {
	for _, st := range s.Stages {
		for a := range st.accesses {
			if !slices.Contains(all, a.Variable) {
				all = append(all, a.Variable)
			}
		}
	}
	return all
}

// reads returns all accesses of stages that read a variable.
func (s *Step) reads(v *Variable) (all []Access) {
	for _, st := range s.Stages {
		for _, a := range st.Reads {
			if a.Variable == v {
				all = append(all, a)
			}
		}
	}
	return all
}

// readsAround reports whether a stage reads a variable beyond the point itself.
func (s *Step) readsAround(v *Variable) bool { return slices.ContainsFunc(s.reads(v), Access.around) }

// placement returns the placement of the variables.
func (s *Step) placement() *halo.Placement { return s.Stages[0].placement() }

func (st *Stage) placement() (p *halo.Placement) {
	for a := range st.accesses {
		return a.Variable.levels[0].Placement
	}
	return nil
}

// sent returns the accesses that stage i writes whose ghosts are read before they are written again, by any
// stage: they are exchanged after it. Each variable comes once. After the last stage of a group of steps
// these are all levels that the next group reads before it writes them.
func (s *Step) sent(i int) (all []Access) {
	if s.group() == 1 {
		for _, w := range s.Stages[i].Writes {
			if slices.ContainsFunc(s.ghostsRead(i, w), func(r domain.Radius) bool { return r != domain.Radius{} }) {
				all = append(all, w)
			}
		}
		return all
	}
	if i < len(s.Stages)-1 {
		return nil
	}
	for _, v := range s.variables() {
		if !s.writes(v) {
			continue
		}
		for level := s.oldest(v); level <= 0; level++ {
			all = append(all, v.At(level+1, nil)) // the level of the next step
		}
	}
	return all
}

// ghostsRead returns, by array, how deep the ghosts that stage i writes by an access are read, until a stage
// writes it again. Ghosts that user kernels read of only some components count for all, as far as they are
// exchanged.
func (s *Step) ghostsRead(i int, w Access) []domain.Radius {
	arrays, _ := w.Variable.Spec.Arrays()
	all := make([]domain.Radius, arrays)
	for k := i + 1; ; k++ {
		stage, step := &s.Stages[k%len(s.Stages)], 1+int64(k/len(s.Stages))
		same := func(a Access) bool { return a.Variable == w.Variable && a.slot(step) == w.slot(1) }
		for _, a := range stage.Reads {
			for array := range all {
				if reads := a.footprint(); same(a) {
					if arrays > 1 && array < len(a.Components) {
						reads = a.Components[array]
					}
					all[array] = all[array].Max(reads.Radius().Min(w.Variable.Spec.WidthOf(array)))
				}
			}
		}
		if slices.ContainsFunc(stage.Writes, same) {
			return all
		}
	}
}

// sentSpecs returns the variables that are exchanged after stage i, with the ghosts that are read next.
func (s *Step) sentSpecs(i int) (all []halo.Spec) {
	for _, a := range s.sent(i) {
		spec := a.Variable.Spec
		if s.group() == 1 {
			spec.Widths = s.ghostsRead(i, a)
		}
		if spec.Covers(a.Variable.Spec) {
			spec = a.Variable.Spec
		}
		all = append(all, spec)
	}
	return all
}

// oldest returns the oldest level of a variable that a step reads before it writes it, 1 if it reads none.
func (s *Step) oldest(v *Variable) int {
	oldest, written := 1, false
	for _, st := range s.Stages {
		for _, a := range st.Reads {
			switch {
			case a.Variable != v:
			case a.slot(1) != v.At(1, nil).slot(1):
				oldest = min(oldest, a.Level)
			case !written:
				oldest = min(oldest, 1-v.Levels())
			}
		}
		for _, a := range st.Writes {
			written = written || a.Variable == v
		}
	}
	return oldest
}

func specsOf(variables []*Variable) (specs []halo.Spec) {
	for _, v := range variables {
		specs = append(specs, v.Spec)
	}
	return specs
}

// onlyRead returns the variables whose ghosts are read and that no stage writes.
func (s *Step) onlyRead() (all []*Variable) {
	for _, v := range s.variables() {
		if !s.writes(v) && !v.Spec.IsConstant() && (s.readsAround(v) || s.group() > 1) {
			all = append(all, v)
		}
	}
	return all
}

// writes reports whether a stage writes a variable.
func (s *Step) writes(v *Variable) bool {
	return slices.ContainsFunc(s.Stages, func(st Stage) bool {
		return slices.ContainsFunc(st.Writes, func(a Access) bool { return a.Variable == v })
	})
}

// newest returns the level from which a run of a number of steps continues: the newest of all variables of
// several levels that the step writes, or that another run has computed. It returns an error if they are not
// at the same level, or if a run would read levels that are not computed. Variables that are only read and
// were never computed alternate their levels.
func (s *Step) newest(steps int64) (level int64, err error) {
	var first *Variable
	for _, v := range s.variables() {
		written := s.writes(v)
		switch {
		case v.Levels() == 1:
			if first == nil && written {
				level = max(level, v.Newest())
			}
		case !written && !v.computed.Load():
		case first == nil:
			first, level = v, v.Newest()
		case v.Newest() != level:
			return 0, fmt.Errorf("scheme: variable %q is at level %d, and %q at %d: step them together, "+
				"or fill one of them at the level of the other and call SetNewest",
				first.Spec.Name, level, v.Spec.Name, v.Newest())
		}
		if v.Levels() > 1 && !written && v.computed.Load() && steps > 1 {
			return 0, fmt.Errorf("scheme: %d steps read variable %q, of %d levels, which another run has "+
				"computed up to level %d, but do not write it: run one step at a time, or compute it in the same step",
				steps, v.Spec.Name, v.Levels(), v.Newest())
		}
	}
	return level, nil
}

// advance records that steps up to a level were run.
func (s *Step) advance(level int64) {
	for _, v := range s.variables() {
		if s.writes(v) {
			v.setNewest(level, true)
		}
	}
}

// keepLevels returns a function that resets all variables to their current levels.
func (s *Step) keepLevels() (restore func()) {
	var undo []func()
	for _, v := range s.variables() {
		newest, computed := v.Newest(), v.computed.Load()
		undo = append(undo, func() { v.setNewest(newest, computed) })
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// copy returns the step with new variables on a placement, whose content is undefined. All are allocated or
// none.
func (s *Step) copy(place *halo.Placement) (*Step, map[*Variable]*Variable, error) {
	var demand []halo.Spec
	for _, v := range s.variables() {
		demand = append(demand, slices.Repeat([]halo.Spec{v.Spec}, v.Levels())...)
	}
	if err := halo.Fit(place, 1, demand...); err != nil {
		return nil, nil, fmt.Errorf("scheme: copies of the variables: %w", err)
	}
	made := map[*Variable]*Variable{}
	for _, v := range s.variables() {
		u, err := NewVariable(place, v.Spec, v.Levels())
		if err != nil {
			for _, u := range made {
				err = errors.Join(err, u.Close())
			}
			return nil, nil, fmt.Errorf("scheme: copies of the variables: %w", err)
		}
		u.Boundary = v.Boundary
		made[v] = u
	}
	copied := func(all []Access) []Access {
		all = slices.Clone(all)
		for i := range all {
			all[i].Variable = made[all[i].Variable]
		}
		return all
	}
	t := *s
	t.Stages, t.Measured = slices.Clone(s.Stages), nil
	for i := range t.Stages {
		st := &t.Stages[i]
		st.Reads, st.Writes = copied(st.Reads), copied(st.Writes)
	}
	for _, v := range s.Measured {
		t.Measured = append(t.Measured, made[v])
	}
	return &t, made, nil
}
