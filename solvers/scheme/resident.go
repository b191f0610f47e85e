package scheme

import (
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
)

// Resident is the scheme in which one kernel a device makes all steps of a round, without the host.
const Resident Scheme = "resident"

func residentScheme() *definition {
	return &definition{
		name: Resident, needs: Needs{Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, Swept: true, Steady: true},
		assistants: none, unfit: unfused, make: newResident,
	}
}

type resident struct {
	oneKernel
	all *sweep.ResidentSteps
}

func newResident(r *run, _ Options) (scheme, error) {
	k := &resident{oneKernel: oneKernel{run: r}}
	ranks, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	if k.all, err = sweep.NewResidentSteps(ranks, r.patience()); err != nil {
		return nil, unsuited(Resident, err)
	}
	r.resources.Add(k.all)
	for _, d := range r.subdomains {
		totals := func(phase, stage int) []*sweep.Totals { return some(k.all.Rank(d.rank).Totals(phase, stage)) }
		if err := k.addPart(d, totals); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// maxQueued is how many steps a round may have: those of one launch do not fill a queue.
func (k *resident) maxQueued() int64 { return 1 << 20 }

func (k *resident) steps(worker int, first, last int64, norms bool) error {
	p := k.parts[worker]
	p.steps.BeginStep(first)
	m := sweep.Moment{Step: k.done + first, Length: k.step.Length}
	if err := k.all.Rank(worker).Queue(p.steps, m, last-first+1, norms); err != nil || !norms {
		return err
	}
	return k.total(p, last)
}

// sync waits for the streams, and looks whether the kernels gave up waiting.
func (k *resident) sync(worker int) error {
	if err := k.syncStreams(worker); err != nil {
		return err
	}
	return k.all.Rank(worker).Err()
}
