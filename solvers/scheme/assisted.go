package scheme

import (
	"github.com/halox/halox/streams"
)

// Assisted is the scheme of Sourouri et al. (2014): each device has a main
// thread that sweeps on one stream, and for each neighbour an assistant thread
// with a stream to send on and one to receive on. All messages, in both
// directions, move in one phase while the main thread sweeps the interior.
const Assisted Scheme = "assisted"

func assistedScheme() *definition {
	return &definition{name: Assisted, needs: Needs{Groups: true, Processes: true}, assistants: (*Runner).neighbours, make: newAssisted}
}

type assisted struct {
	*run
	parts []*assistedPart
}

// assistedPart is a main thread with its assistants.
type assistedPart struct {
	*assistants
	compute *streams.Stream
}

// neighbours returns how many assistants the scheme has for all subdomains.
func (x *Runner) neighbours() (n int) {
	for _, rank := range x.local {
		n += len(x.subdomains[rank].neighbours(x))
	}
	return n
}

func newAssisted(r *run, _ Options) (scheme, error) {
	a := &assisted{run: r}
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	for _, rank := range r.local {
		d := r.subdomains[rank]
		w := &assistedPart{}
		var err error
		if w.compute, err = r.newStream(d.device, streams.Normal, "compute"); err != nil {
			return nil, err
		}
		if w.assistants, err = r.newAssistants(d, d.neighbours(r.Runner)); err != nil {
			return nil, err
		}
		a.parts = append(a.parts, w)
	}
	return a, nil
}

func (a *assisted) workers() [][]int { return alone(a.local) }
func (a *assisted) maxQueued() int64 { return maxSteps }
func (a *assisted) queues(rank int) (steps, norms *streams.Stream) {
	p := a.parts[a.workerOf(rank)]
	return p.compute, p.compute
}

func (a *assisted) steps(worker int, first, last int64, norms bool) error {
	p := a.parts[worker]
	for n := first; n <= last; n++ {
		p.compute.BeginStep(n)
		for stage := range a.step.Stages {
			if err := a.stage(p, stage, n, norms && n == last); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage is the main thread's part of a stage.
func (a *assisted) stage(p *assistedPart, stage int, n int64, norms bool) error {
	if _, err := p.await(p.compute, stage, n); err != nil {
		return err
	}
	if err := a.complete(p.subdomain, p.compute, stage, n); err != nil {
		return err
	}
	if err := a.launch(p.compute, p.sweeps(a.run, stage, n, norms).boundary, n); err != nil {
		return err
	}
	if err := a.refresh(p.subdomain, p.compute, stage, n); err != nil {
		return err
	}
	if err := a.giveCredit(p.subdomain, p.compute, stage, n); err != nil {
		return err
	}
	if err := p.announce(p.compute, stage, n); err != nil {
		return err
	}
	if err := a.launch(p.compute, p.sweeps(a.run, stage, n, norms).interior, n); err != nil {
		return err
	}
	if norms && stage == len(a.step.Stages)-1 {
		return a.queueTotals(p.subdomain, p.compute, n)
	}
	return nil
}

func (a *assisted) stop(worker int, n int64) { a.parts[worker].stop(n) }

func (a *assisted) assistants() {
	for _, p := range a.parts {
		p.start()
	}
}

func (a *assisted) sync(worker int) error {
	if err := a.parts[worker].sync(); err != nil {
		return err
	}
	return a.parts[worker].compute.Sync(a.patience())
}
