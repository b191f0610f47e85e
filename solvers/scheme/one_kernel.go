package scheme

import (
	"errors"
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// oneKernel is a subdomain of a scheme in which one kernel per device sweeps, stores boundary points into the
// neighbors' ghosts, and waits for their stores. If the kernels take all totals during sweeps, norms is
// another stream, on which they are joined after the event measured: the next step does not wait.
type oneKernel struct {
	*run
	*subdomain
	stream, norms *streams.Stream
	measured      *streams.Event
}

// unfused returns an error for steps that such kernels cannot run.
func unfused(r *Runner) error {
	for i := range r.step.Stages {
		st := &r.step.Stages[i]
		if st.Point == nil {
			return fmt.Errorf("needs point functions, got user kernels in stage %d %q", i, st.title())
		}
		for _, rank := range r.local {
			if _, err := r.stores(rank, i, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// unstored returns an error if not everything sent after a group of steps is swept by its last stage.
func unstored(r *Runner) error {
	last := len(r.step.Stages) - 1
	for _, sent := range r.step.sent(last) {
		if !slices.ContainsFunc(r.step.Stages[last].Writes, sent.sameField) {
			return fmt.Errorf("stores swept points into ghosts: the last stage must write level %+d of %q, "+
				"which a group of steps sends", sent.Level, sent.Variable.Spec.Name)
		}
	}
	if len(r.step.Reductions()) > 0 {
		return errors.New(
			"sweeps ghosts and owned points together in a group of steps: must have no reductions")
	}
	return nil
}

// unforwarded returns an error for steps that the kernels cannot run, in groups or not.
func unforwarded(r *Runner) error {
	if r.step.group() > 1 {
		if err := unstored(r); err != nil {
			return err
		}
	}
	return unfused(r)
}

// kernelBoxes returns the boundary region and the interior of a stage of a kernel that waits for neighbors.
// If the stage sweeps ghosts they are in the boundary region, and the interior reads none. A stage that is
// isolated from neighbors has no boundary region towards them. Every other stage has one, even if it neither
// reads nor sweeps ghosts: its blocks signal the neighbor that the ghosts may be overwritten.
func (s *subdomain) kernelBoxes(r *Runner, stage int, n int64) (boundary []domain.Box, interior domain.Box) {
	b := &s.stages[n][stage].boxes
	if !b.grown {
		return b.boundary, b.interior
	}
	layers, ghosts := s.boundaryLayers(r, stage, false), b.growth()
	for _, side := range domain.Faces(r.place.Grid.Dims) {
		if _, inside := r.place.Neighbor(s.rank, side); !inside {
			continue
		}
		depth := max(1, at(layers, side)+at(ghosts, side))
		if r.step.isolated(n, stage) {
			depth = 0
		}
		*depthAt(&layers, side) = depth
	}
	interior, boundary = domain.Split(b.whole, layers)
	return boundary, interior
}

// unsuited returns an error for kernels that the scheme does not support.
func unsuited(name Scheme, err error) error {
	if errors.Is(err, sweep.ErrImpossible) {
		return fmt.Errorf("scheme: %w: %s: %w", ErrUnsuited, name, err)
	}
	return err
}

// stores returns the stores of a subdomain into ghosts in a stage: its messages within the process, and
// ghosts outside of physical boundaries that change from step to step.
func (r *Runner) stores(rank, stage int, n int64) (all []sweep.Store, err error) {
	var sent []Access
	var plan *halo.Plan
	if !r.step.grows(n, stage) {
		sent, plan = r.step.sent(stage), r.plans[stage]
	}
	growth := r.step.growth(n, stage)
	for access, a := range r.step.Stages[stage].pointAccesses() {
		if !a.write || r.ghosts[a.Variable] == nil {
			continue
		}
		field := slices.IndexFunc(sent, a.sameField)
		f := a.field(n)
		components, _ := f.Spec.Arrays()
		for c := range components {
			stores, ok := r.ghosts[a.Variable][a.slot(n)].Stores(rank, growth, plan, field, c)
			if !ok {
				return nil, fmt.Errorf("stores ghosts: %q must have no user kernels at boundaries", a.Variable.Spec.Name)
			}
			for _, s := range stores {
				if !r.place.IsLocal(s.To) {
					continue
				}
				if swept := r.place.Grown(rank, growth); swept.Intersect(s.Send) != s.Send {
					return nil, fmt.Errorf("stores swept points into ghosts, and neighbors also have the last "+
						"points of %q, which is staggered, before a face, which no stage writes", a.Variable.Spec.Name)
				}
				all = append(all, sweep.Store{Access: access, Component: c, GhostStore: s, Array: f.Array(s.To, c)})
			}
		}
	}
	return all, nil
}

// stageRanks returns the work of each subdomain of this process, by phase and stage. Their kernels identify
// each other by the numbers of their workers.
func (r *run) stageRanks() (all [][][]sweep.StageRank, err error) {
	for phase := range r.period {
		var stages [][]sweep.StageRank
		for stage := range r.step.Stages {
			var ranks []sweep.StageRank
			for _, rank := range r.local {
				d := r.subdomains[rank]
				made := &d.stages[phase][stage]
				one := sweep.StageRank{Sweeper: r.frames[rank].Fed(stage, made.sweeper), Arrays: made.arrays}
				one.Boundary, one.Interior = d.kernelBoxes(r.Runner, stage, int64(phase))
				one.Independent = r.step.isolated(int64(phase), stage)
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

// newOneKernel makes the streams of a subdomain, whose kernels take the totals that the function returns.
func (r *run) newOneKernel(
	d *subdomain, totals func(phase, stage int) []*sweep.Totals,
) (o *oneKernel, err error) {
	o = &oneKernel{run: r, subdomain: d}
	if o.stream, err = r.newStream(d.device, streams.Normal, "steps"); err != nil {
		return nil, err
	}
	o.norms = o.stream
	swept, err := r.takeTotals(d, totals)
	if err != nil || !swept || r.period < 2 {
		return o, err
	}
	if err := r.newEvents(d.device, &o.measured); err != nil {
		return nil, err
	}
	o.norms, err = r.newStream(d.device, streams.Urgent, "norms")
	return o, err
}

func (o *oneKernel) queues() []queue { return []queue{{o.rank, o.stream, o.norms}} }

// total queues the norms of the last queued step. The intermediate results of the step stay valid until the
// norms of the next but one step, which the host queues only after reading these.
func (o *oneKernel) total(step int64) error {
	if o.measured != nil {
		o.norms.BeginStep(step)
		if err := errors.Join(o.stream.Record(o.measured), o.norms.Wait(o.measured)); err != nil {
			return err
		}
	}
	return o.queueTotals(o.subdomain, o.norms, step)
}
