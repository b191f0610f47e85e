package scheme

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// A message overwrites ghosts. Its sender must know that the receiver has read them (at the latest in its
// sweep of the boundary region in the stage before) and that the message which brought them has been
// unpacked. If the receiver sends a message in the opposite direction in the stage before, and no message of
// that stage updates the same ghosts, the sender knows, since it waits for that message before it sweeps. For
// other messages the receiver gives credit: it records a signal after its own sweep in the same stage, and
// the sender waits for it.

// stageBefore returns the previous stage, and its step relative to this one.
func (r *Runner) stageBefore(stage int) (before int, step int64) {
	if stage == 0 {
		return len(r.step.Stages) - 1, -1
	}
	return stage - 1, 0
}

// needsCredit reports whether no message in the opposite direction shows that the ghosts which a message
// updates are free. After a group of steps none does: the last one arrived before the group.
func (r *Runner) needsCredit(stage, message int) bool {
	if r.step.group() > 1 {
		return true // nothing was sent in the previous steps
	}
	before, step := r.stageBefore(stage)
	if r.plans[before] == nil || r.sendsAgain(stage, before, step) {
		return true
	}
	m := r.plans[stage].Messages[message]
	for _, back := range r.plans[before].Messages {
		if back.From == m.To && back.To == m.From {
			return false
		}
	}
	return true
}

// sendsAgain reports whether a stage sends a field that the previous stage has sent.
func (r *Runner) sendsAgain(stage, before int, step int64) bool {
	for _, now := range r.step.sent(stage) {
		for _, last := range r.step.sent(before) {
			if now.Variable == last.Variable && now.slot(1) == last.slot(1+step) {
				return true
			}
		}
	}
	return false
}

// remoteWithoutCredit reports whether a message that would need credit comes from another process, which
// sends it at any time, into a separate buffer. It is unpacked only after the receiver's sweep.
func (r *Runner) remoteWithoutCredit(stage, message int) bool {
	return !r.place.IsLocal(r.plans[stage].Messages[message].From) && r.needsCredit(stage, message)
}

// makeCredits makes the signals of messages within the process that need credit.
func (r *run) makeCredits() error {
	r.credits = make([]map[int]*streams.Signal, len(r.step.Stages))
	for stage := range r.step.Stages {
		r.credits[stage] = map[int]*streams.Signal{}
		for i, m := range r.messagesOf(stage) {
			if !r.place.IsLocal(m.From) || !r.place.IsLocal(m.To) || !r.needsCredit(stage, i) {
				continue
			}
			d := r.place.Devices[m.To]
			s, err := d.NewSignal("subdomain %d on device %v to read its ghosts", m.To, d)
			if err != nil {
				return err
			}
			r.resources.Add(s)
			r.credits[stage][i] = s
		}
	}
	return nil
}

