package scheme

import (
	"fmt"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// fusedPoints is Fused for stages of point functions: a kernel a stage and device.
type fusedPoints struct {
	*run
	stages  *sweep.FusedStages
	streams []*streams.Stream
}

// unfusedPoints is unfusedSteps for point functions.
func unfusedPoints(x *Runner) error {
	for i := range x.step.Stages {
		st := &x.step.Stages[i]
		if st.Point == nil {
			return fmt.Errorf("makes steps of point functions alone, or of one stencil, and stage %d %q is none", i, st.Name)
		}
		for rank := range x.subdomains {
			if _, err := x.pointStores(rank, i, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointStores returns what a subdomain stores into ghosts in a stage: its messages, and ghosts behind
// physical faces that change from step to step.
func (x *Runner) pointStores(rank, stage int, n int64) (all []sweep.Store, err error) {
	st := &x.step.Stages[stage]
	accesses := st.pointAccesses()
	for field, sent := range x.step.sent(stage) {
		ghosts := x.ghosts[sent.Variable][sent.slot(n)]
		access := 0
		for accesses[access].Variable != sent.Variable || accesses[access].slot(1) != sent.slot(1) || !accesses[access].write {
			access++
		}
		f := sent.field(n)
		components, _ := f.Spec.Arrays()
		for c := range components {
			stores, ok := ghosts.Stores(rank, x.plans[stage], field, c)
			if !ok {
				return nil, fmt.Errorf("stores into ghosts, and a boundary of %q has a kernel of its own", sent.Variable.Spec.Name)
			}
			for _, s := range stores {
				all = append(all, sweep.Store{Access: access, Component: c, Send: s.Send, Ghost: s.Ghost, To: s.To, Array: f.Array(s.To, c), Odd: s.Odd})
			}
		}
	}
	return all, nil
}

func newFusedPoints(r *run) (scheme, error) {
	f := &fusedPoints{run: r}
	ranks, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	if f.stages, err = sweep.NewFusedStages(ranks, r.patience()); err != nil {
		return nil, err
	}
	r.resources.Add(f.stages)
	for _, d := range r.subdomains {
		s, err := r.newStream(d.device, streams.Normal, "steps")
		if err != nil {
			return nil, err
		}
		f.streams = append(f.streams, s)
		err = r.takePointTotals(d, func(phase, stage int) *sweep.Totals { return f.stages.Stage(phase, stage, d.rank).Totals() })
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// stageRanks returns what each subdomain does, by phase and stage.
func (r *run) stageRanks() (all [][][]sweep.StageRank, err error) {
	for phase := range r.period {
		var stages [][]sweep.StageRank
		for stage := range r.step.Stages {
			var ranks []sweep.StageRank
			for rank, d := range r.subdomains {
				made := &d.stages[phase][stage]
				one := sweep.StageRank{Sweeper: made.sweeper, Arrays: made.arrays, Boundary: made.boxes.boundary, Interior: made.boxes.interior}
				if one.Stores, err = r.pointStores(rank, stage, int64(phase)); err != nil {
					return nil, err
				}
				ranks = append(ranks, one)
			}
			stages = append(stages, ranks)
		}
		all = append(all, stages)
	}
	return all, nil
}

// takePointTotals has the norms and reductions of a subdomain taken by its stages on their way, where
// totals returns some, and what these do not take from the fields, after a step.
func (r *run) takePointTotals(d *subdomain, totals func(phase, stage int) *sweep.Totals) error {
	d.totals = nil
	for phase := range r.period {
		var all []total
		taken := map[int]bool{}
		for stage := range r.step.Stages {
			t, ok := r.step.pointTotal(&r.step.Stages[stage])
			if t.Totals = totals(phase, stage); !ok || t.Totals == nil {
				continue
			}
			all = append(all, t)
			for v := range t.variables {
				taken[v] = true
			}
		}
		for v := range r.step.Measured {
			if taken[v] {
				continue
			}
			t, err := d.measureFields(r.Runner, v, int64(phase), &r.resources)
			if err != nil {
				return err
			}
			all = append(all, t)
		}
		d.totals = append(d.totals, all)
	}
	return nil
}

func (f *fusedPoints) workers() [][]int { return alone(len(f.subdomains)) }
func (f *fusedPoints) assistants()      {}
func (f *fusedPoints) stop(int, int64)  {}
func (f *fusedPoints) maxQueued() int64 { return maxSteps }
func (f *fusedPoints) queues(rank int) (steps, norms *streams.Stream) {
	return f.streams[rank], f.streams[rank]
}

func (f *fusedPoints) steps(worker int, first, last int64, norms bool) error {
	d, s := f.subdomains[worker], f.streams[worker]
	for n := first; n <= last; n++ {
		s.BeginStep(n)
		for stage := range f.step.Stages {
			if err := f.stage(d, s, stage, n, norms && n == last); err != nil {
				return err
			}
		}
	}
	if norms {
		return f.queueTotals(d, s, last)
	}
	return nil
}

// stage queues a stage of a step, behind the values of profiles that the next one reads.
func (f *fusedPoints) stage(d *subdomain, s *streams.Stream, stage int, n int64, measured bool) error {
	st := &f.step.Stages[stage]
	err := f.eachWritten(stage, n, func(g *boundary.Ghosts) error { return g.Move(d.rank, s, f.done+n, f.time(n)) })
	if err != nil {
		return err
	}
	var parameters any
	if st.Parameters != nil {
		parameters = st.Parameters(f.done + n)
	}
	return f.stages.Stage(f.phase(n), stage, d.rank).Queue(s, sweep.Moment{Step: f.done + n, Length: f.step.Length}, parameters, measured)
}

// sync waits for the stream, and looks whether the kernels gave up waiting.
func (f *fusedPoints) sync(worker int) error {
	if err := f.streams[worker].Sync(f.patience()); err != nil {
		return err
	}
	return f.stages.Stage(0, 0, worker).Err()
}
