package scheme

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// tuneBudget is the time for finding the shape of sweeps on one device; devices of its kind then reuse it for
// the same point function.
const tuneBudget = 100 * time.Millisecond

// newPoint prepares a stage with a point function for the steps n, n + period, ...
func (s *subdomain) newPoint(r *Runner, st *Stage, n int64, made *stageLaunches) error {
	sweeper, err := sweep.New(r.compiler, s.device, r.step.pointOf(st), st.sweepAccesses(r.step.measuredBy(st)))
	if err != nil {
		return err
	}
	arrays := st.arrays(s.rank, n)
	if made.tuning, err = s.tune(r, st, sweeper, made.boxes.large()); err != nil {
		return err
	}
	made.sweeper, made.arrays = sweeper, arrays
	return s.makeLaunches(r, st, made)
}

// makeLaunches makes the sweeps of a stage.
func (s *subdomain) makeLaunches(r *Runner, st *Stage, made *stageLaunches) (err error) {
	if made.boxes.grown {
		return s.grownLaunches(r, st, made)
	}
	regions := made.regions()
	for k, some := range [][]region{regions[:2], regions[2:]} {
		if made.totals[k], err = s.pointLaunches(r, st, made, some); err != nil {
			return err
		}
	}
	return nil
}

// pointOf returns the point function of a stage, with the names that others of the step have in the same
// source.
func (s *Step) pointOf(st *Stage) sweep.Point {
	p := *st.Point
	p.Sums = s.Sums
	for i := range s.Stages {
		other := &s.Stages[i]
		if other == st || other.Point == nil || other.Point.CUDA != p.CUDA {
			continue
		}
		p.Elsewhere = slices.Clone(p.Elsewhere)
		for _, a := range other.pointAccesses() {
			p.Elsewhere = append(p.Elsewhere, a.Name)
		}
		for _, r := range other.Point.Reductions {
			p.Elsewhere = append(p.Elsewhere, r.Name)
		}
	}
	return p
}

// CheckPoints runs the CUDA source and the Go counterpart of the point function of each stage over random
// data, with the accesses that the step declares, and compares the results, see sweep.Check. It skips stages with user
// kernels. The variables do not change. Ranges are of the accesses of all stages, by their names in the sources.
// Stage.Parameters sets the parameters of its stage, unless the options do.
func (s *Step) CheckPoints(c *kernels.Compiler, d *streams.Device, o sweep.CheckOptions) error {
	if err := s.Check(); err != nil {
		return err
	}
	for name := range o.Ranges {
		if !slices.ContainsFunc(s.Stages, func(st Stage) bool {
			named := func(a sweep.Access) bool { return a.Name == name }
			return st.Point != nil && slices.ContainsFunc(st.sweepAccesses(nil), named)
		}) {
			return fmt.Errorf("scheme: range of %q: a point function must have an access of this name", name)
		}
	}
	for i := range s.Stages {
		st := &s.Stages[i]
		if st.Point == nil {
			continue
		}
		own, accesses := o, st.sweepAccesses(s.measuredBy(st))
		own.Ranges = map[string][2]float64{}
		for _, a := range accesses {
			if r, ok := o.Ranges[a.Name]; ok {
				own.Ranges[a.Name] = r
			}
		}
		if own.Parameters == nil {
			own.Parameters = st.give()
		}
		if err := sweep.Check(c, d, s.pointOf(st), accesses, own); err != nil {
			return fmt.Errorf("scheme: stage %d %q: %w", i, st.title(), err)
		}
	}
	return nil
}

// tune finds the fastest shape for sweeps of the interior. It sweeps into fields that the first step writes
// and whose content is not needed, or otherwise into scratch memory; without memory the shape is not tuned. A
// dry run uses cached results and does not count that memory.
func (s *subdomain) tune(r *Runner, st *Stage, sweeper *sweep.Sweeper, interior domain.Box) (found Tuning, err error) {
	if interior.Empty() || s.device.GoKernels {
		return found, nil
	}
	var scratch streams.Resources
	defer func() { err = errors.Join(err, scratch.Close()) }()
	arrays, ok := s.nextArrays(r, st)
	if !ok {
		return found, nil
	}
	for i, a := range st.pointAccesses() {
		if !a.write || r.step.keeps(a.Variable) || s.device.IsDry() {
			continue
		}
		for c := range arrays[i] {
			m, err := s.device.Alloc(arrays[i][c].Data.Length)
			if err != nil {
				return found, nil
			}
			scratch.Add(m)
			arrays[i][c].Data = m.All()
		}
	}
	t, err := sweeper.Tune(arrays, interior, tuneBudget)
	if err == nil && t.Sweep > 0 {
		found = Tuning{Stage: st.Name, Block: t.Shape.Block, Layers: t.Shape.Layers, Took: t.Took}
	}
	return found, err
}

