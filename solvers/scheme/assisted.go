package scheme

import (
	"github.com/halox/halox/streams"
)

// Assisted is the scheme of Sourouri et al. (2014): each device has a main thread that sweeps on one stream,
// and for each neighbor an assistant thread with a stream for sending and one for receiving. All messages, in
// both directions, move in one phase while the main thread sweeps the interior.
const Assisted Scheme = "assisted"

func assistedScheme() *definition {
	return &definition{
		name: Assisted, needs: Needs{Groups: true, Processes: true},
		assistants: (*Runner).neighbors, make: newAssisted,
	}
}

// assisted is the main thread of a subdomain with its assistants.
type assisted struct {
	*assistants
	compute *streams.Stream
}

// neighbors returns the number of assistants of all subdomains.
func (r *Runner) neighbors() (n int) {
	for _, rank := range r.local {
		n += len(r.subdomains[rank].neighbors(r))
	}
	return n
}

func newAssisted(r *run, _ Options) ([]worker, error) {
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	return r.onePerSubdomain(func(d *subdomain) (_ worker, err error) {
		a := &assisted{}
		if a.compute, err = r.newStream(d.device, streams.Normal, "compute"); err != nil {
			return nil, err
		}
		a.assistants, err = r.newAssistants(d, d.neighbors(r.Runner))
		return a, err
	})
}

func (a *assisted) queues() []queue { return []queue{{a.rank, a.compute, a.compute}} }

func (a *assisted) steps(first, last int64, norms bool) error {
	for n := first; n <= last; n++ {
		a.compute.BeginStep(n)
		for stage := range a.step.Stages {
			if err := a.stage(stage, n, norms && n == last); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage is the main thread's part of a stage.
func (a *assisted) stage(stage int, n int64, norms bool) error {
	if _, err := a.await(a.compute, stage, n); err != nil {
		return err
	}
	if err := a.complete(a.subdomain, a.compute, stage, n); err != nil {
		return err
	}
	if err := a.launch(a.compute, a.sweeps(a.run, stage, n, norms).boundary, n); err != nil {
		return err
	}
	if err := a.refresh(a.subdomain, a.compute, stage, n); err != nil {
		return err
	}
	if err := a.giveCredit(a.subdomain, a.compute, stage, n); err != nil {
		return err
	}
	if err := a.announce(a.compute, stage, n); err != nil {
		return err
	}
	if err := a.launch(a.compute, a.sweeps(a.run, stage, n, norms).interior, n); err != nil {
		return err
	}
	if norms && stage == len(a.step.Stages)-1 {
		return a.queueTotals(a.subdomain, a.compute, n)
	}
	return nil
}

func (a *assisted) sync() error {
	if err := a.assistants.sync(); err != nil {
		return err
	}
	return a.syncAll(a.compute)
}
