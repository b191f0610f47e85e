package solvers

import (
	"fmt"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// graph is the scheme that captures steps of all devices once and has them replayed:
// one worker, and one call for many steps. Within a step the work is ordered as by
// assisted.
type graph struct {
	*run
	parts    []*graphPart
	channels []*channel
	origin   *streams.Stream // of the first part: graphs are launched here
	others   []*streams.Stream
	done     *streams.Event // what was launched on origin
	one      [2]*streams.Graph
	many     [2]*streams.Graph // graphSteps steps; both by whether the first step is even or odd
	stale    bool              // the parts may have queued what the next graph has to wait for
}

// graphSteps is how many steps a large graph has. They are even in number, so that the
// fields take turns from one graph to the next.
const graphSteps = 16

// graphPart is a subdomain. What is outside of graphs, norms above all, is queued on its
// compute stream too.
type graphPart struct {
	*part
	compute *streams.Stream
	swept   *streams.Event // the boundary region of a step is swept
	idle    *streams.Event // what was queued between graphs
	coming  []*channel
}

// channel is a message with the streams that it is sent and received on.
type channel struct {
	message       int
	from          *graphPart
	send, receive *streams.Stream
	arrived       *streams.Event // the message of a step has been put in place
}

func newGraph(r *run) (scheme, error) {
	g := &graph{run: r}
	for _, p := range r.parts {
		if len(p.walls) > 0 {
			return nil, fmt.Errorf("solvers: %w: scheme %s captures steps beforehand, and walls that change with time are evaluated during them", ErrUnsuited, Graph)
		}
		if err := g.addPart(p); err != nil {
			return nil, err
		}
	}
	g.origin = g.parts[0].compute
	for _, p := range g.parts[1:] {
		g.others = append(g.others, p.compute)
	}
	for i, m := range r.plan.Messages {
		if err := g.addChannel(i, m); err != nil {
			return nil, err
		}
	}
	if err := r.newEvents(g.parts[0].device, &g.done); err != nil {
		return nil, err
	}
	return g, g.captureAll()
}

func (g *graph) addPart(p *part) (err error) {
	w := &graphPart{part: p}
	if err := g.reduceNorms(p); err != nil {
		return err
	}
	if w.compute, err = g.newStream(p.device, streams.Normal, "compute"); err != nil {
		return err
	}
	g.parts = append(g.parts, w)
	return g.newEvents(p.device, &w.swept, &w.idle)
}

func (g *graph) addChannel(i int, m halo.Message) (err error) {
	from, to := g.parts[m.From], g.parts[m.To]
	b := &channel{message: i, from: from}
	if b.send, err = from.device.NewStream(streams.Urgent); err != nil {
		return err
	}
	g.resources.Add(b.send)
	if b.receive, err = to.device.NewStream(streams.Urgent); err != nil {
		return err
	}
	g.resources.Add(b.receive)
	if err := g.newEvents(to.device, &b.arrived); err != nil {
		return err
	}
	to.coming = append(to.coming, b)
	g.channels = append(g.channels, b)
	g.others = append(g.others, b.send, b.receive)
	return nil
}

// captureAll makes the graphs of one and of many steps, for each of the fields to begin
// with.
func (g *graph) captureAll() (err error) {
	for first := range 2 {
		if g.one[first], err = g.capture(int64(first), 1); err != nil {
			return err
		}
		if g.many[first], err = g.capture(int64(first), graphSteps); err != nil {
			return err
		}
	}
	return nil
}

// capture captures so many steps.
func (g *graph) capture(first, steps int64) (*streams.Graph, error) {
	made, err := streams.Capture(g.origin, g.others, func() error {
		for n := first; n < first+steps; n++ {
			if err := g.step(int(n%2), n > first); err != nil {
				return err
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

// step queues a step that writes field to. The first step of a graph has no messages to
// wait for: the graph begins after the one before has ended.
func (g *graph) step(to int, waits bool) error {
	for _, p := range g.parts {
		if err := g.sweep(p, to, waits); err != nil {
			return err
		}
	}
	for _, b := range g.channels {
		if err := g.send(b, to); err != nil {
			return err
		}
	}
	for _, b := range g.channels {
		if err := g.receive(b, to); err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) sweep(p *graphPart, to int, waits bool) error {
	if waits {
		for _, b := range p.coming {
			if err := p.compute.Wait(b.arrived); err != nil {
				return err
			}
		}
	}
	if err := launch(p.compute, p.ghostFills[1-to].beside...); err != nil {
		return err
	}
	if err := launch(p.compute, p.plain.boundary[to]); err != nil {
		return err
	}
	if err := g.refreshWalls(p.part, p.compute, int64(to)); err != nil {
		return err
	}
	if err := p.compute.Record(p.swept); err != nil {
		return err
	}
	return launch(p.compute, p.plain.interior[to])
}

// send overwrites what the message brought two steps ago. Those who needed it are done:
// the sender's boundary sweep, which comes before, waited for the message in return, and
// that for the receiver's boundary sweep that used the ghosts.
func (g *graph) send(b *channel, to int) error {
	if err := b.send.Wait(b.from.swept); err != nil {
		return err
	}
	return g.exchanges[to].Transfer(b.message).Send(b.send)
}

func (g *graph) receive(b *channel, to int) error {
	if err := g.exchanges[to].Transfer(b.message).Receive(g.group, b.receive); err != nil {
		return err
	}
	return b.receive.Record(b.arrived)
}

// workers: one drives all parts.
func (g *graph) workers() [][]int {
	all := make([]int, len(g.parts))
	for rank := range all {
		all[rank] = rank
	}
	return [][]int{all}
}

func (g *graph) assistants()     {}
func (g *graph) stop(int, int64) {}
func (g *graph) queues(rank int) (steps, norms *streams.Stream) {
	return g.parts[rank].compute, g.parts[rank].compute
}

func (g *graph) maxSteps() int64 { return maxSteps }

func (g *graph) steps(_ int, first, last int64, norms bool) error {
	if first == 1 {
		if err := g.wallsBefore(); err != nil {
			return err
		}
	}
	if err := g.begin(); err != nil {
		return err
	}
	for n := first; n <= last; {
		made, steps := g.next(n, last)
		g.origin.BeginStep(n)
		if err := made.Launch(); err != nil {
			return err
		}
		n += steps
	}
	return g.finish(last, norms)
}

// wallsBefore queues what the walls do to the ghosts that the first step reads, on the
// streams of all parts, for which the origin waits.
func (g *graph) wallsBefore() error {
	for _, p := range g.parts {
		if err := launch(p.compute, p.ghostFills[0].own...); err != nil {
			return err
		}
	}
	g.stale = true
	return nil
}

// next returns a graph that begins with step n, and how many steps it makes. Steps that
// are traced have a graph each.
func (g *graph) next(n, last int64) (*streams.Graph, int64) {
	if end := n + graphSteps - 1; end <= last && !g.origin.Traced(n, end) {
		return g.many[n%2], graphSteps
	}
	return g.one[n%2], 1
}

// begin lets the origin wait for what other streams have queued since the last graph: for
// norms, since the next step overwrites what they are reduced from.
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

// finish lets the streams of all parts wait for the origin, and then reduces the norms.
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
			if err := p.norms[last%2].Queue(p.compute); err != nil {
				return err
			}
		}
	}
	g.stale = norms
	return nil
}

// sync waits for the streams of all parts, which wait for the origin, and asks the others
// whether something failed on them.
func (g *graph) sync(int) error {
	for _, s := range append([]*streams.Stream{g.origin}, g.others...) {
		if err := s.Sync(g.patience()); err != nil {
			return err
		}
	}
	return nil
}
