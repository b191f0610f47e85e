package scheme

import (
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
)

// Fused is the scheme in which one kernel a device makes a stage: it sweeps, stores boundary points into
// the neighbours' ghosts, and waits for theirs.
const Fused Scheme = "fused"

func fusedScheme() *definition {
	return &definition{
		name: Fused, needs: Needs{Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, Swept: true, Groups: true},
		assistants: none, unfit: unforwarded, make: newFused,
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
	stages *sweep.FusedStages
}

func newFused(r *run, _ Options) (scheme, error) {
	f := &fused{oneKernel: oneKernel{run: r}}
	ranks, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	if f.stages, err = sweep.NewFusedStages(ranks, r.patience()); err != nil {
		return nil, unsuited(Fused, err)
	}
	r.resources.Add(f.stages)
	for _, d := range r.subdomains {
		err := f.addPart(d, func(phase, stage int) *sweep.Totals { return f.stages.Stage(phase, stage, d.rank).Totals() })
		if err != nil {
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
			if err := f.stage(p, stage, n, norms && n == last); err != nil {
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
func (f *fused) stage(p *oneKernelPart, stage int, n int64, measured bool) error {
	if err := f.move(p, stage, n); err != nil {
		return err
	}
	parameters, err := f.step.Stages[stage].parameters(f.done + n)
	if err != nil {
		return err
	}
	m := sweep.Moment{Step: f.done + n, Length: f.step.Length}
	return f.stages.Stage(f.phase(n), stage, p.rank).Queue(p.steps, m, parameters, measured && !f.step.grows(f.done+n, stage))
}

// sync waits for the streams, and looks whether the kernels gave up waiting.
func (f *fused) sync(worker int) error {
	if err := f.syncStreams(worker); err != nil {
		return err
	}
	return f.stages.Stage(0, 0, worker).Err()
}
