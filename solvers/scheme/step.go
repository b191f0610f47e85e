package scheme

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Variable is a field at one or several time levels. Level n, which step n computes, lies in
// field n mod Levels. A variable of one level is updated in place, or only read.
//
// A variable keeps the newest level that was computed, and every run goes on from there, whatever runner made the
// steps before. At first that is 0.
//
// One run at a time steps a variable, or reads it around points: a second one returns an error, and so do Close,
// SetNewest and SetAll during a run. The other methods may be called from any goroutine.
type Variable struct {
	Spec     halo.Spec
	Boundary boundary.Faces // what lies behind the physical faces of the grid
	levels   []*halo.Field
	newest   atomic.Int64
	computed atomic.Bool // newest was computed by a run, or set
}

// NewVariable allocates a variable. Its content is undefined. Close frees it. Where a device, or the host,
// has too little memory for it, the error is streams.ErrOutOfMemory, and nothing is allocated.
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

// maxLevels is how many time levels a variable may have.
const maxLevels = 16

// Levels returns how many time levels the variable has, 0 of nil.
func (v *Variable) Levels() int {
	if v == nil {
		return 0
	}
	return len(v.levels)
}

// Level returns the field that holds the level of a step, 0 before the first. It is nil if the variable is.
func (v *Variable) Level(step int64) *halo.Field {
	if v == nil {
		return nil
	}
	return v.levels[v.slot(step)]
}

// slot returns the place of a level, which may be negative, among the fields.
func (v *Variable) slot(step int64) int {
	n := int64(len(v.levels))
	return int(((step % n) + n) % n)
}

// Newest returns the newest level: that of the last step which computed the variable, or what SetNewest has said. It is
// 0 of nil.
func (v *Variable) Newest() int64 {
	if v == nil {
		return 0
	}
	return v.newest.Load()
}

// SetNewest says which level is the newest, where levels were filled by hand: Level(level), and as many before it as
// steps read. Steps go on from there. SetNewest(0) begins anew, with what was filled into Level(0).
func (v *Variable) SetNewest(level int64) error {
	release, err := v.hold(true)
	if err != nil {
		return err
	}
	defer release()
	if level < 0 {
		return fmt.Errorf("scheme: variable %q at level %d: the first is 0", v.Spec.Name, level)
	}
	v.setNewest(level, true)
	return nil
}

func (v *Variable) setNewest(level int64, computed bool) {
	v.newest.Store(level)
	v.computed.Store(computed)
}

// SetAll copies the level of step 0 to all others, and begins anew with it: it is the newest.
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

// uses are held together.
type uses []func()

// add adds one that was begun, or releases all if it was not.
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

// At is an access to a level of the variable, counted from the newest that is known when a step
// begins: +1 is what the step computes, 0 the newest, -1 the one before. reads is what is read
// around a point; nil is the point itself, or nothing of what is only written. Of a nil variable it is an access that
// Step.Check rejects.
func (v *Variable) At(level int, reads stencil.Footprint) Access {
	if v == nil {
		return Access{Level: level, Reads: reads}
	}
	return Access{Variable: v, Level: level, Reads: reads, Name: v.Spec.Name}
}

