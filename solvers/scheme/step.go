package scheme

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Step is what one time step computes: its stages in order.
type Step struct {
	Name     string // of what the step computes, by which trials of its schemes are remembered
	Stages   []Stage
	Length   float64     // of a step in time; level n is at time n times that
	Measured []*Variable // whose norms are taken; each has float32 or float64 elements and two levels or more
}

// Stage is the part of a step between two exchanges. It writes the points of the grid, each
// subdomain its own, by a linear stencil or by kernels of the caller's own. What it writes it may
// read only at the point itself.
type Stage struct {
	Name   string // for errors
	Reads  []Access
	Writes []Access

	// Point, where set, is what one point computes: halox sweeps it itself, under every scheme.
	Point *sweep.Point

	// Parameters, where set, returns a pointer to the parameters of the point function in a step;
	// Point.Parameters are those of the first. It is called by several threads.
	Parameters func(step int64) any

	// Linear, where set, is the weighted sum that gives the only access written from the only
	// one read.
	Linear *stencil.Stencil

	// Kernels, where set, makes a launch ready that sweeps a region of one subdomain. Changing
	// says that what it queues depends on the step or on time: schemes that queue steps
	// beforehand then refuse it.
	Kernels  func(Region) (Launch, error)
	Changing bool
}

// Launch queues a launch that was made ready, for a step, counted from 1, at whose beginning it
// is time t. It allocates nothing.
type Launch func(s *streams.Stream, step int64, t float64) error

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