// giveCredit records, on the stream of a receiver after its sweep of the boundary region of a stage, that the
// ghosts which some of the stage's messages update are free. There are no credits if all messages come from
// other processes.
func (r *run) giveCredit(messages []int, s *streams.Stream, stage int, n int64) error {
	if r.credits == nil || !r.sends(stage, n) {
		return nil
	}
	for _, i := range messages {
		if c := r.credits[stage][i]; c != nil {
			if err := c.Record(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeCredit makes the stream of a sender wait until the ghosts that a message updates are free. There are no
// credits if all messages go to other processes.
func (r *run) takeCredit(s *streams.Stream, stage, message int, n int64) error {
	if r.credits == nil {
		return nil
	}
	if c := r.credits[stage][message]; c != nil {
		return c.Wait(r.threads, s, r.exchangesUpTo(n))
	}
	return nil
}

// sendAll queues messages of a stage of step n, each after its ghosts are free.
func (r *run) sendAll(x *halo.Exchanger, s *streams.Stream, stage int, n int64, messages []int) error {
	for _, i := range messages {
		if err := r.takeCredit(s, stage, i, n); err != nil {
			return err
		}
		if err := x.Transfer(i).Send(s); err != nil {
			return err
		}
	}
	return nil
}

// receiveAll queues the receives of messages.
func (r *run) receiveAll(x *halo.Exchanger, s *streams.Stream, messages []int) error {
	for _, i := range messages {
		if err := x.Transfer(i).Receive(r.threads, s); err != nil {
			return err
		}
	}
	return nil
}

// covers reports whether a following stage must wait until the messages of this one have left before it
// overwrites their points. With a single stage, which alternates between the fields of its variables, it need
// not if the neighbor sends too: the neighbor's message of the step in between shows that it has received
// this one.
func (r *Runner) covers(out, in int) bool {
	return out > 0 && (len(r.step.Stages) > 1 || in == 0 || r.step.group() > 1)
}

// assistants are the threads that serve the neighbors of a subdomain, one each, while the main thread sweeps.
type assistants struct {
	*run
	*subdomain
	begun  *streams.Signal // the main thread lets the assistants begin a stage, see announce
	issued int64           // number of exchanges begun by the main thread
	norms  bool            // the sweeps of the exchange that was begun last take norms
	last   atomic.Int64    // the last stage
	all    []*assistant
}

// assistant serves one neighbor. Two of its streams may be one: then nothing waits between them.
type assistant struct {
	name                   string
	neighbor               int
	out, in                [][]int // messages by stage
	compute, send, receive *streams.Stream
	behindSweep            []bool         // by stage: received after the sweep of the boundary region
	sent                   *streams.Event // the messages of a stage have left
	// the neighbor's messages of a stage have been received and, if covers says so, those to it have left
	arrived *streams.Signal

	// The part of the boundary region that the assistant sweeps. Without a stream for it there is none: the
	// main thread sweeps all.
	part  [2][][]Launch   // without norms and with them, by phase, then by stage; nil without points
	swept *streams.Signal // the part of a stage has been swept
	// assistants, including itself, whose parts contain points that are sent to the neighbor, or read ghosts
	// that come from it
	partners []*assistant
	reads    []*assistant // assistants whose neighbors send ghosts that the part reads
}

// neighbors lists the neighbors that a subdomain sends to or receives from, in the order of its messages.
// Messages from one neighbor must be received in order.
func (s *subdomain) neighbors(r *Runner) (all []int) {
	add := func(rank int) {
		if !slices.Contains(all, rank) {
			all = append(all, rank)
		}
	}
	for stage, plan := range r.plans {
		for _, i := range s.out[stage] {
			add(plan.Messages[i].To)
		}
		for _, i := range s.in[stage] {
			add(plan.Messages[i].From)
		}
	}
	return all
}

// newAssistants makes an assistant for each of some neighbors of a subdomain; parts is true if they sweep the
// boundary region.
func (r *run) newAssistants(d *subdomain, neighbors []int, parts bool) (a *assistants, err error) {
	a = &assistants{run: r, subdomain: d}
	a.begun, err = d.device.NewSignal("subdomain %d on device %v to begin a stage", d.rank, d.device)
	if err != nil {
		return nil, err
	}
	r.resources.Add(a.begun)
	for _, neighbor := range neighbors {
		h, err := a.newAssistant(neighbor, parts)
		if err != nil {
			return nil, err
		}
		a.all = append(a.all, h)
	}
	return a, nil
}

// newAssistant makes the assistant for a neighbor, named after one of the directions to it.
func (a *assistants) newAssistant(neighbor int, parts bool) (h *assistant, err error) {
	d, towards, stages, stored := a.subdomain, domain.Direction{}, len(a.plans), true
	h = &assistant{neighbor: neighbor, out: make([][]int, stages), in: make([][]int, stages),
		behindSweep: make([]bool, stages)}
	for stage := range a.plans {
		messages := a.messagesOf(stage)
		for _, i := range d.out[stage] {
			if m := messages[i]; m.To == neighbor {
				h.out[stage], towards = append(h.out[stage], i), cmp.Or(towards, m.Dir)
				stored = stored && m.Path.Traits().Stored
			}
		}
		for _, i := range d.in[stage] {
			if m := messages[i]; m.From == neighbor {
				h.in[stage], towards = append(h.in[stage], i), cmp.Or(towards, m.Dir.Opposite())
				stored = stored && m.Path.Traits().Stored
				h.behindSweep[stage] = h.behindSweep[stage] || a.remoteWithoutCredit(stage, i)
			}
		}
	}
	h.name = fmt.Sprintf("assistant of subdomain %d for its neighbor %d in %v", d.rank, neighbor, towards)
	if h.arrived, err = d.device.NewSignal("the %s", h.name); err != nil {
		return nil, err
	}
	a.run.resources.Add(h.arrived)
	if parts {
		if h.swept, err = d.device.NewSignal("the %s to sweep its part", h.name); err != nil {
			return nil, err
		}
		a.run.resources.Add(h.swept)
		if h.compute, err = a.newStream(d.device, streams.Urgent, "compute %v", towards); err != nil {
			return nil, err
		}
		if stored { // by a short kernel, and a receiver only waits: other streams would only add waits
			h.send, h.receive = h.compute, h.compute
			return h, nil
		}
	}
	if h.send, err = a.newStream(d.device, streams.Urgent, "send %v", towards); err != nil {
		return nil, err
	}
	if h.receive, err = a.newStream(d.device, streams.Urgent, "receive %v", towards); err != nil {
		return nil, err
	}
	return h, a.newEvents(d.device, &h.sent)
}

// announce records on the main thread's stream that the assistants can begin a stage: after its sweep of the
// boundary region or, if they sweep it, after everything before the stage.
func (a *assistants) announce(s *streams.Stream, stage int, n int64) error {
	if !a.sends(stage, n) {
		return nil
	}
	a.issued = a.exchangesTo(stage, n)
	return a.begun.Record(s)
}

// await makes the main thread's stream wait for the messages sent before a stage; came is false if there were
// none.
func (a *assistants) await(s *streams.Stream, stage int, n int64) (came bool, err error) {
	if before, step := a.stageBefore(stage); !a.sends(before, n+step) {
		return false, nil
	}
	for _, h := range a.all {
		if err := h.arrived.Wait(a.threads, s, a.issued); err != nil {
			return false, err
		}
	}
	return true, nil
}

// start starts the threads.
func (a *assistants) start() {
	a.last.Store(math.MaxInt64)
	a.begun.SetRecords(a.issued)
	for _, h := range a.all {
		a.threads.Go(h.name, func() error { return a.assist(h) })
	}
}

// stop ends the assistants after step n: they wait for the next stage, which is announced here, and find that
// there is none.
func (a *assistants) stop(n int64) {
	a.last.Store(a.exchangesTo(len(a.step.Stages)-1, n))
	a.begun.SetRecords(a.issued + 1)
}

// assist is an assistant's loop: it sends as soon as the boundary region has been swept, and receives the
// neighbor's messages, on two streams, so that neither waits for the other.
func (a *assistants) assist(h *assistant) error {
	for n := a.from + 1; ; n++ {
		for stage := range a.step.Stages {
			if !a.sends(stage, n) {
				continue
			}
			now := a.exchangesTo(stage, n)
			if err := a.begun.Await(a.threads, now); err != nil {
				return err
			}
			if now > a.last.Load() {
				return nil
			}
			if err := a.assistStage(h, stage, n); err != nil {
				return err
			}
		}
	}
}

// assistStage sweeps the assistant's part, and sends and receives the messages of one stage.
func (a *assistants) assistStage(h *assistant, stage int, n int64) error {
	now := a.exchangesTo(stage, n)
	if err := a.sweepPart(h, stage, n, now); err != nil {
		return err
	}
	h.send.BeginStep(n)
	h.receive.BeginStep(n)
	if err := a.awaitSwept(h, h.send, now); err != nil {
		return err
	}
	if h.compute != nil {
		if err := a.giveCredit(h.in[stage], h.send, stage, n); err != nil {
			return err
		}
	}
	x := a.exchange(stage, n)
	if err := a.sendAll(x, h.send, stage, n, h.out[stage]); err != nil {
		return err
	}
	if h.send != h.receive && a.covers(len(h.out[stage]), len(h.in[stage])) {
		if err := h.send.Record(h.sent); err != nil {
			return err
		}
		if err := h.receive.Wait(h.sent); err != nil {
			return err
		}
	}
	if h.behindSweep[stage] {
		if err := a.awaitSwept(h, h.receive, now); err != nil {
			return err
		}
	}
	if err := a.receiveAll(x, h.receive, h.in[stage]); err != nil {
		return err
	}
	return h.arrived.Record(h.receive)
}

// sweepPart queues the sweep of the assistant's part, after everything before the stage, and after the
// messages of the previous stage whose ghosts it reads. In a group of steps the main thread has waited for
// these.
func (a *assistants) sweepPart(h *assistant, stage int, n, now int64) error {
	if h.compute == nil {
		return nil
	}
	h.compute.BeginStep(n)
	if err := a.begun.Wait(a.threads, h.compute, now); err != nil {
		return err
	}
	for _, from := range h.reads {
		if from.receive == h.compute || a.step.group() > 1 {
			continue
		}
		if err := from.arrived.Wait(a.threads, h.compute, now-1); err != nil {
			return err
		}
	}
	part := h.part[0]
	if a.norms {
		part = h.part[1]
	}
	if err := a.launch(h.compute, part[a.phase(n)][stage], n); err != nil {
		return err
	}
	return h.swept.Record(h.compute)
}

// awaitSwept makes a stream of the assistant wait until the points that it sends in a stage have been swept,
// and the ghosts that it receives have been read.
func (a *assistants) awaitSwept(h *assistant, s *streams.Stream, now int64) error {
	if h.compute == nil {
		return a.begun.Wait(a.threads, s, now)
	}
	for _, other := range h.partners {
		if other.compute == s {
			continue
		}
		if err := other.swept.Wait(a.threads, s, now); err != nil {
			return err
		}
	}
	return nil
}

// sync waits until the assistants and their streams have finished the work begun.
func (a *assistants) sync() error {
	for _, h := range a.all {
		if err := h.arrived.Await(a.threads, a.issued); err != nil {
			return err
		}
		if err := a.syncAll(h.compute, h.send, h.receive); err != nil {
			return err
		}
	}
	return nil
}
