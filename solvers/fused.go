package solvers

import (
	"errors"
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// fusedScheme implements the schemes in which one kernel a device makes whole steps: it sweeps, stores
// boundary points into the neighbours' ghosts, and waits for theirs. With Fused a launch
// makes a step; with Resident all steps of a round, without the host.
type fusedScheme struct {
	*run
	kind  kernels.StepKind
	parts []*fusedPart
}

// fusedPart is a part with its steps. Where these take the norms on their way, totals is
// the stream on which they are summed, behind the event measured: the next step need not wait.
type fusedPart struct {
	*part
	stepper       *kernels.Stepper
	steps, totals *streams.Stream
	measured      *streams.Event
}

// ErrUnsuited says that a scheme cannot run a problem on the devices it is placed on.
var ErrUnsuited = fmt.Errorf("the scheme does not suit the problem")

func newFusedScheme(r *run, kind kernels.StepKind) (scheme, error) {
	t := &fusedScheme{run: r, kind: kind}
	if err := t.suits(); err != nil {
		return nil, err
	}
	var ranks []kernels.StepRank
	for _, p := range r.parts {
		rank := r.stepRank(p)
		if n := len(rank.Stores); n > kernels.MaxStores {
			return nil, fmt.Errorf("solvers: %w: scheme %s stores into %d boxes of ghosts for each device, and this stencil needs %d", ErrUnsuited, kind, kernels.MaxStores, n)
		}
		ranks = append(ranks, rank)
		if err := t.addPart(p); err != nil {
			return nil, err
		}
	}
	steppers, err := r.compiler.Steppers(kind, r.problem.Stencil, r.problem.Real, ranks, r.patience())
	if err != nil {
		return nil, err
	}
	for i, s := range steppers {
		r.resources.Add(s)
		t.parts[i].stepper = s
		if err := t.takeNorms(t.parts[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *fusedScheme) addPart(p *part) (err error) {
	w := &fusedPart{part: p}
	if w.steps, err = t.newStream(p.device, streams.Normal, "steps"); err != nil {
		return err
	}
	w.totals = w.steps
	t.parts = append(t.parts, w)
	return t.setWalls(p, w.steps)
}

// suits returns ErrUnsuited, with the reason, where devices cannot store into each other's
// ghosts, have several subdomains, or a wall is to be set by the host amid resident steps.
func (t *fusedScheme) suits() error {
	for _, m := range t.plan.Messages {
		d := t.plan.Placement.Devices
		if d[m.From] != d[m.To] && !m.Direct() {
			return fmt.Errorf("solvers: %w: scheme %s stores into ghosts, and device %v sends to %v by path %s", ErrUnsuited, t.kind, d[m.From], d[m.To], m.Path)
		}
	}
	seen := map[*streams.Device]bool{}
	for _, p := range t.run.parts {
		if seen[p.device] {
			return fmt.Errorf("solvers: %w: scheme %s has one subdomain a device, and %v several", ErrUnsuited, t.kind, p.device)
		}
		seen[p.device] = true
		if len(p.walls) > 0 && t.kind == kernels.ResidentSteps {
			return fmt.Errorf("solvers: %w: scheme %s cannot change walls with time", ErrUnsuited, t.kind)
		}
	}
	return nil
}

// takeNorms has the norms of a part taken by its steps on their way, and summed on a stream
// beside them, or where these do not take them from the fields, after a step.
func (t *fusedScheme) takeNorms(p *fusedPart) (err error) {
	if p.stepper.Norms(0) == nil {
		return t.reduceNorms(p.part)
	}
	p.norms = [2]*kernels.NormReduction{p.stepper.Norms(0), p.stepper.Norms(1)}
	if err := t.newEvents(p.device, &p.measured); err != nil {
		return err
	}
	p.totals, err = t.newStream(p.device, streams.Urgent, "norms")
	return err
}

// reduceNorms has the norms of a part taken from its fields, after a step: its sweeps do
// not take them on their way.
func (r *run) reduceNorms(p *part) error {
	reducer, err := r.compiler.NewNormReducer(p.device, r.problem.Real)
	if err != nil {
		return err
	}
	for to := range p.norms {
		dst, src := r.fields[to].Parts[p.rank], r.fields[1-to].Parts[p.rank]
		if p.norms[to], err = reducer.Norms(dst, src, dst.Layout.Owned); err != nil {
			return err
		}
		r.resources.Add(p.norms[to])
	}
	return nil
}

func (t *fusedScheme) workers() [][]int { return eachAlone(len(t.parts)) }
func (t *fusedScheme) assistants()      {}
func (t *fusedScheme) stop(int, int64)  {}
func (t *fusedScheme) queues(rank int) (steps, norms *streams.Stream) {
	return t.parts[rank].steps, t.parts[rank].totals
}

// maxSteps is how many steps a round may have: those of one launch do not fill a queue.
func (t *fusedScheme) maxSteps() int64 {
	if t.kind == kernels.ResidentSteps {
		return 1 << 20
	}
	return maxSteps
}

func (t *fusedScheme) steps(worker int, first, last int64, norms bool) error {
	p := t.parts[worker]
	each := int64(1)
	if t.kind == kernels.ResidentSteps {
		each = last - first + 1
	}
	for n := first; n <= last; n += each {
		p.steps.BeginStep(n)
		if err := t.moveWalls(p.part, p.steps, n); err != nil { // which the step reflects about
			return err
		}
		if err := p.queue(each, norms && n+each > last); err != nil {
			return err
		}
	}
	if norms {
		return p.total(last)
	}
	return nil
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
func (p *fusedPart) total(step int64) error {
	if p.measured != nil {
		p.totals.BeginStep(step)
		if err := errors.Join(p.steps.Record(p.measured), p.totals.Wait(p.measured)); err != nil {
			return err
		}
	}
	return p.norms[step%2].Queue(p.totals)
}

// sync waits for the streams, and looks whether the kernels gave up waiting.
func (t *fusedScheme) sync(worker int) error {
	p := t.parts[worker]
	for _, s := range []*streams.Stream{p.steps, p.totals} {
		if err := s.Sync(t.patience()); err != nil {
			return err
		}
	}
	return p.stepper.Err()
}
