package scheme

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// subdomain is one subdomain with the launches of all stages made ready, for each phase: step n
// is of phase n mod the step's period.
type subdomain struct {
	resources streams.Resources
	rank      int
	device    *streams.Device
	stages    [][]stageLaunches // by phase, then by stage
	split     [][]total         // norms by phase and measured variable, of boundary and interior
	whole     [][]total         // of whole sweeps
	totals    [][]total         // those of the two that the scheme uses
	out       [][]int           // by stage: messages of its plan that leave
	in        [][]int           // and that come
	shape     kernels.Shape     // in which a linear stage is swept
	tuning    kernels.Tuning
}

// stageLaunches are the launches of a stage. Those that have nothing to do are nil.
type stageLaunches struct {
	plain, measured sweeps // measured takes norms on the way, where the stage can
	boxes           boxes

	sweeper *sweep.Sweeper // of a point function
	arrays  sweep.Arrays
}

// sweeps are the launches that sweep a subdomain.
type sweeps struct {
	boundary Launch // the boundary region
	interior Launch // the rest
	whole    Launch // both at once
}

// boxes are what they sweep.
type boxes struct {
	boundary []domain.Box
	interior domain.Box
}

// foundTotals are what the stages of a phase take on their way.
type foundTotals struct {
	all       []total
	variables map[int]bool // measured ones whose norms are among them
}

// add adds what a stage takes.
func (f *foundTotals) add(t total, variables map[int]string) {
	f.all = append(f.all, t)
	for v := range variables {
		f.variables[v] = true
	}
}

// sweeps returns the launches of a stage in a step, with norms or without.
func (d *subdomain) sweeps(r *run, stage int, n int64, norms bool) *sweeps {
	s := &d.stages[r.phase(n)][stage]
	if norms {
		return &s.measured
	}
	return &s.plain
}

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
			return fmt.Errorf("stage %d %q: %w", i, x.step.Stages[i].Name, err)
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

// measureFields takes the norms of a variable from its fields after a step: no stage takes them
// on its way. What it makes is closed with owner.
func (d *subdomain) measureFields(x *Runner, variable int, n int64, owner *streams.Resources) (total, error) {
	v := x.step.Measured[variable]
	real, _ := v.real()
	if max(1, v.Spec.Components) > 1 {
		return nil, fmt.Errorf("scheme: the norms of %q, of %d components, are taken by the stage that writes it, where that reads the level before at the point", v.Spec.Name, v.Spec.Components)
	}
	reducer, err := x.compiler.NewNormReducer(d.device, real)
	if err != nil {
		return nil, err
	}
	next, last := v.Level(n).Parts[d.rank], v.Level(n - 1).Parts[d.rank]
	t, err := reducer.Norms(next, last, next.Layout.Owned)
	if err != nil {
		return nil, err
	}
	owner.Add(t)
	return normTotal{t, variable}, nil
}

// newStage makes a stage ready for the steps n, n + period, ...
func (d *subdomain) newStage(x *Runner, i int, n int64, found [2]*foundTotals) (made stageLaunches, err error) {
	st := &x.step.Stages[i]
	made.boxes.interior, made.boxes.boundary = domain.Split(x.place.Subdomains[d.rank].Box, d.boundaryLayers(x, i))
	switch {
	case st.Point != nil:
		err = d.newPoint(x, st, n, &made, found)
	case st.Linear != nil:
		err = d.newLinear(x, st, n, &made, found)
	default:
		err = d.newKernels(x, st, n, &made)
	}
	return made, err
}

// newKernels makes a stage of the caller's kernels ready.
func (d *subdomain) newKernels(x *Runner, st *Stage, n int64, made *stageLaunches) error {
	r := Region{Rank: d.rank, Device: d.device}
	for _, a := range st.Reads {
		r.Reads = append(r.Reads, a.field(n))
	}
	for _, a := range st.Writes {
		r.Writes = append(r.Writes, a.field(n))
	}
	for _, of := range made.regions(x.place.Subdomains[d.rank].Box) {
		var err error
		if r.Name, r.Boxes = of.name, of.boxes; len(r.Boxes) == 0 {
			continue
		}
		if *of.plain, err = st.Kernels(r); err != nil {
			return err
		}
		*of.measured = *of.plain
	}
	return nil
}

// region is a launch of a stage, and where it is kept.
type region struct {
	name            string
	boxes           []domain.Box
	plain, measured *Launch
}

// regions returns those of a stage; first boundary and interior, last the whole subdomain.
func (l *stageLaunches) regions(owned domain.Box) []region {
	interior := []domain.Box{l.boxes.interior}
	if l.boxes.interior.Empty() {
		interior = nil
	}
	return []region{
		{"sweep boundary", l.boxes.boundary, &l.plain.boundary, &l.measured.boundary},
		{"sweep interior", interior, &l.plain.interior, &l.measured.interior},
		{"sweep", []domain.Box{owned}, &l.plain.whole, &l.measured.whole},
	}
}

// tuneBudget is how long the shape of sweeps may be searched for on one device: that of
// others of its kind and stencil is then known.
const tuneBudget = 100 * time.Millisecond

