package scheme

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// Step is what one time step computes: its stages in order.
type Step struct {
	Name     string // of what the step computes, by which trials of its schemes are remembered
	Stages   []Stage
	Length   float64     // of a step in time; level n is at time n times that
	Measured []*Variable // whose norms are taken; each has float32 or float64 elements and two levels or more
	Sums     sums.Mode   // how sums of norms and reductions are taken, also those of point functions

	// Group is how many steps are made between two exchanges, 0 for 1. With more, a step exchanges nothing between its
	// stages, and all stages but the last of a group sweep ghosts too, as far as the rest of the group needs them. So every
	// variable has ghosts, with edges and corners, Group times as wide as the stages of a step reach together: those of a
	// halo.WideHalo. Boxes of kernels of the caller's own then reach beyond the subdomain, and along periodic axes beyond the grid.
	// Faces with kernels of their own, staggered variables, and point functions that ask where a point lies along a periodic
	// axis, are refused.
	Group int
}

// Stage is the part of a step between two exchanges. It writes the points of the grid, each
// subdomain its own, by a point function or by kernels of the caller's own. What it writes it may
// read only at the point itself.
type Stage struct {
	Name   string // for errors, which call it after its point function where this is empty
	Reads  []Access
	Writes []Access

	// Point, where set, is what one point computes: halox sweeps it itself, under every scheme.
	Point *sweep.Point

	// Parameters, where set, returns a pointer to the parameters of the point function in a step, which is not nil and of
	// the type of Point.Parameters. It is called by several threads, more than once for a step, and also while the step is made
	// ready, for the first steps: so it answers for any step from 1 on, and has no side effects.
	Parameters func(step int64) any

	// Kernels, where set, makes a launch ready that sweeps a region of one subdomain; it returns one or an error. Changing
	// says that what it queues depends on the step or on time: schemes that queue steps
	// beforehand then refuse it.
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
		return nil, fmt.Errorf("Stage.Kernels returned no launch (nil) for %s of subdomain %d: return one that queues nothing where there is nothing to do", r.Name, r.Rank)
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
		return nil, fmt.Errorf("scheme: Stage.Parameters of stage %q returned nil for step %d: it returns a pointer to the parameters of each step", st.title(), step)
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

// sent returns the accesses that stage i writes whose ghosts are read before they are written
// again, by any stage: they are exchanged after it. Each variable comes once. After a group of steps it is
// what the next one reads.
func (s *Step) sent(i int) (all []Access) {
	if s.group() > 1 {
		return s.sentByGroup(i)
	}
	for _, w := range s.Stages[i].Writes {
		if !slices.ContainsFunc(all, func(a Access) bool { return a.Variable == w.Variable }) && s.readsAround(w.Variable) {
			all = append(all, w)
		}
	}
	return all
}

// sentByGroup returns what is exchanged after stage i at the end of a group: after the last all levels that the next group
// reads before it writes them.
func (s *Step) sentByGroup(i int) (all []Access) {
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

// oldest returns the oldest level of a variable that a step reads before it writes it, 1 where there is none.
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