// Access is what a stage reads or writes: a level of a variable.
type Access struct {
	Variable *Variable
	Level    int // +1: what the step computes
	Reads    stencil.Footprint
	Name     string // in the source of a point function

	// Components are what is read of each component around a point, where they differ; Reads is
	// then empty.
	Components []stencil.Footprint

	Sparse bool // a point function reads few of the offsets at a point, see sweep.Access
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

// Named returns the access under another name, for point functions that have several of one
// variable.
func (a Access) Named(name string) Access {
	a.Name = name
	return a
}

// field returns the field that the access means in a step.
func (a Access) field(step int64) *halo.Field { return a.Variable.Level(step - 1 + int64(a.Level)) }

// slot returns its place among the variable's fields.
func (a Access) slot(step int64) int { return a.Variable.slot(step - 1 + int64(a.Level)) }

// sameField reports whether both are accesses to one field.
func (a Access) sameField(b Access) bool { return a.Variable == b.Variable && a.slot(1) == b.slot(1) }

// footprint returns what is read of any component.
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

// real returns the type of the elements where they can be swept and measured.
func (v *Variable) real() (r kernels.Real, ok bool) {
	r = kernels.Real(v.Spec.Element)
	return r, r.Size() > 0
}

// Close frees its memory. Closing twice is not an error, nor is closing nil. During a run it is an error, and the
// variable stays open.
func (v *Variable) Close() (err error) {
	if v == nil {
		return nil
	}
	for _, f := range v.levels {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Step is what one time step computes: its stages in order.
type Step struct {
	Name     string // of what the step computes, by which trials of its schemes are remembered
	Stages   []Stage
	Length   float64     // of a step in time; level n is at time n times that
	Measured []*Variable // whose norms are taken; each has float32 or float64 elements and two levels or more
	Sums     sums.Mode   // how sums of norms and reductions are taken, also those of point functions

	// Group is the number of steps between two exchanges, 0 for 1. With more, a step exchanges nothing between its
	// stages, and all stages but the last of a group sweep ghosts too, as far as the rest of the group needs them. So
	// every variable has ghosts, with edges and corners, Group times as wide as the stages of a step reach together:
	// those of a halo.WideHalo. Boxes of user kernels then reach beyond the subdomain, and along periodic axes beyond
	// the grid. Boundaries with user kernels, staggered variables, and point functions that ask where a point lies
	// along a periodic axis, are rejected.
	Group int
}

// Stage is the part of a step between two exchanges. It writes the points of the grid, each
// subdomain those that it owns, by a point function or by user kernels. What it writes it may
// read only at the point itself. A stage whose point function has reductions may write nothing.
type Stage struct {
	Name   string // for errors, which call it after its point function where this is empty
	Reads  []Access
	Writes []Access

	// Point, where set, is what one point computes: halox sweeps it itself, under every scheme.
	Point *sweep.Point

	// Parameters, where set, returns a pointer to the parameters of the point function in a step, which is not nil and
	// of the type of Point.Parameters. It is called by several threads, more than once for a step, and also while the
	// step is made ready, for the first steps: so it answers for any step from 1 on, and has no side effects.
	Parameters func(step int64) any

	// Kernels, where set, returns a launch of user kernels that sweeps a region of one subdomain, or an error.
	// Changing says that what it queues depends on the step or on time: schemes that queue steps beforehand then reject
	// it.
	Kernels  func(Region) (Launch, error)
	Changing bool
}

// Launch queues a launch that was made ready, for a step, counted from 1, at whose beginning it
// is time t. It allocates nothing.
type Launch func(s *streams.Stream, step int64, t float64) error

// kernels calls Kernels. The launch tells whose function it was that panics.
func (st *Stage) kernels(r Region) (launch Launch, err error) {
	defer streams.Caught(&err, "Stage.Kernels of stage", st.Name)
	made, err := st.Kernels(r)
	if err != nil {
		return nil, err
	}
	if made == nil {
		return nil, fmt.Errorf("Stage.Kernels returned no launch (nil) for %s of subdomain %d: "+
			"return one that queues nothing where there is nothing to do", r.Name, r.Rank)
	}
	return func(s *streams.Stream, step int64, t float64) (err error) {
		defer streams.Caught(&err, "a launch of Stage.Kernels of stage", st.Name)
		return made(s, step, t)
	}, nil
}

// title is what errors call a stage.
func (st *Stage) title() string {
	if st.Name == "" && st.Point != nil {
		return st.Point.Name
	}
	return st.Name
}

// parameters calls Parameters, where set; else they are nil.
func (st *Stage) parameters(step int64) (p any, err error) {
	if st.Parameters == nil {
		return nil, nil
	}
	defer streams.Caught(&err, "Stage.Parameters of stage", st.title())
	if p = st.Parameters(step); p == nil {
		return nil, fmt.Errorf("scheme: Stage.Parameters of stage %q returned nil for step %d: "+
			"it returns a pointer to the parameters of each step", st.title(), step)
	}
	return p, nil
}

// Kernel is the Launch of a kernel whose arguments do not change.
func Kernel(k *streams.Kernel) Launch {
	return func(s *streams.Stream, _ int64, _ float64) error { return s.Launch(k) }
}

// Region is what one launch sweeps.
type Region struct {
	Rank   int // of the subdomain
	Device *streams.Device
	Name   string        // "sweep boundary", "sweep interior" or "sweep", for traces
	Boxes  []domain.Box  // of points, in global indices: up to six boxes that do not overlap
	Reads  []*halo.Field // what the stage's accesses mean in the steps of this phase
	Writes []*halo.Field
}

// group returns how many steps a group has.
func (s *Step) group() int { return max(1, s.Group) }

// period returns after how many steps all variables lie in the same fields again, and groups of steps begin.
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

// accesses yields all that a stage reads, and then all that it writes.
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

// reads returns all that stages read of a variable.
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

// readsAround reports whether a stage reads more of a variable than points of its own.
func (s *Step) readsAround(v *Variable) bool { return slices.ContainsFunc(s.reads(v), Access.around) }

// placement returns where the variables lie.
func (s *Step) placement() *halo.Placement { return s.Stages[0].placement() }

func (st *Stage) placement() (p *halo.Placement) {
	for a := range st.accesses {
		return a.Variable.levels[0].Placement
	}
	return nil
}

// sent returns the accesses that stage i writes whose ghosts are read before they are written
// again, by any stage: they are exchanged after it. Each variable comes once. After the last stage of a group of steps
// it is all levels that the next group reads before it writes them.
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
			all = append(all, v.At(level+1, nil)) // the level of the step after this one
		}
	}
	return all
}

// ghostsRead returns how deep, by array, the ghosts are read of what stage i writes by an access, until a stage writes
// it again. Ghosts that user kernels read of some components only count for all, as far as they are exchanged.
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

// onlyRead returns the variables of which ghosts are read and that no stage writes.
func (s *Step) onlyRead() (all []*Variable) {
	for _, v := range s.variables() {
		if !s.writes(v) && (s.readsAround(v) || s.group() > 1) {
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

// newest returns the level from which a run of so many steps goes on: the newest of all variables of several levels
// that the step writes, or that another run has computed. It returns an error if they are not at the same level, or if
// a run would read levels that are not computed. What is only read and was never computed is read in turn.
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
				"or fill one of them at the level of the other and say so by SetNewest",
				first.Spec.Name, level, v.Spec.Name, v.Newest())
		}
		if v.Levels() > 1 && !written && v.computed.Load() && steps > 1 {
			return 0, fmt.Errorf("scheme: %d steps that read variable %q, of %d levels, which another run has "+
				"computed up to level %d, and do not write it: run one step at a time, or compute it in the same step",
				steps, v.Spec.Name, v.Levels(), v.Newest())
		}
	}
	return level, nil
}

// advance says that steps up to a level were made.
func (s *Step) advance(level int64) {
	for _, v := range s.variables() {
		if s.writes(v) {
			v.setNewest(level, true)
		}
	}
}

// keepLevels returns a function that sets all variables back to the levels at which they are now.
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

// copy returns the step with new variables on a placement, whose content is undefined. All are allocated or none.
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
