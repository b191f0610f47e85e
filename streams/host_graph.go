package streams

import (
	"errors"
	"fmt"
	"time"
)

// hostCapture records the work of streams of CPU devices.
type hostCapture struct {
	queues []*hostQueue
	calls  []hostCall // in the order of the calls
}

// hostCall is a command for one of the queues. The record of an event that it makes or waits for is determined at
// each launch.
type hostCall struct {
	at      int
	command command
}

func (h *hostDriver) capture(queues []queue) (capture, error) {
	c := &hostCapture{}
	for _, q := range queues {
		host, ok := q.(*hostQueue)
		if !ok {
			return nil, errors.New("all streams must belong to CPU devices")
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

// end returns a graph with its own queues, except for that of the origin: like a GPU graph, it is ordered only
// with other work on the origin. Its failures are those of the streams.
func (h *hostCapture) end() (graph, error) {
	g := &hostGraph{calls: h.calls, queues: h.queues[:1:1]}
	for _, q := range h.queues[1:] {
		g.queues = append(g.queues, newHostQueue(q.failed))
	}
	return g, nil
}

// hostGraph runs captured work.
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

// close waits for the queues of the graph: the origin does not wait for them if a launch failed midway.
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

// hostCaptured replaces one queue.
type hostCaptured struct{ hostCommands }

func (hostCaptured) idle() (bool, error) { return false, errCaptured }
func (hostCaptured) close() error        { return errCaptured }
