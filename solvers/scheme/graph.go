package scheme

import (
	"errors"

	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// Graph is the scheme that captures steps of all devices once and replays them: one worker, and one call for
// many steps. Within a step the order is that of Assisted.
const Graph Scheme = "graph"

func graphScheme() *definition {
	return &definition{name: Graph, needs: Needs{Steady: true, Groups: true}, make: newGraph}
}

// graph is the only worker.
type graph struct {
	*run
	parts    []*graphPart
	channels [][]*graphChannel // by stage
	origin   *streams.Stream   // stream of the first part: graphs are launched here
	others   []*streams.Stream
	done     *streams.Event   // the launches on origin
	one      []*streams.Graph // one step, by the phase of the first
	many     []*streams.Graph // manySteps steps
	// one step whose sweeps take norms and reductions; without reductions norms are taken from the fields
	measured []*streams.Graph
	stale    bool // the parts may have queued work that the next graph must wait for
}

// graphSteps is the approximate number of steps of a large graph.
const graphSteps = 16

// manySteps is the number of steps of a large graph: a multiple of the period, so that graphs of the same
// kind can follow each other.
func (g *graph) manySteps() int64 {
	p := int64(g.period)
	return (graphSteps + p - 1) / p * p
}

// graphPart is a subdomain. Work outside of graphs, mainly norms, is queued on its compute stream too.
type graphPart struct {
	*subdomain
	compute *streams.Stream
	swept   *streams.Event    // the boundary region of a stage has been swept
	idle    *streams.Event    // the work queued between graphs
	coming  [][]*graphChannel // by stage: received messages
	leaving [][]*graphChannel // by stage: messages that must have left before the next stage, see covers
}

// graphChannel is a message with the streams that it is sent and received on.
type graphChannel struct {
	message       int
	from, to      *graphPart
	credit        bool // the ghosts are free after the receiver's sweep, see Runner.needsCredit
	send, receive *streams.Stream
	sent, arrived *streams.Event // the message of a step has left, and has been received
}

func newGraph(r *run, _ Options) ([]worker, error) {
	g := &graph{run: r, channels: make([][]*graphChannel, len(r.step.Stages))}
	err := r.feed(g.manySteps(), func(st *Stage) bool { return st.changes() || st.Point.Momentary() })
	if err != nil {
		return nil, err
	}
	for _, d := range r.subdomains {
		if err := g.addPart(d); err != nil {
			return nil, err
		}
	}
	g.origin = g.parts[0].compute
	for _, p := range g.parts[1:] {
		g.others = append(g.others, p.compute)
	}
	for stage := range r.step.Stages {
		for i := range r.messagesOf(stage) {
			if err := g.addChannel(stage, i); err != nil {
				return nil, err
			}
		}
	}
	if err := r.newEvents(g.parts[0].device, &g.done); err != nil {
		return nil, err
	}
	return []worker{g}, g.captureAll()
}

func (g *graph) addPart(d *subdomain) (err error) {
	fed, err := d.fed(g.run)
	if err != nil {
		return err
	}
	n := len(g.step.Stages)
	p := &graphPart{subdomain: fed, coming: make([][]*graphChannel, n), leaving: make([][]*graphChannel, n)}
	switch {
	case !g.reduces():
		err = g.takeFromFields(d)
	case fed != d:
		_, err = g.takeTotals(d, func(phase, stage int) []*sweep.Totals {
			return []*sweep.Totals{fed.stages[phase][stage].totals[0]}
		})
	}
	if err != nil {
		return err
	}
	fed.totals = d.totals
	if p.compute, err = g.newStream(d.device, streams.Normal, "compute"); err != nil {
		return err
	}
	g.parts = append(g.parts, p)
	return g.newEvents(d.device, &p.swept, &p.idle)
}

func (g *graph) addChannel(stage, i int) (err error) {
	m := g.plans[stage].Messages[i]
	c := &graphChannel{message: i, from: g.parts[m.From], to: g.parts[m.To], credit: g.needsCredit(stage, i)}
	if c.send, err = c.from.device.NewStream(streams.Urgent); err != nil {
		return err
	}
	g.resources.Add(c.send)
	if c.receive, err = c.to.device.NewStream(streams.Urgent); err != nil {
		return err
	}
	g.resources.Add(c.receive)
	if err := g.newEvents(c.to.device, &c.arrived); err != nil {
		return err
	}
	if err := g.newEvents(c.from.device, &c.sent); err != nil {
		return err
	}
	c.to.coming[stage] = append(c.to.coming[stage], c)
	if g.covers(1, g.returned(stage, i)) {
		c.from.leaving[stage] = append(c.from.leaving[stage], c)
	}
	g.channels[stage] = append(g.channels[stage], c)
	g.others = append(g.others, c.send, c.receive)
	return nil
}

// returned counts the messages of a stage in the opposite direction of one.
func (g *graph) returned(stage, i int) (n int) {
	m := g.plans[stage].Messages[i]
	for _, back := range g.plans[stage].Messages {
		if back.From == m.To && back.To == m.From {
			n++
		}
	}
	return n
}

// reduces reports whether point functions have reductions, which only sweeps can take.
func (g *graph) reduces() bool { return len(g.step.Reductions()) > 0 }

// captureAll makes the graphs of one and of many steps, for each phase of the first step.
func (g *graph) captureAll() error {
	for first := range int64(g.period) {
		one, err := g.capture(first+1, 1, false)
		if err != nil {
			return err
		}
		many, err := g.capture(first+1, g.manySteps(), false)
		if err != nil {
			return err
		}
		if g.reduces() {
			measured, err := g.capture(first+1, 1, true)
			if err != nil {
				return err
			}
			g.measured = append(g.measured, measured)
		}
		g.one, g.many = append(g.one, one), append(g.many, many)
	}
	return nil
}

// capture captures a number of steps, with norms and reductions of their sweeps if norms is set.
func (g *graph) capture(first, steps int64, norms bool) (*streams.Graph, error) {
	for _, f := range g.frames {
		f.SetFirst(g.run.done + first)
	}
	made, err := streams.Capture(g.origin, g.others, func() error {
		for n := first; n < first+steps; n++ {
			for stage := range g.step.Stages {
				if err := g.stage(stage, n, n > first || stage > 0, norms); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	g.resources.Add(made)
	return made, nil
}

// stage queues a stage of a step. The first stage of a graph does not wait for messages: the graph begins
// after the previous one has ended.
func (g *graph) stage(stage int, n int64, waits, norms bool) error {
	for _, p := range g.parts {
		if err := g.sweep(p, stage, n, waits, norms); err != nil {
			return err
		}
	}
	if !g.sends(stage, n) {
		return nil
	}
	for _, c := range g.channels[stage] {
		if err := g.send(c, stage, n); err != nil {
			return err
		}
	}
	for _, c := range g.channels[stage] {
		if err := g.receive(c, stage, n); err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) sweep(p *graphPart, stage int, n int64, waits, norms bool) error {
	if before, step := g.stageBefore(stage); waits && g.sends(before, n+step) {
		for _, c := range p.coming[before] {
			if err := p.compute.Wait(c.arrived); err != nil {
				return err
			}
		}
		for _, c := range p.leaving[before] {
			if err := p.compute.Wait(c.sent); err != nil {
				return err
			}
		}
	}
	if err := g.complete(p.subdomain, p.compute, stage, n); err != nil {
		return err
	}
	swept := p.sweeps(g.run, stage, n, norms)
	if err := g.launch(p.compute, swept.boundary, n); err != nil {
		return err
	}
	if err := g.refresh(p.subdomain, p.compute, stage, n); err != nil {
		return err
	}
	if err := p.compute.Record(p.swept); err != nil {
		return err
	}
	return g.launch(p.compute, swept.interior, n)
}

// send overwrites the data of the previous message, which is no longer needed: the sender's sweep of the
// boundary region, which comes before, waited for the message in the opposite direction, and that for the
// receiver's sweep that used the ghosts; or this call waits for the receiver's sweep.
func (g *graph) send(c *graphChannel, stage int, n int64) error {
	if err := c.send.Wait(c.from.swept); err != nil {
		return err
	}
	if c.credit && c.to != c.from {
		if err := c.send.Wait(c.to.swept); err != nil {
			return err
		}
	}
	if err := g.exchange(stage, n).Transfer(c.message).Send(c.send); err != nil {
		return err
	}
	return c.send.Record(c.sent)
}

func (g *graph) receive(c *graphChannel, stage int, n int64) error {
	if err := g.exchange(stage, n).Transfer(c.message).Receive(g.run.threads, c.receive); err != nil {
		return err
	}
	return c.receive.Record(c.arrived)
}

func (g *graph) queues() (all []queue) {
	for _, p := range g.parts {
		all = append(all, queue{p.rank, p.compute, p.compute})
	}
	return all
}

func (g *graph) steps(first, last int64, norms bool) error {
	if err := g.begin(); err != nil {
		return err
	}
	for n := first; n <= last; {
		made, steps := g.next(n, last, norms)
		g.origin.BeginStep(n)
		if err := g.tell(n, steps); err != nil {
			return err
		}
		if err := made.Launch(); err != nil {
			return err
		}
		n += steps
	}
	return g.finish(last, norms)
}

// tell queues the parameters of the next graph, once the previous graph has read its own. The origin waits.
func (g *graph) tell(n, steps int64) error {
	if len(g.frames) == 0 {
		return nil
	}
	if err := g.origin.Record(g.done); err != nil {
		return err
	}
	for i, p := range g.parts {
		f := g.frames[p.rank]
		f.SetFirst(g.run.done + n)
		if i == 0 {
			if err := f.Queue(p.compute, g.moment(n), steps); err != nil {
				return err
			}
			continue
		}
		if err := errors.Join(p.compute.Wait(g.done), f.Queue(p.compute, g.moment(n), steps),
			p.compute.Record(p.idle), g.origin.Wait(p.idle)); err != nil {
			return err
		}
	}
	return nil
}

// next returns a graph that begins with step n, and its number of steps. Traced steps have separate graphs,
// and so have steps whose sweeps take norms.
func (g *graph) next(n, last int64, norms bool) (*streams.Graph, int64) {
	first := int((n - 1) % int64(g.period))
	if norms && g.reduces() {
		if n == last {
			return g.measured[first], 1
		}
		last--
	}
	if end := n + g.manySteps() - 1; end <= last && !g.origin.Traced(n, end) {
		return g.many[first], g.manySteps()
	}
	return g.one[first], 1
}

// begin makes the origin wait for the work that other streams have queued since the last graph: for norms,
// since the next step overwrites the fields that they are reduced from.
func (g *graph) begin() error {
	if !g.stale {
		return nil
	}
	g.stale = false
	for _, p := range g.parts[1:] {
		if err := p.compute.Record(p.idle); err != nil {
			return err
		}
		if err := g.origin.Wait(p.idle); err != nil {
			return err
		}
	}
	return nil
}

// finish makes the streams of all parts wait for the origin, and then reduces the norms.
func (g *graph) finish(last int64, norms bool) error {
	if err := g.origin.Record(g.done); err != nil {
		return err
	}
	for i, p := range g.parts {
		p.compute.BeginStep(last)
		if i > 0 {
			if err := p.compute.Wait(g.done); err != nil {
				return err
			}
		}
		if norms {
			if err := g.queueTotals(p.subdomain, p.compute, last); err != nil {
				return err
			}
		}
	}
	g.stale = norms
	return nil
}

// sync waits for the streams of all parts, which wait for the origin, and checks the others for errors.
func (g *graph) sync() error { return g.syncAll(append([]*streams.Stream{g.origin}, g.others...)...) }
