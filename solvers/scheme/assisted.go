package scheme

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/halox/halox/domain"
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
	*subdomain
	compute    *streams.Stream
	swept      *streams.Signal // the boundary region of a stage is swept
	issued     int64           // exchanges that the main thread has begun
	last       atomic.Int64    // no stage comes after this one
	assistants []*assistant
}

// assistant serves one neighbour.
type assistant struct {
	name          string
	out, in       [][]int // messages by stage
	send, receive *streams.Stream
	uncredited    []bool          // by stage: a message of another process comes that would need credit, see remoteWithoutCredit
	sent          *streams.Event  // the messages of a stage have left
	arrived       *streams.Signal // the neighbour's messages of a stage have been put in place, and where covers says so those to it have left
}

// neighbours returns how many assistants the scheme has for all subdomains.
func (x *Runner) neighbours() (n int) {
	for _, rank := range x.local {
		n += len(x.subdomains[rank].neighbours(x))
	}
	return n
}

// neighbours lists those that a subdomain sends to or receives from, in the order of its messages.
// Messages from one neighbour must be put in place in order.
func (d *subdomain) neighbours(x *Runner) (all []int) {
	add := func(rank int) {
		if !slices.Contains(all, rank) {
			all = append(all, rank)
		}
	}
	for stage, plan := range x.plans {
		for _, i := range d.out[stage] {
			add(plan.Messages[i].To)
		}
		for _, i := range d.in[stage] {
			add(plan.Messages[i].From)
		}
	}
	return all
}

func newAssisted(r *run, _ Options) (scheme, error) {
	a := &assisted{run: r}
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	for _, rank := range r.local {
		d := r.subdomains[rank]
		w := &assistedPart{subdomain: d}
		w.last.Store(math.MaxInt64)
		var err error
		if w.compute, err = r.newStream(d.device, streams.Normal, "compute"); err != nil {
			return nil, err
		}
		if w.swept, err = d.device.NewSignal("subdomain %d on device %v to sweep its boundary", d.rank, d.device); err != nil {
			return nil, err
		}
		r.resources.Add(w.swept)
		for _, neighbour := range d.neighbours(r.Runner) {
			h, err := a.newAssistant(d, neighbour)
			if err != nil {
				return nil, err
			}
			w.assistants = append(w.assistants, h)
		}
		a.parts = append(a.parts, w)
	}
	return a, nil
}

// newAssistant makes the assistant for a neighbour.
func (a *assisted) newAssistant(d *subdomain, neighbour int) (h *assistant, err error) {
	h = &assistant{
		name: fmt.Sprintf("assistant of subdomain %d for its neighbour %d in %v", d.rank, neighbour, a.towards(d, neighbour)),
		out:  make([][]int, len(a.plans)), in: make([][]int, len(a.plans)), uncredited: make([]bool, len(a.plans)),
	}
	for stage, plan := range a.plans {
		for _, i := range d.out[stage] {
			if plan.Messages[i].To == neighbour {
				h.out[stage] = append(h.out[stage], i)
			}
		}
		for _, i := range d.in[stage] {
			if plan.Messages[i].From == neighbour {
				h.in[stage] = append(h.in[stage], i)
				h.uncredited[stage] = h.uncredited[stage] || a.remoteWithoutCredit(stage, i)
			}
		}
	}
	if h.send, err = a.newStream(d.device, streams.Urgent, "send %v", a.towards(d, neighbour)); err != nil {
		return nil, err
	}
	if h.receive, err = a.newStream(d.device, streams.Urgent, "receive %v", a.towards(d, neighbour)); err != nil {
		return nil, err
	}
	if h.arrived, err = d.device.NewSignal("the %s", h.name); err != nil {
		return nil, err
	}
	a.resources.Add(h.arrived)
	return h, a.newEvents(d.device, &h.sent)
}

