package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// Graph is work that was captured from some streams, to be queued any number of times
// by one call each.
type Graph struct {
	streams []*Stream // the origin first
	fork    *Event    // of the origin, where the others begin
	joins   []*Event  // of each other stream, where it ends
	graph   graph     // nil once it is closed
	closed  atomic.Bool
}

// Capture calls f, which queues work on the streams, and returns that work as a graph
// instead of doing it. The streams are of any devices of one platform, and nothing else
// uses them meanwhile. Capture itself lets the others begin after what comes before on
// the origin, and the origin go on after all of them.
//
// Within f a stream waits only for events that were recorded within f; the host waits
// for none of the streams and events, and nothing is traced. Boxes are not copied from
// device to device: for those CopyBox returns ErrUnsuited. What f did is done with the
// memory and the arguments of kernels as they were then. Events that it recorded are of
// no use to others afterwards, until they are recorded again.
//
// After an error the streams are as they were before, unless a device died.
func Capture(origin *Stream, others []*Stream, f func() error) (*Graph, error) {
	if f == nil {
		return nil, errors.New("streams: capture what no function queues")
	}
	g := &Graph{streams: append([]*Stream{origin}, others...)}
	if err := g.check(); err != nil {
		return nil, err
	}
	err := g.newEvents()
	if err == nil {
		err = g.capture(f)
	}
	if err == nil {
		err = g.keep()
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// check rejects streams that cannot be captured now.
func (g *Graph) check() error {
	for i, s := range g.streams {
		if err := s.usable(); err != nil {
			return err
		}
		if s.captured || slices.Contains(g.streams[:i], s) {
			return s.device.fail(errCaptured, "capture a stream")
		}
	}
	return nil
}

func (g *Graph) newEvents() (err error) {
	if g.fork, err = g.streams[0].device.NewEvent(); err != nil {
		return err
	}
	for _, s := range g.streams[1:] {
		e, err := s.device.NewEvent()
		if err != nil {
			return err
		}
		g.joins = append(g.joins, e)
	}
	return nil
}

// capture captures what f queues. The streams are free again when it returns, and when
// f panics.
func (g *Graph) capture(f func() error) (err error) {
	origin := g.streams[0]
	var queues []queue
	for _, s := range g.streams {
		queues = append(queues, s.queue)
	}
	c, err := origin.device.driver.capture(queues)
	if err != nil {
		return origin.device.fail(err, "begin to capture")
	}
	recorded := map[marker]bool{}
	for i, s := range g.streams {
		s.queue, s.captured = &capturedQueue{c.stand(i), recorded}, true
	}
	whole := false
	defer func() {
		for i, s := range g.streams {
			s.queue, s.captured = queues[i], false
		}
		if !whole {
			c.abandon()
			return
		}
		g.graph, err = c.end()
		err = origin.device.fail(err, "make a graph")
	}()
	if err := g.fill(f); err != nil {
		return err
	}
	whole = true
	return nil
}

// fill queues what the graph is made of.
func (g *Graph) fill(f func() error) error {
	origin, others := g.streams[0], g.streams[1:]
	if err := origin.Record(g.fork); err != nil {
		return err
	}
	for _, s := range others {
		if err := s.Wait(g.fork); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	for i, s := range others {
		if err := s.Record(g.joins[i]); err != nil {
			return err
		}
		if err := origin.Wait(g.joins[i]); err != nil {
			return err
		}
	}
	return nil
}

// keep makes each device close the graph before itself.
func (g *Graph) keep() error {
	for _, s := range g.streams {
		if err := s.device.keep(g); err != nil {
			return err
		}
	}
	return nil
}

// Launch queues all that was captured on the origin stream: it begins after what was
// queued there before, and what is queued there later begins after all of it. With
// other work on the other streams it keeps no order. One launch of a graph begins after
// the launch before has ended. Launch allocates nothing.
//
// In a trace it is one operation on the origin stream, a sweep called "graph".
func (g *Graph) Launch() error {
	origin := g.streams[0]
	if g.graph == nil || origin.captured {
		return origin.device.fail(errNoLaunch, "launch a graph")
	}
	for _, s := range g.streams {
		if err := s.usable(); err != nil {
			return err
		}
	}
	if err := origin.before(); err != nil {
		return err
	}
	if at, err := g.graph.launch(); err != nil {
		return g.streams[at].device.fail(err, "launch a graph")
	}
	return origin.after(Operation{Name: "graph", Work: Sweep})
}

var errNoLaunch = errors.New("it is closed, or its origin stream is being captured")

// Close frees the graph. No launch may be under way. Closing twice is no error.
func (g *Graph) Close() error {
	if !g.closed.CompareAndSwap(false, true) {
		return nil
	}
	for _, s := range g.streams {
		s.device.drop(g)
	}
	return g.free()
}

// free frees what there is. Where one of the devices is dead, nothing can be freed there.
func (g *Graph) free() error {
	var errs []error
	if g.graph != nil {
		d := g.streams[0].device
		dead := slices.ContainsFunc(g.streams, func(s *Stream) bool { return s.device.alive() != nil })
		err := g.graph.close(dead, d.grace)
		g.graph = nil
		errs = append(errs, d.fail(err, "free a graph"))
	}
	for _, e := range append(slices.Clone(g.joins), g.fork) {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}

// capturedQueue stands for the queue of a stream that is being captured. It rejects on
// every backend what a GPU would reject.
type capturedQueue struct {
	queue
	recorded map[marker]bool // events that were recorded in this capture
}

var (
	errCaptured  = errors.New("it is being captured")
	errOutside   = errors.New("what is captured waits for events that are recorded in the same capture")
	errPeerBoxes = fmt.Errorf("%w: a box from device to device is not captured", ErrUnsuited)
)

func (c *capturedQueue) copyBox(b box) error {
	to, from := b.dst.Span.Memory, b.src.Span.Memory
	if to.device != from.device && !to.pinned && !from.pinned {
		return errPeerBoxes
	}
	return c.queue.copyBox(b)
}

func (c *capturedQueue) record(m marker) error {
	c.recorded[m] = true
	return c.queue.record(m)
}

func (c *capturedQueue) wait(m marker) error {
	if !c.recorded[m] {
		return errOutside
	}
	return c.queue.wait(m)
}

func (c *capturedQueue) idle() (bool, error) { return false, errCaptured }
func (c *capturedQueue) close() error        { return errCaptured }