// pointLaunches makes the sweeps of regions that together are the subdomain, without totals and, if the stage
// has some, with totals.
func (s *subdomain) pointLaunches(r *Runner, st *Stage, made *stageLaunches, regions []region) (*sweep.Totals, error) {
	regions = slices.DeleteFunc(slices.Clone(regions), func(of region) bool { return len(of.boxes) == 0 })
	var portions []sweep.Portion
	for _, of := range regions {
		l, err := s.pointSweep(r, st, made, of.name, of.boxes...)
		if err != nil {
			return nil, err
		}
		*of.plain, *of.measured = l, l
		portions = append(portions, sweep.Portion{Name: of.name, Boxes: of.boxes})
	}
	launches, totals, err := s.pointTotals(r, st, made, portions...)
	for i, l := range launches {
		*regions[i].measured = l
	}
	return totals, err
}

// pointTotals prepares sweeps with totals; none if the stage has none.
func (s *subdomain) pointTotals(
	r *Runner, st *Stage, made *stageLaunches, portions ...sweep.Portion,
) (all []Launch, totals *sweep.Totals, err error) {
	if _, ok := r.step.pointTotal(st); !ok {
		return nil, nil, nil
	}
	launches, totals, err := made.sweeper.Measure(made.arrays, portions...)
	if err != nil {
		return nil, nil, err
	}
	s.resources.Add(totals)
	for _, l := range launches {
		all = append(all, st.launch(l, r))
	}
	return all, totals, nil
}

// grownLaunches makes the sweeps of a stage that also sweeps ghosts: one of everything, and one with totals
// of owned points after one of the ghosts.
func (s *subdomain) grownLaunches(r *Runner, st *Stage, made *stageLaunches) error {
	all, err := s.pointSweep(r, st, made, "sweep", made.boxes.whole)
	if err != nil {
		return err
	}
	made.plain = sweeps{boundary: all, whole: all}
	made.measured = made.plain
	owned := sweep.Portion{Name: "sweep", Boxes: []domain.Box{made.boxes.owned}}
	launches, totals, err := s.pointTotals(r, st, made, owned)
	if err != nil || totals == nil {
		return err
	}
	both := launches[0]
	if len(made.boxes.ghosts) > 0 {
		ghosts, err := s.pointSweep(r, st, made, "sweep ghosts", made.boxes.ghosts...)
		if err != nil {
			return err
		}
		both = inTurn(ghosts, both)
	}
	made.measured = sweeps{boundary: both, whole: both}
	made.totals = [2]*sweep.Totals{totals, totals}
	return nil
}

// pointSweep makes a sweep of boxes, without totals.
func (s *subdomain) pointSweep(
	r *Runner, st *Stage, made *stageLaunches, name string, boxes ...domain.Box,
) (Launch, error) {
	l, err := made.sweeper.Sweep(name, made.arrays, boxes...)
	if err != nil {
		return nil, err
	}
	s.resources.Add(l)
	return st.launch(l, r), nil
}

// inTurn is two consecutive launches.
func inTurn(first, then Launch) Launch {
	return func(s *streams.Stream, step int64, t float64) error {
		if err := first(s, step, t); err != nil {
			return err
		}
		return then(s, step, t)
	}
}

// pointTotal returns the norms and reductions of a stage.
func (s *Step) pointTotal(st *Stage) (t pointTotal, ok bool) {
	t = pointTotal{variables: map[int]string{}, reduced: map[int]string{}}
	accesses := st.pointAccesses()
	for i, a := range st.sweepAccesses(s.measuredBy(st)) {
		if a.Before != "" {
			t.variables[slices.Index(s.Measured, accesses[i].Variable)] = a.Name
		}
	}
	first := 0
	for i := range s.Stages {
		if &s.Stages[i] == st {
			for k, r := range st.Point.Reductions {
				t.reduced[first+k] = r.Name
			}
		}
		if s.Stages[i].Point != nil {
			first += len(s.Stages[i].Point.Reductions)
		}
	}
	return t, len(t.variables)+len(t.reduced) > 0
}

// launch is the Launch of a sweep: it passes on the step, the time and the parameters.
func (st *Stage) launch(l *sweep.Launch, r *Runner) Launch {
	give := st.give()
	return func(s *streams.Stream, step int64, _ float64) error {
		if err := l.Set(r.momentOf(step), give); err != nil {
			return err
		}
		return s.Launch(l.Kernel)
	}
}

// nextArrays returns the arrays that the next step accesses; ok is false if variables are not at one level,
// in which case no step can begin.
func (s *subdomain) nextArrays(r *Runner, st *Stage) (arrays sweep.Arrays, ok bool) {
	level, err := r.step.newest(0)
	if err != nil {
		return nil, false
	}
	return st.arrays(s.rank, level+1), true
}
