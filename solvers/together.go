package solvers

import (
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// together is the schemes in which one kernel a device makes whole steps: it sweeps, stores
// boundary points into the neighbours' ghosts, and waits for theirs. With Fused a launch
// makes a step; with Resident all steps of a round, without the host.
type together struct {
	*run
	kind     kernels.StepKind
	steppers []*kernels.Stepper
	streams  []*streams.Stream
}

// ErrUnsuited says that a scheme cannot run a problem on the devices it is placed on.
var ErrUnsuited = fmt.Errorf("the scheme does not suit the problem")

func newTogether(r *run, kind kernels.StepKind) (scheme, error) {
	t := &together{run: r, kind: kind}
	if err := t.suits(); err != nil {
		return nil, err
	}
	var ends []kernels.StepEnd
	for _, p := range r.parts {
		end := r.stepEnd(p)
		if n := len(end.Stores); n > kernels.MaxStores {
			return nil, fmt.Errorf("solvers: %w: scheme %s stores into %d boxes of ghosts for each device, and this stencil needs %d", ErrUnsuited, kind, kernels.MaxStores, n)
		}
		ends = append(ends, end)
		s, err := p.device.NewStream(streams.Normal)
		if err != nil {
			return nil, err
		}
		r.Add(s)
		s.SetName("steps")
		t.streams = append(t.streams, s)
		if err := r.setWalls(p, s); err != nil {
			return nil, err
		}
	}
	var err error
	if t.steppers, err = r.compiler.Steppers(kind, r.problem.Stencil, r.problem.Real, ends, r.patience()); err != nil {
		return nil, err
	}
	for i, s := range t.steppers {
		r.Add(s)
		if err := r.takeNorms(r.parts[i], s); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// suits returns ErrUnsuited, with the reason, where devices cannot store into each other's
// ghosts, have several subdomains, or a wall is to be set by the host amid resident steps.
func (t *together) suits() error {
	for _, m := range t.plan.Messages {
		d := t.plan.Placement.Devices
		if d[m.From] != d[m.To] && !m.Direct() {
			return fmt.Errorf("solvers: %w: scheme %s stores into ghosts, and device %v sends to %v by path %s", ErrUnsuited, t.kind, d[m.From], d[m.To], m.Path)
		}
	}
	seen := map[*streams.Device]bool{}
	for _, p := range t.parts {
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

// takeNorms has the norms of a part taken by its steps on their way, or where these do not
// take them from the fields, after a step.
func (r *run) takeNorms(p *part, s *kernels.Stepper) error {
	if s.Norms(0) == nil {
		return r.reduceNorms(p)
	}
	p.norms = [2]*kernels.Reduction{s.Norms(0), s.Norms(1)}
	return nil
}

// reduceNorms has the norms of a part taken from its fields, after a step: its sweeps do
// not take them on their way.
func (r *run) reduceNorms(p *part) error {
	reducer, err := r.compiler.NewReducer(p.device, r.problem.Real)
	if err != nil {
		return err
	}
	for to := range p.norms {
		dst, src := r.fields[to].Parts[p.rank], r.fields[1-to].Parts[p.rank]
		if p.norms[to], err = reducer.Norms(dst, src, dst.Layout.Owned); err != nil {
			return err
		}
		r.Add(p.norms[to])
	}
	return nil
}

func (t *together) workers() [][]int                { return eachAlone(len(t.parts)) }
func (t *together) assistants()                     {}
func (t *together) stop(int, int64)                 {}
func (t *together) stream(rank int) *streams.Stream { return t.streams[rank] }

// most is how many steps a round may have: those of one launch do not fill a queue.
func (t *together) most() int64 {
	if t.kind == kernels.ResidentSteps {
		return 1 << 20
	}
	return mostSteps
}

func (t *together) steps(worker int, first, last int64, norms bool) error {
	p, s := t.parts[worker], t.streams[worker]
	each := int64(1)
	if t.kind == kernels.ResidentSteps {
		each = last - first + 1
	}
	for n := first; n <= last; n += each {
		s.BeginStep(n)
		if err := t.moveWalls(p, s, n); err != nil { // which the step reflects about
			return err
		}
		if err := t.queue(worker, s, each, norms && n+each > last); err != nil {
			return err
		}
	}
	if norms {
		return p.norms[last%2].Queue(s)
	}
	return nil
}

// queue queues steps, with norms of the last where they are wanted and steps take them.
func (t *together) queue(worker int, s *streams.Stream, steps int64, norms bool) error {
	stepper := t.steppers[worker]
	if norms && stepper.Norms(0) != nil {
		return stepper.QueueMeasured(s, steps)
	}
	return stepper.Queue(s, steps)
}

// sync waits for the stream, and looks whether its kernels gave up waiting.
func (t *together) sync(worker int) error {
	if err := t.streams[worker].Sync(t.patience()); err != nil {
		return err
	}
	return t.steppers[worker].Err()
}
