package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// Graph is work captured from several streams, to be queued repeatedly by one call each.
type Graph struct {
	streams []*Stream // origin first
	fork    *Event    // on the origin; the others start after it
	joins   []*Event  // end of each other stream
	graph   graph     // nil once closed
	closed  atomic.Bool
}

// Capture calls f, which queues work on the streams, and returns that work as a graph instead of running it. The
// streams may be of several devices of one platform, and must not be used by other code during the call. Capture
// itself makes the other streams start after the previous work on the origin, and the origin continue after all of
// them.
//
// Within f a stream may only wait for events recorded within f, the host must not wait for the streams and events,
// and nothing is traced. Boxes cannot be copied from device to device: for those CopyBox returns ErrUnsuited. The
// graph uses the memory and the kernel arguments as of the capture. Events recorded in f cannot be used by other
// code until they are recorded again.
//
// If Capture returns an error, the streams are unchanged, unless a device failed.
func Capture(origin *Stream, others []*Stream, f func() error) (*Graph, error) {
	if f == nil {
		return nil, errors.New("streams: capture: f must not be nil")
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

// check returns an error if a stream cannot be captured now.
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

// capture captures the work that f queues. The streams are released when it returns, and when f panics.
func (g *Graph) capture(f func() error) (err error) {
	origin := g.streams[0]
	var queues []queue
	for _, s := range g.streams {
		queues = append(queues, s.queue)
	}
	c, err := origin.device.driver.capture(queues)
	if err != nil {
		return origin.device.fail(err, "begin a capture")
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
		err = origin.device.fail(err, "create a graph")
	}()
	if err := g.fill(f); err != nil {
		return err
	}
	whole = true
	return nil
}

// fill queues the work of the graph.
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

// keep registers the graph with each device, so that it is closed before the device.
func (g *Graph) keep() error {
	for _, s := range g.streams {
		if err := s.device.keep(g); err != nil {
			return err
		}
	}
	return nil
}

// Launch queues the captured work on the origin stream, in order with other work there. It is not ordered with
// other work on the other streams. Launches of one graph run one after another. Launch does not allocate.
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

var errNoLaunch = errors.New("the graph is closed, or its origin stream is being captured")

// Close frees the graph. No launch may be running. Closing twice is allowed.
func (g *Graph) Close() error {
	if !g.closed.CompareAndSwap(false, true) {
		return nil
	}
	for _, s := range g.streams {
		s.device.drop(g)
	}
	return g.free()
}

// free frees all parts, except on dead devices.
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

// capturedQueue replaces the queue of a stream that is being captured. On every backend it rejects what a GPU
// would reject.
type capturedQueue struct {
	queue
	recorded map[marker]bool // events recorded in this capture
}

var (
	errCaptured  = errors.New("the stream is being captured")
	errOutside   = errors.New("captured work may only wait for events recorded in the same capture")
	errPeerBoxes = fmt.Errorf("%w: a box from device to device cannot be captured", ErrUnsuited)
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
