package scheme

import (
	"errors"
	"fmt"

	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/streams"
)

// newSubdomain makes a subdomain ready.
func newSubdomain(rank int, x *Runner) (d *subdomain, err error) {
	d = &subdomain{rank: rank, device: x.place.Devices[rank]}
	made := d
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	d.findMessages(x.plans)
	for phase := range x.period {
		if err := d.addPhase(x, phase); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// addPhase makes the stages of the steps of a phase ready.
func (d *subdomain) addPhase(x *Runner, phase int) error {
	found := [2]*foundTotals{{variables: map[int]bool{}}, {variables: map[int]bool{}}} // of split and of whole sweeps
	var stages []stageLaunches
	for i := range x.step.Stages {
		made, err := d.newStage(x, i, int64(phase), found)
		if err != nil {
			return fmt.Errorf("stage %d %q: %w", i, x.step.Stages[i].title(), err)
		}
		stages = append(stages, made)
	}
	d.stages = append(d.stages, stages)
	for k, totals := range []*[][]total{&d.split, &d.whole} {
		for v := range x.step.Measured {
			if found[k].variables[v] {
				continue
			}
			t, err := d.measureFields(x, v, int64(phase), &d.resources)
			if err != nil {
				return err
			}
			found[k].all = append(found[k].all, t)
		}
		*totals = append(*totals, found[k].all)
	}
	return nil
}

// newStage makes a stage ready for the steps n, n + period, ...
func (d *subdomain) newStage(x *Runner, i int, n int64, found [2]*foundTotals) (made stageLaunches, err error) {
	st := &x.step.Stages[i]
	made.boxes = d.boxesOf(x, i, n)
	if st.Point != nil {
		err = d.newPoint(x, st, n, &made, found)
	} else {
		err = d.newKernels(x, st, n, &made)
	}
	return made, err
}

// newKernels makes a stage of the caller's kernels ready. In a dry run there are none of them.
func (d *subdomain) newKernels(x *Runner, st *Stage, n int64, made *stageLaunches) error {
	r := Region{Rank: d.rank, Device: d.device}
	for _, a := range st.Reads {
		r.Reads = append(r.Reads, a.field(n))
	}
	for _, a := range st.Writes {
		r.Writes = append(r.Writes, a.field(n))
	}
	for _, of := range made.regions() {
		var err error
		if r.Name, r.Boxes = of.name, of.boxes; len(r.Boxes) == 0 {
			continue
		}
		if d.device.IsDry() {
			continue
		}
		if *of.plain, err = st.kernels(r); err != nil {
			return err
		}
		*of.measured = *of.plain
	}
	return nil
}

// measureFields takes the norms of a variable from its fields after a step, over the points that stages sweep: no stage takes them
// on its way. What it makes is closed with owner.
func (d *subdomain) measureFields(x *Runner, variable int, n int64, owner *streams.Resources) (total, error) {
	v := x.step.Measured[variable]
	real, _ := v.real()
	arrays, _ := v.Spec.Arrays()
	if arrays < v.Spec.Components {
		return nil, fmt.Errorf("scheme: %w: the norms of %q, whose %d components lie beside each other, are taken by the stage that writes it, where that reads the level before at the point", ErrUnsuited, v.Spec.Name, v.Spec.Components)
	}
	reducer, err := reduce.NewNormReducer(x.compiler, d.device, real, x.step.Sums)
	if err != nil {
		return nil, err
	}
	all := fieldTotal{variable: variable}
	for c := range arrays {
		next, last := v.Level(n).Array(d.rank, c), v.Level(n-1).Array(d.rank, c)
		t, err := reducer.Norms(next, last, next.Layout.Owned.Intersect(x.place.Subdomains[d.rank].Box))
		if err != nil {
			return nil, err
		}
		owner.Add(t)
		all.components = append(all.components, t)
	}
	return all, nil
}