// period returns after how many steps all variables lie in the same fields again.
func (s *Step) period() int {
	p := 1
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

// variables returns all variables of the step, each once.
func (s *Step) variables() (all []*Variable) {
	for _, st := range s.Stages {
		for _, a := range append(slices.Clone(st.Reads), st.Writes...) {
			if !slices.Contains(all, a.Variable) {
				all = append(all, a.Variable)
			}
		}
	}
	return all
}

// placement returns where the variables lie.
func (s *Step) placement() *halo.Placement { return s.Stages[0].Writes[0].Variable.levels[0].Placement }

// maxPeriod is how many steps a phase may have to itself: launches are made ready for each.
const maxPeriod = 24

// Check returns an error unless the parts of the step fit together.
func (s *Step) Check() error {
	if len(s.Stages) == 0 {
		return fmt.Errorf("scheme: a step without stages")
	}
	for i := range s.Stages {
		if err := s.Stages[i].check(); err != nil {
			return fmt.Errorf("scheme: stage %d %q: %w", i, s.Stages[i].Name, err)
		}
	}
	p := s.placement()
	for _, v := range s.variables() {
		if v.levels[0].Placement != p {
			return fmt.Errorf("scheme: variable %q lies on another placement than the others", v.Spec.Name)
		}
	}
	if n := s.period(); n > maxPeriod {
		return fmt.Errorf("scheme: the levels of the variables come together every %d steps; %d are possible", n, maxPeriod)
	}
	for _, v := range s.Measured {
		if _, ok := v.real(); !ok || !slices.Contains(s.variables(), v) || v.Levels() < 2 && !s.measuredInPlace(v) {
			return fmt.Errorf("scheme: no norms of variable %q: they are taken of float32 or float64 that a stage writes, with two levels or more, or in place by a point function", v.Spec.Name)
		}
	}
	return nil
}

// measuredInPlace reports whether a point function updates the variable in place.
func (s *Step) measuredInPlace(v *Variable) bool {
	for i := range s.Stages {
		st := &s.Stages[i]
		if st.Point == nil {
			continue
		}
		for _, a := range st.sweepAccesses([]*Variable{v}) {
			if a.Before != "" {
				return true
			}
		}
	}
	return false
}

// check returns an error unless the accesses of the stage can be.
func (st *Stage) check() error {
	if len(st.Writes) == 0 {
		return fmt.Errorf("it writes nothing")
	}
	for _, a := range append(slices.Clone(st.Reads), st.Writes...) {
		if a.Variable == nil || len(a.Variable.levels) == 0 {
			return fmt.Errorf("an access to no variable")
		}
		if st.Linear != nil && a.Variable.Spec.IsTyped() {
			return fmt.Errorf("a sweep of variable %q, whose values are of type %v: kernels of its own can have them", a.Name, a.Variable.Spec.Type)
		}
		if a.Level > 1 || a.Level < 1-a.Variable.Levels() {
			return fmt.Errorf("variable %q of %d levels at level %+d", a.Name, a.Variable.Levels(), a.Level)
		}
		r, w := a.footprint().Radius(), a.Variable.Spec.Width
		for i := range 3 {
			if r.Minus[i] > w.Minus[i] || r.Plus[i] > w.Plus[i] {
				return fmt.Errorf("%q is read %v around a point and has ghosts %v", a.Name, r, w)
			}
		}
		if a.footprint().Axes() > 1+int(a.Variable.Spec.Connectivity) {
			return fmt.Errorf("%q is read in edges or corners, where it has no ghosts", a.Name)
		}
	}
	for _, w := range st.Writes {
		if w.around() {
			return fmt.Errorf("%q is written around a point", w.Name)
		}
		for _, r := range st.Reads {
			if r.Variable == w.Variable && r.slot(1) == w.slot(1) && r.around() {
				return fmt.Errorf("%q is written in place and read around a point: give the variable one level more", w.Name)
			}
		}
	}
	ways := 0
	for _, has := range []bool{st.Point != nil, st.Linear != nil, st.Kernels != nil} {
		if has {
			ways++
		}
	}
	if ways != 1 {
		return fmt.Errorf("it has either a point function, a stencil or kernels")
	}
	if err := st.checkPoint(); err != nil {
		return err
	}
	if st.Linear != nil && (len(st.Reads) != 1 || len(st.Writes) != 1) {
		return fmt.Errorf("a stencil reads one variable and writes one")
	}
	return nil
}

// sent returns the accesses that stage i writes whose ghosts are read before they are written
// again, by any stage: they are exchanged after it. Each variable comes once.
func (s *Step) sent(i int) (all []Access) {
	for _, w := range s.Stages[i].Writes {
		if !slices.ContainsFunc(all, func(a Access) bool { return a.Variable == w.Variable }) && s.readsAround(w.Variable) {
			all = append(all, w)
		}
	}
	return all
}

// readsAround reports whether a stage reads more of a variable than points of its own.
func (s *Step) readsAround(v *Variable) bool {
	for _, st := range s.Stages {
		for _, a := range st.Reads {
			if a.Variable == v && a.around() {
				return true
			}
		}
	}
	return false
}

// Plan is the exchanges of a step.
type Plan struct {
	Stages []*halo.Plan // after each stage; nil where it needs none
	Once   *halo.Plan   // before the first step of a run, of variables that are only read; nil if it needs none
}

// Plan plans the exchanges of the step over a path.
func (s *Step) Plan(links *p2p.Links, path p2p.Path) (p *Plan, err error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	p = &Plan{}
	for i := range s.Stages {
		var sent []*Variable
		for _, a := range s.sent(i) {
			sent = append(sent, a.Variable)
		}
		plan, err := s.planOf(links, path, sent)
		if err != nil {
			return nil, err
		}
		p.Stages = append(p.Stages, plan)
	}
	p.Once, err = s.planOf(links, path, s.onlyRead())
	return p, err
}

// planOf plans the exchange of variables together, nil if there are none.
func (s *Step) planOf(links *p2p.Links, path p2p.Path, variables []*Variable) (*halo.Plan, error) {
	if len(variables) == 0 {
		return nil, nil
	}
	return halo.NewPlan(s.placement(), links, path, specsOf(variables)...)
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
		written := false
		for _, st := range s.Stages {
			written = written || slices.ContainsFunc(st.Writes, func(a Access) bool { return a.Variable == v })
		}
		if !written && s.readsAround(v) {
			all = append(all, v)
		}
	}
	return all
}

// real returns the type of a linear stage.
func (st *Stage) real() kernels.Real { return kernels.Real(st.Writes[0].Variable.Spec.Element) }
