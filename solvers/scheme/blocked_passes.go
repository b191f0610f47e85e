package scheme

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

// newPasses returns the passes of a subdomain, and makes room for the values of walls that move. It returns nil for a point function that is not
// linear, all of whose steps are sweeps.
func newPasses(b *blocked, d *blockedPart) (*linearPasses, error) {
	s, ok := b.stage().linear()
	if !ok {
		return nil, nil
	}
	real, _ := b.variable().real()
	made, err := temporal.New(b.compiler, d.device, s, real, b.variable().levels[0].Array(d.rank, 0).Layout, b.passOptions(d.rank))
	if err != nil {
		return nil, err
	}
	return &linearPasses{passes: made, run: b.run, part: d, sides: b.sides(d.rank)}, b.addTables(d, len(b.possible(made.Costs()))-1)
}

// tune measures what passes over a box cost, and a sweep of it.
func (p *linearPasses) tune(sweep *streams.Kernel, arrays sweep.Arrays, box domain.Box) error {
	more := temporal.More{Walls: p.part.walls}
	if p.norms != nil {
		more = *p.norms
	}
	return p.passes.Tune(sweep, arrays[0][0], arrays[1][0], box, p.sides, more, tuneBudget)
}

// pass prepares a launch, which leaves some multiprocessors to other kernels if its blocks stay until it ends.
func (p *linearPasses) pass(name string, arrays sweep.Arrays, box domain.Box, depth, spare int) (Launch, error) {
	return p.make(name, arrays, box, depth, temporal.More{Walls: p.part.walls, Spare: spare})
}

// make makes a pass ready that is given more.
func (p *linearPasses) make(name string, arrays sweep.Arrays, box domain.Box, depth int, of temporal.More) (Launch, error) {
	k, _, err := p.passes.Pass(name, arrays[0][0], arrays[1][0], box, p.sides.Of(box, p.run.place.Subdomains[p.part.rank].Box), depth, of)
	if err != nil {
		return nil, err
	}
	p.run.resources.Add(k)
	return Kernel(k), nil
}

// unblocked returns an error for steps that no passes make.
func unblocked(x *Runner) error {
	if len(x.step.Stages) != 1 {
		return fmt.Errorf("makes steps of one stage, not of %d", len(x.step.Stages))
	}
	st := &x.step.Stages[0]
	if st.changes() {
		return fmt.Errorf("makes many steps at once, and what stage %q queues changes from step to step", st.title())
	}
	_, linear := st.linear()
	for _, a := range slices.Concat(st.Reads, st.Writes) {
		if !linear && !a.Variable.Boundary.Steady() {
			return fmt.Errorf("makes steps of a linear stencil between walls that change with time, and stage %q is another point function", st.title())
		}
	}
	for _, w := range st.Writes {
		if err := unblockedWrite(st, w.Variable); err != nil {
			return err
		}
		for _, side := range domain.Faces(x.place.Grid.Dims) {
			if !x.place.Grid.Periodic[side.Axis()] && w.Variable.Boundary.At(side).Kind == boundary.Custom {
				return fmt.Errorf("makes steps between boundaries that halox sets, and one of %q has a kernel of its own", w.Variable.Spec.Name)
			}
		}
	}
	for _, r := range st.Reads {
		if v := r.Variable; v.Levels() > 1 && !x.step.writes(v) {
			return fmt.Errorf("makes steps that read the same at each level, and %q, which no stage writes, has %d levels that are read in turn", v.Spec.Name, v.Levels())
		}
	}
	return nil
}

// unblockedWrite returns an error for a variable that no pass can step.
func unblockedWrite(st *Stage, v *Variable) error {
	switch name := v.Spec.Name; {
	case v.Spec.Stagger != [3]bool{}:
		return fmt.Errorf("makes steps of points of the grid, and %q is staggered", name)
	case v.Levels() == 1:
		return fmt.Errorf("makes steps from one level of a variable to the next, and %q has one, which is updated in place: tiles of a pass compute points twice", name)
	case v.Levels() > 2:
		return fmt.Errorf("makes steps from one level of a variable to the next, and %q has %d: a pass would read two and store two, while other tiles still read all fields that there are", name, v.Levels())
	}
	read := false
	for _, r := range st.Reads {
		if r.Variable != v {
			continue
		}
		if read = true; r.Level != 0 {
			return fmt.Errorf("makes steps from one level of a variable to the next, and stage %q reads level %+d of %q", st.title(), r.Level, v.Spec.Name)
		}
	}
	if !read {
		return fmt.Errorf("makes steps from one level of a variable to the next, and stage %q writes %q without reading it", st.title(), v.Spec.Name)
	}
	return nil
}
