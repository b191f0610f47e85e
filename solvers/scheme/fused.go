package scheme

import (
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
)

// Fused is the scheme in which one kernel a device makes a stage: it sweeps, stores boundary points into
// the neighbours' ghosts, and waits for theirs. Where processes share the grid it is two kernels, and assistants carry what
// goes to other processes.
const Fused Scheme = "fused"

func fusedScheme() *definition {
	return &definition{
		name:       Fused,
		needs:      Needs{Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, Swept: true, Groups: true, Processes: true},
		assistants: (*Runner).remoteNeighbours, unfit: unforwarded, make: newFused,
	}
}

// unforwarded returns an error for steps that the kernels cannot make.
func unforwarded(x *Runner) error {
	if x.step.group() > 1 {
		if err := unstored(x); err != nil {
			return err
		}
	}
	return unfused(x)
}

type fused struct {
	oneKernel
	stages   *sweep.FusedStages
	launches int            // of a stage
	remote   []*remoteFaces // by worker; none where this process has all of the grid
}

func newFused(r *run, _ Options) (scheme, error) {
	f := &fused{oneKernel: oneKernel{run: r}, launches: 1}
	ranks, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	if r.place.Processes != nil {
		f.launches, ranks = 2, r.remoteFirst(ranks)
		if f.remote, err = r.newRemoteFaces(); err != nil {
			return nil, err
		}
	}
	if f.stages, err = sweep.NewFusedStages(ranks, r.patience()); err != nil {
		return nil, unsuited(Fused, err)
	}
	r.resources.Add(f.stages)
	for worker, rank := range r.local {
		totals := func(phase, stage int) (all []*sweep.Totals) {
			if r.step.grows(int64(phase), stage) {
				return nil // it sweeps ghosts too
			}
			for launch := range f.launches {
				all = append(all, some(f.stages.Stage(phase, stage*f.launches+launch, worker).Totals())...)
			}
			return all
		}
		if err := f.addPart(r.subdomains[rank], totals); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fused) maxQueued() int64 { return maxSteps }

func (f *fused) steps(worker int, first, last int64, norms bool) error {
	p := f.parts[worker]
	for n := first; n <= last; n++ {
		p.steps.BeginStep(n)
		for stage := range f.step.Stages {
			if err := f.stage(worker, stage, n, norms && n == last); err != nil {
				return err
			}
		}
	}
	if norms {
		return f.total(p, last)
	}
	return nil
}

// stage queues a stage of a step.
func (f *fused) stage(worker, stage int, n int64, measured bool) error {
	p := f.parts[worker]
	if f.remote != nil {
		if err := f.remote[worker].begin(p.steps, stage, n); err != nil {
			return err
		}
	}
	if err := f.move(p, stage, n); err != nil {
		return err
	}
	parameters, err := f.step.Stages[stage].parameters(f.done + n)
	if err != nil {
		return err
	}
	m := sweep.Moment{Step: f.done + n, Length: f.step.Length}
	measured = measured && !f.step.grows(f.done+n, stage)
	for launch := range f.launches {
		if launch > 0 {
			if err := f.remote[worker].announce(p.steps, stage, n); err != nil {
				return err
			}
		}
		if err := f.stages.Stage(f.phase(n), stage*f.launches+launch, worker).Queue(p.steps, m, parameters, measured); err != nil {
			return err
		}
	}
	if f.remote != nil {
		f.remote[worker].queued.Add()
	}
	return nil
}

func (f *fused) assistants() {
	for _, p := range f.remote {
		p.start()
	}
}

func (f *fused) stop(worker int, n int64) {
	if f.remote != nil {
		f.remote[worker].stop(n)
	}
}

// sync waits for the streams, and looks whether the kernels gave up waiting.
func (f *fused) sync(worker int) error {
	if f.remote != nil {
		if err := f.remote[worker].sync(); err != nil {
			return err
		}
	}
	if err := f.syncStreams(worker); err != nil {
		return err
	}
	return f.stages.Stage(0, 0, worker).Err()
}
