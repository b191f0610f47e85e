package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/streams"
)

// Queue is the streams and events by which the devices of a problem work together without ranks. One thread of the
// host queues everything, and nothing waits for the host before the last iteration.
type Queue struct {
	// Iteration queues an iteration, whose number is even or odd. It waits only for events that it recorded itself; for
	// those of the iteration before there is WaitEarlier.
	Iteration func(parity int) error

	resources streams.Resources
	streams   []*streams.Stream
	done      []*streams.Event          // of each stream: see Barrier
	graphs    map[[2]int]*streams.Graph // by how many iterations they make, and the parity of the first
	begins    bool                      // the iteration is the first of a graph
}

// limit of what is waited for at the end of a run.
const limit = 5 * time.Minute

// NewStream makes a stream on a device.
func (q *Queue) NewStream(d *streams.Device) (*streams.Stream, error) {
	s, err := d.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	q.resources.Add(s)
	done, err := q.NewEvent(d)
	if err != nil {
		return nil, err
	}
	q.streams, q.done = append(q.streams, s), append(q.done, done)
	return s, nil
}

// NewEvent makes an event of a device.
func (q *Queue) NewEvent(d *streams.Device) (*streams.Event, error) {
	e, err := d.NewEvent()
	if err == nil {
		q.resources.Add(e)
	}
	return e, err
}

// Barrier has all streams wait for each other: the first for all, and all for the first.
func (q *Queue) Barrier() error {
	first := q.streams[0]
	for i, s := range q.streams[1:] {
		if err := errors.Join(s.Record(q.done[i+1]), first.Wait(q.done[i+1])); err != nil {
			return err
		}
	}
	if err := first.Record(q.done[0]); err != nil {
		return err
	}
	for _, s := range q.streams[1:] {
		if err := s.Wait(q.done[0]); err != nil {
			return err
		}
	}
	return nil
}

// WaitEarlier has a stream wait for an event that the iteration before recorded, or none. A graph begins after the one
// before has ended, and needs no wait.
func (q *Queue) WaitEarlier(s *streams.Stream, e *streams.Event) error {
	if q.begins {
		return nil
	}
	return s.Wait(e)
}

// Method returns the method of streams, or that of graphs.
func (q *Queue) Method(name string) Method {
	if name == queued {
		return q.byStreams
	}
	return q.byGraphs
}

// byStreams is the method that queues each iteration.
func (q *Queue) byStreams(ctx context.Context, iterations int) (time.Duration, error) {
	return q.timed(ctx, iterations, func(i int) error { return q.Iteration(i % 2) })
}

// byGraphs is the method that captures some iterations as a graph, once, and launches it again and again.
func (q *Queue) byGraphs(ctx context.Context, iterations int) (time.Duration, error) {
	batch := batchOf(iterations)
	var graphs [2]*streams.Graph // that begin with an even and an odd iteration
	for i := range min(2, iterations/batch) {
		g, err := q.graph(batch, i*batch%2)
		if err != nil {
			return 0, fmt.Errorf("capture iterations: %w", err)
		}
		graphs[i] = g
	}
	return q.timed(ctx, iterations/batch, func(i int) error { return graphs[i%2].Launch() })
}

// batchOf is how many iterations of so many a graph makes: as many as divide them, up to 10.
func batchOf(iterations int) int {
	const most = 10
	for n := min(most, iterations); ; n-- {
		if iterations%n == 0 {
			return n
		}
	}
}

// graph returns that of some iterations, of which the first is even or odd.
func (q *Queue) graph(batch, parity int) (*streams.Graph, error) {
	key := [2]int{batch, parity}
	if g := q.graphs[key]; g != nil {
		return g, nil
	}
	defer func() { q.begins = false }()
	g, err := streams.Capture(q.streams[0], q.streams[1:], func() error {
		for i := range batch {
			q.begins = i == 0
			if err := q.Iteration((parity + i) % 2); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	q.resources.Add(g)
	if q.graphs == nil {
		q.graphs = map[[2]int]*streams.Graph{}
	}
	q.graphs[key] = g
	return g, nil
}

// timed returns what it takes to queue so many iterations and to wait for the last.
func (q *Queue) timed(ctx context.Context, iterations int, queue func(i int) error) (time.Duration, error) {
	begun := time.Now()
	for i := range iterations {
		if err := context.Cause(ctx); err != nil {
			return 0, errors.Join(err, q.sync())
		}
		if err := queue(i); err != nil {
			return 0, err
		}
	}
	if err := q.sync(); err != nil {
		return 0, err
	}
	return time.Since(begun), nil
}

func (q *Queue) sync() (err error) {
	for _, s := range q.streams {
		err = errors.Join(err, s.Sync(limit))
	}
	return err
}

// Close frees the streams, the events and the graphs.
func (q *Queue) Close() error { return q.resources.Close() }
