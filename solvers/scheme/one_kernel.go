package scheme

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// oneKernel is what schemes have in common in which one kernel a device sweeps, stores boundary points
// into the neighbours' ghosts, and waits for theirs.
type oneKernel struct {
	*run
	parts []*oneKernelPart
}

// oneKernelPart is a subdomain with its stream. Where all totals are taken by the kernels on their way,
// totals is another one, on which they are joined behind the event measured: the next step need not wait.
type oneKernelPart struct {
	*subdomain
	steps, totals *streams.Stream
	measured      *streams.Event
}

// unfused returns an error for steps that such kernels cannot make.
func unfused(x *Runner) error {
	for i := range x.step.Stages {
		st := &x.step.Stages[i]
		if st.Point == nil {
			return fmt.Errorf("makes steps of point functions alone, and stage %d %q is none", i, st.title())
		}
		for _, rank := range x.local {
			if _, err := x.stores(rank, i, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// unstored returns an error if what is sent after a group of steps is not all swept by its last stage.
func unstored(x *Runner) error {
	last := len(x.step.Stages) - 1
	for _, sent := range x.step.sent(last) {
		if !slices.ContainsFunc(x.step.Stages[last].Writes, sent.sameField) {
			return fmt.Errorf(
				"stores into ghosts what it sweeps, and a group of steps also sends level %+d of %q, which its last stage does not write",
				sent.Level, sent.Variable.Spec.Name)
		}
	}
	if len(x.step.Reductions()) > 0 {
		return errors.New(
			"sweeps ghosts and owned points at once within a group of steps, and reductions are of owned points alone")
	}
	return nil
}

// kernelBoxes returns the boundary region and the interior of a stage of a kernel that waits for neighbours. Where the
// stage sweeps ghosts they are in the boundary region, and the interior reads none.
func (d *subdomain) kernelBoxes(x *Runner, stage int, n int64) (boundary []domain.Box, interior domain.Box) {
	b := &d.stages[n][stage].boxes
	if !b.grown {
		return b.boundary, b.interior
	}
	layers := d.boundaryLayers(x, stage, false)
	for _, side := range domain.Faces(x.place.Grid.Dims) {
		_, inside := x.place.Neighbour(d.rank, side)
		switch a := side.Axis(); {
		case !inside:
		case side.Positive():
			layers.Plus[a] = inward(layers.Plus[a], b.whole.Hi[a]-b.owned.Hi[a], x.step.apart(n, stage))
		default:
			layers.Minus[a] = inward(layers.Minus[a], b.owned.Lo[a]-b.whole.Lo[a], x.step.apart(n, stage))
		}
	}
	interior, boundary = domain.Split(b.whole, layers)
	return boundary, interior
}

// inward returns how deep the boundary region is towards a neighbour where ghosts are swept: these and what reads them,
// or nothing in a stage apart from neighbours. Every other stage has a boundary region, even if it neither reads nor
// sweeps ghosts: its blocks tell the neighbour that the ghosts are free to be overwritten.
func inward(layers, ghosts int, apart bool) int {
	if apart {
		return 0
	}
	return max(1, layers+ghosts)
}

// unsuited returns the error of kernels that cannot be made as one of the scheme.
func unsuited(name Scheme, err error) error {
	if errors.Is(err, sweep.ErrImpossible) {
		return fmt.Errorf("scheme: %w: %s: %w", ErrUnsuited, name, err)
	}
	return err
}

// stores returns what a subdomain stores into ghosts in a stage: its messages within the process, and ghosts behind
// physical faces that change from step to step.
func (x *Runner) stores(rank, stage int, n int64) (all []sweep.Store, err error) {
	var sent []Access
	var plan *halo.Plan
	if !x.step.grows(n, stage) {
		sent, plan = x.step.sent(stage), x.plans[stage]
	}
	for access, a := range x.step.Stages[stage].pointAccesses() {
		if !a.write || x.ghosts[a.Variable] == nil {
			continue
		}
		field := slices.IndexFunc(sent, a.sameField)
		f := a.field(n)
		components, _ := f.Spec.Arrays()
		for c := range components {
			stores, ok := x.ghosts[a.Variable][a.slot(n)].Stores(rank, x.step.growth(n, stage), plan, field, c)
			if !ok {
				return nil, fmt.Errorf("stores into ghosts, and a boundary of %q has a kernel of its own",
					a.Variable.Spec.Name)
			}
			for _, s := range stores {
				if !x.place.IsLocal(s.To) {
					continue
				}
				if swept := x.place.Grown(rank, x.step.growth(n, stage)); swept.Intersect(s.Send) != s.Send {
					return nil, fmt.Errorf(
						"stores into ghosts what it sweeps, and neighbours also have the last points of %q, which is staggered, before a face: no stage writes these",
						a.Variable.Spec.Name)
				}
				all = append(
					all,
					sweep.Store{
						Access: access, Component: c, Send: s.Send, Ghost: s.Ghost, To: s.To, Array: f.Array(s.To, c),
						Odd: s.Odd,
					},
				)
			}
		}
	}
	return all, nil
}

// stageRanks returns what each subdomain of this process does, by phase and stage. Their kernels know each other by the
// numbers of their workers.
func (r *run) stageRanks() (all [][][]sweep.StageRank, err error) {
	for phase := range r.period {
		var stages [][]sweep.StageRank
		for stage := range r.step.Stages {
			var ranks []sweep.StageRank
			for _, rank := range r.local {
				d := r.subdomains[rank]
				made := &d.stages[phase][stage]
				one := sweep.StageRank{Sweeper: made.sweeper, Arrays: made.arrays}
				one.Boundary, one.Interior = d.kernelBoxes(r.Runner, stage, int64(phase))
				one.Alone = r.step.apart(int64(phase), stage)
				if one.Stores, err = r.stores(rank, stage, int64(phase)); err != nil {
					return nil, err
				}
				for i := range one.Stores {
					one.Stores[i].To = r.workerOf(one.Stores[i].To)
				}
				ranks = append(ranks, one)
			}
			stages = append(stages, ranks)
		}
		all = append(all, stages)
	}
	return all, nil
}

// addPart makes the streams of a subdomain, whose kernels take the totals that the function returns.
func (k *oneKernel) addPart(d *subdomain, totals func(phase, stage int) []*sweep.Totals) (err error) {
	p := &oneKernelPart{subdomain: d}
	if p.steps, err = k.newStream(d.device, streams.Normal, "steps"); err != nil {
		return err
	}
	p.totals = p.steps
	k.parts = append(k.parts, p)
	onTheirWay, err := k.takeTotals(d, totals)
	if err != nil || !onTheirWay || k.period < 2 {
		return err
	}
	if err := k.newEvents(d.device, &p.measured); err != nil {
		return err
	}
	p.totals, err = k.newStream(d.device, streams.Urgent, "norms")
	return err
}

// some returns those of totals that there are.
func some(totals ...*sweep.Totals) []*sweep.Totals {
	return slices.DeleteFunc(totals, func(t *sweep.Totals) bool { return t == nil })
}

// takeTotals has the norms and reductions of a subdomain taken by its kernels on their way, and what
// these do not take from the fields, after a step. It reports whether there are some, all of the former
// kind.
func (k *oneKernel) takeTotals(
	d *subdomain, totals func(phase, stage int) []*sweep.Totals,
) (onTheirWay bool, err error) {
	d.totals, onTheirWay = nil, true
	for phase := range k.period {
		var all []total
		taken := map[int]bool{}
		for stage := range k.step.Stages {
			t, ok := k.step.pointTotal(&k.step.Stages[stage])
			if t.parts = totals(phase, stage); !ok || len(t.parts) == 0 {
				continue
			}
			all = append(all, t)
			for v := range t.variables {
				taken[v] = true
			}
		}
		onTheirWay = onTheirWay && len(all) > 0 && len(taken) == len(k.step.Measured)
		for v := range k.step.Measured {
			if taken[v] {
				continue
			}
			t, err := d.measureFields(k.Runner, v, int64(phase), &k.run.resources)
			if err != nil {
				return false, err
			}
			all = append(all, t)
		}
		d.totals = append(d.totals, all)
	}
	return onTheirWay, nil
}

func (k *oneKernel) workers() [][]int { return alone(k.local) }
func (k *oneKernel) assistants()      {}
func (k *oneKernel) stop(int, int64)  {}
func (k *oneKernel) queues(rank int) (steps, norms *streams.Stream) {
	p := k.parts[k.workerOf(rank)]
	return p.steps, p.totals
}

// total queues the norms of the step that was queued last. What the step has left for them on its way
// stays until the norms of the next but one, which the host does not queue before it has looked at these.
func (k *oneKernel) total(p *oneKernelPart, step int64) error {
	if p.measured != nil {
		p.totals.BeginStep(step)
		if err := errors.Join(p.steps.Record(p.measured), p.totals.Wait(p.measured)); err != nil {
			return err
		}
	}
	return k.queueTotals(p.subdomain, p.totals, step)
}

// syncStreams waits for the streams of a worker's subdomain.
func (k *oneKernel) syncStreams(worker int) error {
	p := k.parts[worker]
	for _, s := range []*streams.Stream{p.steps, p.totals} {
		if err := s.Sync(k.patience()); err != nil {
			return err
		}
	}
	return nil
}

// move queues the values of profiles, which the stage of a step reflects about and the next one reads.
func (k *oneKernel) move(p *oneKernelPart, stage int, n int64) error {
	return k.eachWritten(stage, n,
		func(g *boundary.Ghosts) error { return g.Move(p.rank, p.steps, k.done+n, k.time(n)) })
}
