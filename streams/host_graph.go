package streams

import (
	"errors"
	"fmt"
	"time"
)

// hostCapture remembers what streams of host devices are to do.
type hostCapture struct {
	queues []*hostQueue
	calls  []hostCall // in the order in which they were made
}

// hostCall is a command for one of the queues. Which record of an event it makes or
// waits for is found out anew each time.
type hostCall struct {
	at      int
	command command
}

func (h *hostDriver) capture(queues []queue) (capture, error) {
	c := &hostCapture{}
	for _, q := range queues {
		host, ok := q.(*hostQueue)
		if !ok {
			return nil, errors.New("the streams are not all of host devices")
		}
		c.queues = append(c.queues, host)
	}
	return c, nil
}

func (c *hostCapture) stand(i int) queue { return &hostCaptured{c, i} }
func (c *hostCapture) abandon()          {}

// end makes a graph with queues of its own but for the origin's: like a GPU's, it is in
// order with other work on the origin alone. What fails in them fails the streams.
func (c *hostCapture) end() (graph, error) {
	g := &hostGraph{calls: c.calls, queues: c.queues[:1:1]}
	for _, q := range c.queues[1:] {
		g.queues = append(g.queues, newHostQueue(q.failed))
	}
	return g, nil
}

// hostGraph does again what was captured.
type hostGraph struct {
	queues []*hostQueue
	calls  []hostCall
}

func (g *hostGraph) launch() (at int, err error) {
	for i := range g.calls {
		call := &g.calls[i]
		if err := g.queues[call.at].again(call.command); err != nil {
			return call.at, err
		}
	}
	return 0, nil
}

// close waits for its own queues: the origin does not where a launch failed half-way.
func (g *hostGraph) close(_ bool, limit time.Duration) error {
	defer func() {
		for _, q := range g.queues[1:] {
			q.close()
		}
	}()
	wait := paceOf(syncThreads).Begin()
	for _, q := range g.queues[1:] {
		for q.ran.Load() != q.queued.Load() {
			if wait.Pause() > limit {
				return fmt.Errorf("%w: %w", errHangs, notDone(limit))
			}
		}
	}
	return nil
}

// again queues a command that was remembered.
func (q *hostQueue) again(c command) error {
	switch {
	case c.record != nil:
		return q.record(c.record)
	case c.wait != nil:
		return q.wait(c.wait)
	case c.kernel != nil:
		return q.put(c.kernel.command(c.argument))
	}
	return q.put(c)
}

// hostCaptured stands for one queue.
type hostCaptured struct {
	capture *hostCapture
	at      int
}

func (q *hostCaptured) remember(c command) error {
	q.capture.calls = append(q.capture.calls, hostCall{q.at, c})
	return nil
}

func (q *hostCaptured) copy(dst, src Span) error {
	c, err := hostCopy(dst, src)
	if err != nil {
		return err
	}
	return q.remember(c)
}

func (q *hostCaptured) copyBox(b box) error {
	c, err := hostCopyBox(b)
	if err != nil {
		return err
	}
	return q.remember(c)
}

func (q *hostCaptured) launch(k launcher) error {
	h := k.(*hostKernel)
	return q.remember(h.command(h.current))
}
func (q *hostCaptured) record(m marker) error { return q.remember(command{record: m.(*hostEvent)}) }
func (q *hostCaptured) wait(m marker) error   { return q.remember(command{wait: m.(*hostEvent)}) }
func (q *hostCaptured) idle() (bool, error)   { return false, errCaptured }
func (q *hostCaptured) close() error          { return errCaptured }
