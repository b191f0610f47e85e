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

func (h *hostCapture) stand(i int) queue {
	return hostCaptured{hostCommands{func(made command) error {
		if made.kernel != nil {
			made.argument = made.kernel.take(made.argument)
		}
		h.calls = append(h.calls, hostCall{i, made})
		return nil
	}}}
}

func (h *hostCapture) abandon() {}

// end makes a graph with queues of its own, except for the origin's: like a GPU's, it is in
// order with other work on the origin alone. What fails in them fails the streams.
func (h *hostCapture) end() (graph, error) {
	g := &hostGraph{calls: h.calls, queues: h.queues[:1:1]}
	for _, q := range h.queues[1:] {
		g.queues = append(g.queues, newHostQueue(q.failed))
	}
	return g, nil
}

// hostGraph does again what was captured.
type hostGraph struct {
	queues []*hostQueue
	calls  []hostCall
}

func (h *hostGraph) launch() (at int, err error) {
	for i := range h.calls {
		call := &h.calls[i]
		if err := h.queues[call.at].put(call.command); err != nil {
			return call.at, err
		}
	}
	return 0, nil
}

// close waits for its own queues: the origin does not where a launch failed half-way.
func (h *hostGraph) close(_ bool, limit time.Duration) error {
	defer func() {
		for _, q := range h.queues[1:] {
			q.close()
		}
	}()
	wait := paceOf(syncThreads).Begin()
	for _, q := range h.queues[1:] {
		for q.ran.Load() != q.queued.Load() {
			if wait.Pause() > limit {
				return fmt.Errorf("%w: %w", errHangs, notDone(limit))
			}
		}
	}
	return nil
}

// hostCaptured stands for one queue.
type hostCaptured struct{ hostCommands }

func (hostCaptured) idle() (bool, error) { return false, errCaptured }
func (hostCaptured) close() error        { return errCaptured }
