package scheme

import (
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// TwoStream is the scheme that Sourouri et al. (2014) call the state of the
// art: one host thread a device; one stream sweeps the boundary region and
// exchanges it, in two phases one after the other, while another stream sweeps
// the interior.
const TwoStream Scheme = "two-stream"

func twoStreamScheme() *definition {
	return &definition{name: TwoStream, needs: Needs{Orders: []Order{LeftRight, Pairwise}, Groups: true, Processes: true}, assistants: none, make: newTwoStream}
}

type twoStream struct {
	*run
	parts []*twoStreamPart
}

// twoStreamPart is what one worker drives. Events alternate, so that one of
// a stage is still there to be waited for when the next records its own.
type twoStreamPart struct {
	*subdomain
	boundaryStream, interiorStream *streams.Stream
	swept, inner                   [2]*streams.Event // the two sweeps of a stage are done
	phases                         [][2]exchangePhase
}

// exchangePhase is the messages of one phase of the exchange after a stage.
type exchangePhase struct{ out, in []int }

func newTwoStream(r *run, o Options) (scheme, error) {
	t := &twoStream{run: r}
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	for _, rank := range r.local {
		d := r.subdomains[rank]
		w := &twoStreamPart{subdomain: d, phases: make([][2]exchangePhase, len(r.step.Stages))}
		if err := w.open(r); err != nil {
			return nil, err
		}
		for stage := range r.step.Stages {
			w.divide(r, stage, o.Order)
		}
		t.parts = append(t.parts, w)
	}
	return t, nil
}

// divide divides the messages of a stage into two phases.
func (w *twoStreamPart) divide(r *run, stage int, o Order) {
	for _, i := range w.out[stage] {
		p := &w.phases[stage][o.phase(r.plans[stage], r.plans[stage].Messages[i])]
		p.out = append(p.out, i)
	}
	for _, i := range w.in[stage] {
		p := &w.phases[stage][o.phase(r.plans[stage], r.plans[stage].Messages[i])]
		p.in = append(p.in, i)
	}
}

// open makes the streams and events.
func (w *twoStreamPart) open(r *run) (err error) {
	if w.boundaryStream, err = r.newStream(w.device, streams.Urgent, "boundary"); err != nil {
		return err
	}
	if w.interiorStream, err = r.newStream(w.device, streams.Normal, "interior"); err != nil {
		return err
	}
	return r.newEvents(w.device, &w.swept[0], &w.inner[0], &w.swept[1], &w.inner[1])
}

// phase returns 0 or 1 for a message. Within a pair of neighbours, pairwise
// looks at the lower one's place along their axis; around an odd ring two
// pairs of the same phase share a device.
func (o Order) phase(plan *halo.Plan, m halo.Message) int {
	if o == LeftRight {
		if m.Dir.Positive() {
			return 0
		}
		return 1
	}
	lower := m.From
	if !m.Dir.Positive() {
		lower = m.To
	}
	axis := 0 // of edges and corners the first along which they differ
	for m.Dir[axis] == 0 {
		axis++
	}
	return plan.Placement.Subdomains[lower].Coord[axis] % 2
}

func (t *twoStream) workers() [][]int { return alone(t.local) }
func (t *twoStream) assistants()      {}
func (t *twoStream) stop(int, int64)  {}
func (t *twoStream) maxQueued() int64 { return maxSteps }
func (t *twoStream) queues(rank int) (steps, norms *streams.Stream) {
	p := t.parts[t.workerOf(rank)]
	return p.interiorStream, p.interiorStream
}

func (t *twoStream) steps(worker int, first, last int64, norms bool) error {
	p := t.parts[worker]
	for n := first; n <= last; n++ {
		p.boundaryStream.BeginStep(n)
		p.interiorStream.BeginStep(n)
		for stage := range t.step.Stages {
			if err := t.stage(p, stage, n, norms && n == last); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage queues a stage of a step. Both its sweeps read, and overwrite what was read by, both
// sweeps of the stage before.
func (t *twoStream) stage(p *twoStreamPart, stage int, n int64, norms bool) error {
	now := int(t.substep(n, stage) % 2)
	if err := t.boundary(p, stage, n, norms, now); err != nil {
		return err
	}
	if !norms && !t.sends(stage, n) {
		return nil // all of the stage is boundary region
	}
	if err := p.interiorStream.Wait(p.swept[1-now]); err != nil {
		return err
	}
	if err := t.launch(p.interiorStream, p.sweeps(t.run, stage, n, norms).interior, n); err != nil {
		return err
	}
	if norms && stage == len(t.step.Stages)-1 {
		if err := p.interiorStream.Wait(p.swept[now]); err != nil {
			return err
		}
		if err := t.queueTotals(p.subdomain, p.interiorStream, n); err != nil {
			return err
		}
	}
	if err := p.interiorStream.Record(p.inner[now]); err != nil {
		return err
	}
	return t.send(p, stage, n)
}

// boundary queues the sweep of the boundary region.
func (t *twoStream) boundary(p *twoStreamPart, stage int, n int64, norms bool, now int) error {
	if err := p.boundaryStream.Wait(p.inner[1-now]); err != nil {
		return err
	}
	if err := t.complete(p.subdomain, p.boundaryStream, stage, n); err != nil {
		return err
	}
	if err := t.launch(p.boundaryStream, p.sweeps(t.run, stage, n, norms).boundary, n); err != nil {
		return err
	}
	if err := t.refresh(p.subdomain, p.boundaryStream, stage, n); err != nil {
		return err
	}
	if err := t.giveCredit(p.subdomain, p.boundaryStream, stage, n); err != nil {
		return err
	}
	return p.boundaryStream.Record(p.swept[now])
}

// send queues both phases of the exchange on the boundary stream.
func (t *twoStream) send(p *twoStreamPart, stage int, n int64) error {
	if !t.sends(stage, n) {
		return nil
	}
	for _, phase := range p.phases[stage] {
		for _, i := range phase.out {
			if err := t.takeCredit(p.boundaryStream, stage, i, n); err != nil {
				return err
			}
			if err := t.exchange(stage, n).Transfer(i).Send(p.boundaryStream); err != nil {
				return err
			}
		}
		for _, i := range phase.in {
			if err := t.exchange(stage, n).Transfer(i).Receive(t.run.workers, p.boundaryStream); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *twoStream) sync(worker int) error {
	if err := t.parts[worker].boundaryStream.Sync(t.patience()); err != nil {
		return err
	}
	return t.parts[worker].interiorStream.Sync(t.patience())
}
