package scheme

import (
	"errors"
	"fmt"

	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// Fused and Resident are the schemes in which one kernel a device makes whole steps: it sweeps,
// stores boundary points into the neighbours' ghosts, and waits for theirs. With Fused a launch
// makes a step; with Resident all steps of a round, without the host.
const (
	Fused    Scheme = "fused"
	Resident Scheme = "resident"
)

func fusedScheme() *definition {
	return &definition{
		name: Fused, needs: Needs{Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, Swept: true},
		assistants: none,
		unfit:      unfusedSteps,
		make: func(r *run, _ Options) (scheme, error) {
			if r.step.Stages[0].Point != nil {
				return newFusedPoints(r)
			}
			return newFused(r, Fused, kernels.FusedStep)
		},
	}
}

func residentScheme() *definition {
	return &definition{
		name: Resident, needs: Needs{Paths: []p2p.Path{p2p.Direct}, Path: p2p.Direct, OnePerDevice: true, Swept: true, Steady: true},
		assistants: none, unfit: unfusedSteps,
		make: func(r *run, _ Options) (scheme, error) {
			if r.step.Stages[0].Point != nil {
				return newResidentPoints(r)
			}
			return newFused(r, Resident, kernels.ResidentSteps)
		},
	}
}

// fused is both schemes.
type fused struct {
	*run
	kind  kernels.StepKind
	parts []*fusedPart
}

// fusedPart is a subdomain with its steps. Where these take the norms on their way, totals is
// the stream on which they are summed, behind the event measured: the next step need not wait.
type fusedPart struct {
	*subdomain
	stepper       *kernels.Stepper
	steps, totals *streams.Stream
	measured      *streams.Event
}

// unfusedSteps returns an error for steps that kernels which store into ghosts cannot make.
func unfusedSteps(x *Runner) error {
	if x.step.Stages[0].Point != nil {
		return unfusedPoints(x)
	}
	return unfused(x)
}

// unfused returns an error for steps that one kernel cannot make.
func unfused(x *Runner) error {
	st := x.step.Stages[0]
	if len(x.step.Stages) > 1 || st.Linear == nil || st.Writes[0].Variable != st.Reads[0].Variable || st.Writes[0].Variable.Levels() != 2 {
		return fmt.Errorf("makes steps of one stage that leads from one level of a variable to the next")
	}
	for _, d := range x.subdomains {
		stores, ok := x.stores(d)
		if !ok {
			return fmt.Errorf("stores into ghosts, and a boundary of %q has a kernel of its own", st.Writes[0].Variable.Spec.Name)
		}
		if len(stores) > kernels.MaxStores {
			return fmt.Errorf("stores into %d boxes of ghosts for each device, and this stencil needs %d", kernels.MaxStores, len(stores))
		}
	}
	return nil
}

// stores returns what a subdomain stores into ghosts in a step of one stage.
func (x *Runner) stores(d *subdomain) ([]kernels.GhostStore, bool) {
	v := x.step.Stages[0].Writes[0].Variable
	if x.plans[0] == nil {
		return nil, true
	}
	return x.ghosts[v][0].Stores(d.rank, x.plans[0], 0, 0)
}

func newFused(r *run, name Scheme, kind kernels.StepKind) (scheme, error) {
	f := &fused{run: r, kind: kind}
	var ends []kernels.StepRank
	for _, d := range r.subdomains {
		stores, _ := r.stores(d)
		ends = append(ends, f.end(d, stores))
		if err := f.addPart(d); err != nil {
			return nil, err
		}
	}
	st := r.step.Stages[0]
	steppers, err := r.compiler.Steppers(kind, *st.Linear, st.real(), ends, r.patience())
	if err != nil {
		return nil, err
	}
	for i, s := range steppers {
		r.resources.Add(s)
		f.parts[i].stepper = s
		if err := f.takeNorms(f.parts[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// end returns what a subdomain does in a step: its messages become stores, and so do the ghosts
// behind physical faces that change from step to step.
func (f *fused) end(d *subdomain, stores []kernels.GhostStore) kernels.StepRank {
	v := f.step.Stages[0].Writes[0].Variable
	end := kernels.StepRank{Device: d.device, Shape: d.shape, Stores: stores}
	for i := range end.Fields { // step n writes field n%2
		end.Fields[i] = v.Level(f.done + int64(i)).Parts[d.rank]
	}
	end.Boundary, end.Interior = f.Boxes(0, d.rank)
	return end
}

func (f *fused) addPart(d *subdomain) (err error) {
	w := &fusedPart{subdomain: d}
	if w.steps, err = f.newStream(d.device, streams.Normal, "steps"); err != nil {
		return err
	}
	w.totals = w.steps
	f.parts = append(f.parts, w)
	return nil
}

// takeNorms has the norms of a subdomain taken by its steps on their way, and summed on a stream
// beside them, or where these do not take them from the fields, after a step.
func (f *fused) takeNorms(p *fusedPart) (err error) {
	if p.stepper.Norms(0) == nil || len(f.step.Measured) == 0 {
		return f.measureAll(p.subdomain)
	}
	p.subdomain.totals = make([][]total, f.period)
	for i := range 2 {
		p.subdomain.totals[f.phase(int64(i))] = []total{normTotal{p.stepper.Norms(i), 0}}
	}
	if err := f.newEvents(p.device, &p.measured); err != nil {
		return err
	}
	p.totals, err = f.newStream(p.device, streams.Urgent, "norms")
	return err
}

func (f *fused) workers() [][]int { return alone(len(f.parts)) }
func (f *fused) assistants()      {}
func (f *fused) stop(int, int64)  {}
func (f *fused) queues(rank int) (steps, norms *streams.Stream) {
	return f.parts[rank].steps, f.parts[rank].totals
}

// maxQueued is how many steps a round may have: those of one launch do not fill a queue.
func (f *fused) maxQueued() int64 {
	if f.kind == kernels.ResidentSteps {
		return 1 << 20
	}
	return maxSteps
}

func (f *fused) steps(worker int, first, last int64, norms bool) error {
	p := f.parts[worker]
	each := int64(1)
	if f.kind == kernels.ResidentSteps {
		each = last - first + 1
	}
	for n := first; n <= last; n += each {
		p.steps.BeginStep(n)
		if err := f.move(p, n); err != nil {
			return err
		}
		if err := p.queue(each, norms && n+each > last); err != nil {
			return err
		}
	}
	if norms {
		return f.total(p, last)
	}
	return nil
}

// move queues the values of profiles, which the step reflects about.
func (f *fused) move(p *fusedPart, n int64) error {
	return f.eachWritten(0, n, func(g *boundary.Ghosts) error { return g.Move(p.rank, p.steps, f.done+n, f.time(n)) })
}

// queue queues steps, with norms of the last where they are wanted and steps take them.
func (p *fusedPart) queue(steps int64, norms bool) error {
	if norms && p.measured != nil {
		return p.stepper.QueueMeasured(p.steps, steps)
	}
	return p.stepper.Queue(p.steps, steps)
}

// total queues the reduction of the norms of the step that was queued last. What the step has
// left for it on its way stays until the norms of the next but one, which the host does not
// queue before it has looked at these.
func (f *fused) total(p *fusedPart, step int64) error {
	if p.measured != nil {
		p.totals.BeginStep(step)
		if err := errors.Join(p.steps.Record(p.measured), p.totals.Wait(p.measured)); err != nil {
			return err
		}
	}
	return f.queueTotals(p.subdomain, p.totals, step)
}

// sync waits for the streams, and looks whether the kernels gave up waiting.
func (f *fused) sync(worker int) error {
	p := f.parts[worker]
	for _, s := range []*streams.Stream{p.steps, p.totals} {
		if err := s.Sync(f.patience()); err != nil {
			return err
		}
	}
	return p.stepper.Err()
}
