package scheme

import (
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// TwoStream is the scheme that Sourouri et al. (2014) call the state of the art: one host thread per device;
// one stream sweeps the boundary region and exchanges it, in two consecutive phases, while another stream
// sweeps the interior.
const TwoStream Scheme = "two-stream"

func twoStreamScheme() *definition {
	return &definition{
		name:  TwoStream,
		needs: Needs{Orders: []Order{LeftRight, Pairwise}, Groups: true, Processes: true},
		make:  newTwoStream,
	}
}

// twoStream drives one subdomain. Events alternate, so that a stage's event can still be waited for when the
// next stage records its own.
type twoStream struct {
	*run
	*subdomain
	boundaryStream, interiorStream *streams.Stream
	swept, inner                   [2]*streams.Event // the two sweeps of a stage have finished
	phases                         [][2]exchangePhase
}

// exchangePhase is the messages of one phase of the exchange after a stage.
type exchangePhase struct{ out, in []int }

func newTwoStream(r *run, o Options) ([]worker, error) {
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	return r.onePerSubdomain(func(d *subdomain) (worker, error) {
		t := &twoStream{run: r, subdomain: d, phases: make([][2]exchangePhase, len(r.step.Stages))}
		for stage := range r.step.Stages {
			t.divide(stage, o.Order)
		}
		return t, t.open()
	})
}

// divide divides the messages of a stage into two phases.
func (t *twoStream) divide(stage int, o Order) {
	messages := t.messagesOf(stage)
	for _, i := range t.out[stage] {
		p := &t.phases[stage][o.phase(t.place, messages[i])]
		p.out = append(p.out, i)
	}
	for _, i := range t.in[stage] {
		p := &t.phases[stage][o.phase(t.place, messages[i])]
		p.in = append(p.in, i)
	}
}

// open makes the streams and events.
func (t *twoStream) open() (err error) {
	if t.boundaryStream, err = t.newStream(t.device, streams.Urgent, "boundary"); err != nil {
		return err
	}
	if t.interiorStream, err = t.newStream(t.device, streams.Normal, "interior"); err != nil {
		return err
	}
	return t.newEvents(t.device, &t.swept[0], &t.inner[0], &t.swept[1], &t.inner[1])
}

// phase returns 0 or 1 for a message. For Pairwise it depends on the lower neighbor's position along their
// axis; in a ring of odd length two pairs of the same phase share a device.
func (o Order) phase(place *halo.Placement, m halo.Message) int {
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
	axis := 0 // for edges and corners the first one along which they differ
	for m.Dir[axis] == 0 {
		axis++
	}
	return place.Subdomains[lower].Coord[axis] % 2
}

func (t *twoStream) queues() []queue { return []queue{{t.rank, t.interiorStream, t.interiorStream}} }

func (t *twoStream) steps(first, last int64, norms bool) error {
	for n := first; n <= last; n++ {
		t.boundaryStream.BeginStep(n)
		t.interiorStream.BeginStep(n)
		for stage := range t.step.Stages {
			if err := t.stage(stage, n, norms && n == last); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage queues a stage of a step. Both its sweeps read, and overwrite points read by, both sweeps of the
// previous stage.
func (t *twoStream) stage(stage int, n int64, norms bool) error {
	now := int(t.substep(n, stage) % 2)
	if err := t.boundary(stage, n, norms, now); err != nil {
		return err
	}
	if !norms && !t.sends(stage, n) {
		return nil // the whole stage is boundary region
	}
	if err := t.interiorStream.Wait(t.swept[1-now]); err != nil {
		return err
	}
	if err := t.launch(t.interiorStream, t.sweeps(t.run, stage, n, norms).interior, n); err != nil {
		return err
	}
	if norms && stage == len(t.step.Stages)-1 {
		if err := t.interiorStream.Wait(t.swept[now]); err != nil {
			return err
		}
		if err := t.queueTotals(t.subdomain, t.interiorStream, n); err != nil {
			return err
		}
	}
	if err := t.interiorStream.Record(t.inner[now]); err != nil {
		return err
	}
	return t.send(stage, n)
}

// boundary queues the sweep of the boundary region.
func (t *twoStream) boundary(stage int, n int64, norms bool, now int) error {
	if err := t.boundaryStream.Wait(t.inner[1-now]); err != nil {
		return err
	}
	if err := t.complete(t.subdomain, t.boundaryStream, stage, n); err != nil {
		return err
	}
	if err := t.launch(t.boundaryStream, t.sweeps(t.run, stage, n, norms).boundary, n); err != nil {
		return err
	}
	if err := t.refresh(t.subdomain, t.boundaryStream, stage, n); err != nil {
		return err
	}
	if err := t.giveCredit(t.in[stage], t.boundaryStream, stage, n); err != nil {
		return err
	}
	return t.boundaryStream.Record(t.swept[now])
}

// send queues both phases of the exchange on the boundary stream.
func (t *twoStream) send(stage int, n int64) error {
	if !t.sends(stage, n) {
		return nil
	}
	x := t.exchange(stage, n)
	for _, phase := range t.phases[stage] {
		if err := t.sendAll(x, t.boundaryStream, stage, n, phase.out); err != nil {
			return err
		}
		if err := t.receiveAll(x, t.boundaryStream, phase.in); err != nil {
			return err
		}
	}
	return nil
}

func (t *twoStream) sync() error { return t.syncAll(t.boundaryStream, t.interiorStream) }