// towards returns the direction in which a neighbour lies, one of them if it does in several.
func (a *assisted) towards(d *subdomain, neighbour int) domain.Direction {
	for stage, plan := range a.plans {
		for _, i := range d.out[stage] {
			if plan.Messages[i].To == neighbour {
				return plan.Messages[i].Dir
			}
		}
		for _, i := range d.in[stage] {
			if plan.Messages[i].From == neighbour {
				return plan.Messages[i].Dir.Opposite()
			}
		}
	}
	return domain.Direction{}
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
	if err := a.await(p, stage, n); err != nil {
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
	if a.sends(stage, n) {
		if err := p.swept.Record(p.compute); err != nil {
			return err
		}
		p.issued = a.exchangesTo(stage, n)
	}
	if err := a.launch(p.compute, p.sweeps(a.run, stage, n, norms).interior, n); err != nil {
		return err
	}
	if norms && stage == len(a.step.Stages)-1 {
		return a.queueTotals(p.subdomain, p.compute, n)
	}
	return nil
}

// await lets the compute stream wait for what was sent before a stage, where something was.
func (a *assisted) await(p *assistedPart, stage int, n int64) error {
	if before, step := a.stageBefore(stage); !a.sends(before, n+step) {
		return nil
	}
	for _, h := range p.assistants {
		if err := h.arrived.Wait(a.run.workers, p.compute, p.issued); err != nil {
			return err
		}
	}
	return nil
}

// stop lets the assistants go: they look up when the boundary of the next stage
// is announced, and find that there is no such stage.
func (a *assisted) stop(worker int, n int64) {
	p := a.parts[worker]
	p.last.Store(a.exchangesTo(len(a.step.Stages)-1, n))
	p.swept.Announce()
}

func (a *assisted) assistants() {
	for _, p := range a.parts {
		for _, h := range p.assistants {
			a.run.workers.Go(h.name, func() error { return a.assist(p, h) })
		}
	}
}

// assist is an assistant's loop: it sends as soon as the boundary region is
// swept, and puts in place what the neighbour sends, on two streams, so that
// neither waits for the other.
func (a *assisted) assist(p *assistedPart, h *assistant) error {
	for n := int64(1); ; n++ {
		for stage := range a.step.Stages {
			if !a.sends(stage, n) {
				continue
			}
			now := a.exchangesTo(stage, n)
			if err := p.swept.Await(a.run.workers, now); err != nil {
				return err
			}
			if now > p.last.Load() {
				return nil
			}
			if err := a.assistStage(p, h, stage, n); err != nil {
				return err
			}
		}
	}
}

// assistStage sends and receives the messages of one stage.
func (a *assisted) assistStage(p *assistedPart, h *assistant, stage int, n int64) error {
	h.send.BeginStep(n)
	h.receive.BeginStep(n)
	if err := p.swept.Wait(a.run.workers, h.send, a.exchangesTo(stage, n)); err != nil {
		return err
	}
	for _, i := range h.out[stage] {
		if err := a.takeCredit(h.send, stage, i, n); err != nil {
			return err
		}
		if err := a.exchange(stage, n).Transfer(i).Send(h.send); err != nil {
			return err
		}
	}
	if a.covers(len(h.out[stage]), len(h.in[stage])) {
		if err := h.send.Record(h.sent); err != nil {
			return err
		}
		if err := h.receive.Wait(h.sent); err != nil {
			return err
		}
	}
	if h.uncredited[stage] {
		if err := p.swept.Wait(a.run.workers, h.receive, a.exchangesTo(stage, n)); err != nil {
			return err
		}
	}
	for _, i := range h.in[stage] {
		if err := a.exchange(stage, n).Transfer(i).Receive(a.run.workers, h.receive); err != nil {
			return err
		}
	}
	return h.arrived.Record(h.receive)
}

func (a *assisted) sync(worker int) error {
	p := a.parts[worker]
	for _, h := range p.assistants {
		if err := h.arrived.Await(a.run.workers, p.issued); err != nil {
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
