package solvers

import (
	"fmt"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// twoStream is the scheme that Sourouri et al. (2014) call the state of the
// art: one host thread a device; one stream sweeps the boundary region and
// exchanges it, in two phases one after the other, while another stream sweeps
// the interior.
type twoStream struct {
	*run
	parts []*twoStreamPart
}

// twoStreamPart is what one worker drives. Events alternate, so that one of
// step n is still there to be waited for when step n+1 records its own.
type twoStreamPart struct {
	*part
	boundaryStream, interiorStream *streams.Stream
	swept, inner                   [2]*streams.Event // the two sweeps of a step are done
	phases                         [2]phase
}

// phase is the messages of one phase of the exchange.
type phase struct{ out, in []int }

func newTwoStream(r *run, o Order) (scheme, error) {
	if o != LeftRight && o != Pairwise {
		return nil, fmt.Errorf("solvers: %q is no order of two phases: left-right or pairwise", o)
	}
	t := &twoStream{run: r}
	for _, p := range r.parts {
		w := &twoStreamPart{part: p}
		if err := w.open(r); err != nil {
			return nil, err
		}
		for _, i := range p.out {
			ph := &w.phases[o.phase(r.plan, r.plan.Messages[i])]
			ph.out = append(ph.out, i)
		}
		for _, i := range p.in {
			ph := &w.phases[o.phase(r.plan, r.plan.Messages[i])]
			ph.in = append(ph.in, i)
		}
		t.parts = append(t.parts, w)
	}
	return t, nil
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

func (t *twoStream) workers() [][]int { return eachAlone(len(t.parts)) }
func (t *twoStream) assistants()      {}
func (t *twoStream) stop(int, int64)  {}
func (t *twoStream) queues(rank int) (steps, norms *streams.Stream) {
	return t.parts[rank].interiorStream, t.parts[rank].interiorStream
}

// eachAlone gives every worker one rank.
func eachAlone(n int) [][]int {
	ranks := make([][]int, n)
	for i := range ranks {
		ranks[i] = []int{i}
	}
	return ranks
}

func (t *twoStream) maxSteps() int64 { return maxSteps }

func (t *twoStream) steps(worker int, first, last int64, norms bool) error {
	return eachStep(first, last, norms, func(n int64, norms bool) error { return t.step(worker, n, norms) })
}

func (t *twoStream) step(worker int, n int64, norms bool) error {
	p := t.parts[worker]
	to, before := int(n%2), int((n+1)%2)
	p.boundaryStream.BeginStep(n)
	p.interiorStream.BeginStep(n)
	// Both sweeps read, and overwrite what was read by, both sweeps of the step
	// before.
	if err := p.boundaryStream.Wait(p.inner[before]); err != nil {
		return err
	}
	if err := t.completeWalls(p.part, p.boundaryStream, n); err != nil {
		return err
	}
	if err := launch(p.boundaryStream, p.sweeps(norms).boundary[to]); err != nil {
		return err
	}
	if err := t.refreshWalls(p.part, p.boundaryStream, n); err != nil {
		return err
	}
	if err := p.boundaryStream.Record(p.swept[to]); err != nil {
		return err
	}
	if err := p.interiorStream.Wait(p.swept[before]); err != nil {
		return err
	}
	if err := launch(p.interiorStream, p.sweeps(norms).interior[to]); err != nil {
		return err
	}
	if norms {
		if err := p.interiorStream.Wait(p.swept[to]); err != nil {
			return err
		}
		if err := p.norms[to].Queue(p.interiorStream); err != nil {
			return err
		}
	}
	if err := p.interiorStream.Record(p.inner[to]); err != nil {
		return err
	}
	return t.exchange(p, to)
}

// exchange queues both phases on the boundary stream.
func (t *twoStream) exchange(p *twoStreamPart, field int) error {
	for _, ph := range p.phases {
		for _, i := range ph.out {
			if err := t.exchanges[field].Transfer(i).Send(p.boundaryStream); err != nil {
				return err
			}
		}
		for _, i := range ph.in {
			if err := t.exchanges[field].Transfer(i).Receive(t.group, p.boundaryStream); err != nil {
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
