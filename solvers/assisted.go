package solvers

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/halox/halox/streams"
)

// assisted is the scheme of Sourouri et al. (2014): each device has a main
// thread that sweeps on one stream, and for each neighbour an assistant thread
// with a stream to send on and one to receive on. All messages, in both
// directions, move in one phase while the main thread sweeps the interior.
type assisted struct {
	*run
	parts []*assistedPart
}

// assistedPart is a main thread with its assistants.
type assistedPart struct {
	*part
	compute *streams.Stream
	swept   *streams.Signal // the boundary region of a step is swept
	issued  int64           // steps that the main thread has queued
	last    atomic.Int64    // no step comes after this one
	helpers []*assistant
}

// assistant serves one neighbour.
type assistant struct {
	name          string
	out, in       int // messages of the plan
	send, receive *streams.Stream
	arrived       *streams.Signal // the neighbour's message of a step has been put in place
}

func newAssisted(r *run) (scheme, error) {
	a := &assisted{run: r}
	for _, p := range r.parts {
		w := &assistedPart{part: p}
		w.last.Store(math.MaxInt64)
		var err error
		if w.compute, err = r.newStream(p.device, streams.Normal, "compute"); err != nil {
			return nil, err
		}
		if w.swept, err = p.device.NewSignal("subdomain %d on device %v to sweep its boundary", p.rank, p.device); err != nil {
			return nil, err
		}
		r.resources.Add(w.swept)
		for _, out := range p.out {
			h, err := a.newAssistant(p, out)
			if err != nil {
				return nil, err
			}
			w.helpers = append(w.helpers, h)
		}
		a.parts = append(a.parts, w)
	}
	return a, nil
}

// newAssistant makes the assistant for the neighbour that gets message out. It
// receives the message that comes back from there.
func (a *assisted) newAssistant(p *part, out int) (h *assistant, err error) {
	m := a.plan.Messages[out]
	h = &assistant{name: fmt.Sprintf("assistant of subdomain %d for its neighbour in %v", p.rank, m.Dir), out: out, in: -1}
	for _, i := range p.in {
		if back := a.plan.Messages[i]; back.From == m.To && back.Dir == m.Dir.Opposite() {
			h.in = i
		}
	}
	if h.in < 0 {
		return nil, fmt.Errorf("solvers: the message of subdomain %d in %v has none in return", p.rank, m.Dir)
	}
	if h.send, err = a.newStream(p.device, streams.Urgent, "send %v", m.Dir); err != nil {
		return nil, err
	}
	if h.receive, err = a.newStream(p.device, streams.Urgent, "receive %v", m.Dir); err != nil {
		return nil, err
	}
	if h.arrived, err = p.device.NewSignal("the %s", h.name); err != nil {
		return nil, err
	}
	a.resources.Add(h.arrived)
	return h, nil
}

func (a *assisted) workers() [][]int { return eachAlone(len(a.parts)) }
func (a *assisted) queues(rank int) (steps, norms *streams.Stream) {
	return a.parts[rank].compute, a.parts[rank].compute
}

func (a *assisted) maxSteps() int64 { return maxSteps }

func (a *assisted) steps(worker int, first, last int64, norms bool) error {
	return eachStep(first, last, norms, func(n int64, norms bool) error { return a.step(worker, n, norms) })
}

// step is the main thread's part.
func (a *assisted) step(worker int, n int64, norms bool) error {
	p := a.parts[worker]
	to := int(n % 2)
	p.issued = n
	p.compute.BeginStep(n)
	for _, h := range p.helpers {
		if err := h.arrived.Wait(a.group, p.compute, n-1); err != nil {
			return err
		}
	}
	if err := a.completeWalls(p.part, p.compute, n); err != nil {
		return err
	}
	if err := launch(p.compute, p.sweeps(norms).boundary[to]); err != nil {
		return err
	}
	if err := a.refreshWalls(p.part, p.compute, n); err != nil {
		return err
	}
	if err := p.swept.Record(p.compute); err != nil {
		return err
	}
	if err := launch(p.compute, p.sweeps(norms).interior[to]); err != nil {
		return err
	}
	if norms {
		return p.norms[to].Queue(p.compute)
	}
	return nil
}

// stop lets the assistants go: they look up when the boundary of the next step
// is announced, and find that there is no such step.
func (a *assisted) stop(worker int, n int64) {
	p := a.parts[worker]
	p.last.Store(n)
	p.swept.Announce()
}

func (a *assisted) assistants() {
	for _, p := range a.parts {
		for _, h := range p.helpers {
			a.group.Go(h.name, func() error { return a.assist(p, h) })
		}
	}
}

// assist is an assistant's loop: it sends as soon as the boundary region is
// swept, and puts in place what the neighbour sends, on two streams, so that
// neither waits for the other.
func (a *assisted) assist(p *assistedPart, h *assistant) error {
	for n := int64(1); ; n++ {
		if err := p.swept.Await(a.group, n); err != nil {
			return err
		}
		if n > p.last.Load() {
			return nil
		}
		h.send.BeginStep(n)
		h.receive.BeginStep(n)
		if err := p.swept.Wait(a.group, h.send, n); err != nil {
			return err
		}
		if err := a.exchanges[n%2].Transfer(h.out).Send(h.send); err != nil {
			return err
		}
		if err := a.exchanges[n%2].Transfer(h.in).Receive(a.group, h.receive); err != nil {
			return err
		}
		if err := h.arrived.Record(h.receive); err != nil {
			return err
		}
	}
}

func (a *assisted) sync(worker int) error {
	p := a.parts[worker]
	for _, h := range p.helpers {
		if err := h.arrived.Await(a.group, p.issued); err != nil {
			return err
		}
		for _, s := range []*streams.Stream{h.send, h.receive} {
			if err := s.Sync(a.patience()); err != nil {
				return err
			}
		}
	}
	return p.compute.Sync(a.patience())
}
