package scheme

import (
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/p2p"
)

// Resident is the scheme in which one kernel a device makes all steps of a round, without the host. With several steps
// between two exchanges, on GPUs, it takes steps of stars of radius 1 whose fields stay on the multiprocessors with
// ghosts as wide.
const Resident Scheme = "resident"

func residentScheme() *definition {
	return &definition{
		name: Resident,
		needs: Needs{
			Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, Swept: true, Steady: true,
			Groups: true, Within: true,
		},
		assistants: none, unfit: unforwarded, make: newResident, onGPUs: true,
	}
}

type resident struct {
	oneKernel
	options Options
	all     *sweep.ResidentSteps
}

func newResident(r *run, o Options) (scheme, error) {
	k := &resident{oneKernel: oneKernel{run: r}, options: o}
	ranks, err := r.stageRanks()
	if err != nil {
		return nil, err
	}
	if k.all, err = sweep.NewResidentSteps(ranks, r.step.group(), r.patience(), o.checks() && len(r.step.Measured) == 1); err != nil {
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

// mostChecks is that of kernels that take all norms on their way.
func (k *resident) mostChecks() int64 {
	if len(k.step.Measured) != 1 {
		return 0
	}
	most := k.maxQueued()
	for rank, p := range k.parts {
		if most = min(most, k.all.Rank(rank).MostChecks()); p.measured == nil {
			return 0
		}
	}
	return most
}

func (k *resident) stepsChecked(worker int, first, last, every int64) error {
	p := k.parts[worker]
	p.steps.BeginStep(first)
	c := sweep.Checks{
		Until: (every - first%every) % every, Every: every, Tolerance: -1, L2: k.options.Norm == L2Norm,
		Finite: !k.options.anything,
	}
	if k.options.Tolerance > 0 {
		c.Tolerance = k.options.Tolerance
	}
	m := sweep.Moment{Step: k.done + first, Length: k.step.Length}
	if err := k.all.Rank(worker).QueueChecked(p.steps, m, last-first+1, c); err != nil {
		return err
	}
	return k.total(p, last)
}

func (k *resident) checked(worker int) (norms []reduce.Norms, ended int64) {
	return k.all.Rank(worker).Checked()
}

// sync waits for the streams, and looks whether the kernels gave up waiting.
func (k *resident) sync(worker int) error {
	if err := k.syncStreams(worker); err != nil {
		return err
	}
	return k.all.Rank(worker).Err()
}