// newLinear makes a linear stage ready.
func (d *subdomain) newLinear(x *Runner, st *Stage, n int64, made *stageLaunches, found [2]*foundTotals) error {
	sweeper, err := x.compiler.NewSweeper(d.device, *st.Linear, st.real())
	if err != nil {
		return err
	}
	dst, src := st.Writes[0].field(n).Parts[d.rank], st.Reads[0].field(n).Parts[d.rank]
	if !made.boxes.interior.Empty() { // the field that the first step writes holds nothing yet
		first := func(a Access) kernels.Array { return a.field(1).Parts[d.rank] }
		if d.tuning, err = sweeper.Tune(first(st.Writes[0]), first(st.Reads[0]), made.boxes.interior, tuneBudget); err != nil {
			return err
		}
		d.shape = d.tuning.Shape
	}
	regions := made.regions(x.place.Subdomains[d.rank].Box)
	for k, some := range [][]region{regions[:2], regions[2:]} {
		t, err := d.linearLaunches(sweeper, dst, src, some)
		if err != nil {
			return err
		}
		if v := slices.Index(x.step.Measured, st.Writes[0].Variable); v >= 0 {
			found[k].add(normTotal{t, v}, map[int]string{v: ""})
		}
	}
	return nil
}

// linearLaunches makes the sweeps of regions that together are the subdomain, without norms and
// with, and returns the total of the norms.
func (d *subdomain) linearLaunches(sweeper *kernels.Sweeper, dst, src kernels.Array, regions []region) (*kernels.NormReduction, error) {
	var portions []kernels.BoxSet
	var kept []region
	for _, r := range regions {
		if len(r.boxes) == 0 {
			continue
		}
		k, err := sweeper.SweepAs(r.name, dst, src, r.boxes...)
		if err != nil {
			return nil, err
		}
		d.resources.Add(k)
		*r.plain = Kernel(k)
		portions, kept = append(portions, kernels.BoxSet{Name: r.name, Boxes: r.boxes}), append(kept, r)
	}
	launches, t, err := sweeper.Measure(dst, src, portions...)
	if err != nil {
		return nil, err
	}
	d.resources.Add(t)
	for i, r := range kept {
		*r.measured = Kernel(launches[i])
	}
	return t, nil
}

// findMessages lists the messages of each stage that leave and that come.
func (d *subdomain) findMessages(plans []*halo.Plan) {
	d.out, d.in = make([][]int, len(plans)), make([][]int, len(plans))
	for stage, plan := range plans {
		if plan == nil {
			continue
		}
		for i, m := range plan.Messages {
			if m.From == d.rank {
				d.out[stage] = append(d.out[stage], i)
			}
			if m.To == d.rank {
				d.in[stage] = append(d.in[stage], i)
			}
		}
	}
}

// boundaryLayers returns how deep the boundary region of a stage is at each side: what
// neighbours need of what it writes, what it reads of ghosts that come from neighbours or change
// from step to step, and what ghosts behind physical faces are made from. All else, the interior,
// is swept while messages travel.
func (d *subdomain) boundaryLayers(x *Runner, stage int) (layers domain.Radius) {
	st := &x.step.Stages[stage]
	if plan := x.plans[stage]; plan != nil {
		for _, i := range d.out[stage] {
			for _, p := range plan.Messages[i].Parts {
				deepen(&layers, p.Dir, p.Send.Size(), p.Send.Size())
			}
		}
	}
	for _, a := range st.Writes {
		if g := x.ghosts[a.Variable]; g != nil {
			layers = deeper(layers, g[0].Layers(d.rank))
		}
	}
	for _, a := range st.Reads {
		r, changing := a.footprint().Radius(), domain.Radius{}
		if g := x.ghosts[a.Variable]; g != nil {
			changing = g[0].Layers(d.rank)
		}
		for _, side := range domain.Faces(x.place.Grid.Dims) {
			_, inside := x.place.Neighbour(d.rank, side)
			if inside && x.exchanged(a.Variable) || !inside && at(changing, side) > 0 {
				deepen(&layers, side, r.Minus, r.Plus)
			}
		}
	}
	return layers
}

// deepen makes the boundary region as deep at the sides of a direction as layers says.
func deepen(to *domain.Radius, dir domain.Direction, minus, plus domain.Vec) {
	for a, side := range dir {
		switch side {
		case -1:
			to.Minus[a] = max(to.Minus[a], minus[a])
		case 1:
			to.Plus[a] = max(to.Plus[a], plus[a])
		}
	}
}

// deeper returns the larger of two depths at each side.
func deeper(r, s domain.Radius) domain.Radius {
	for a := range 3 {
		r.Minus[a], r.Plus[a] = max(r.Minus[a], s.Minus[a]), max(r.Plus[a], s.Plus[a])
	}
	return r
}

// at returns the depth at a side.
func at(r domain.Radius, side domain.Direction) int {
	if a := side.Axis(); side.Positive() {
		return r.Plus[a]
	} else {
		return r.Minus[a]
	}
}

// Close frees what it holds. Closing twice is no error.
func (s *subdomain) Close() error { return s.resources.Close() }
