package streams

import "fmt"

// Signal orders two streams that different workers feed. An event alone does
// not do: Wait sees only a Record that was called before, so the worker that
// waits must first know that the other has called it. A signal counts its
// records for that.
type Signal struct {
	event   *Event
	records Counter
}

// NewSignal makes a signal for a stream of device d. The name says whose work
// it stands for.
func (d *Device) NewSignal(name string, args ...any) (*Signal, error) {
	e, err := d.NewEvent()
	if err != nil {
		return nil, err
	}
	return &Signal{event: e, records: Counter{Whom: fmt.Sprintf(name, args...)}}, nil
}

// Record queues the event on s and publishes that it did.
func (g *Signal) Record(s *Stream) error {
	if err := s.Record(g.event); err != nil {
		return err
	}
	g.records.Add()
	return nil
}

// Wait makes s wait for the n-th record, counted from 1, once the worker that
// makes it has queued it. That worker must not make the record after it before
// this one was waited for.
func (g *Signal) Wait(c *WorkerGroup, s *Stream, n int64) error {
	if err := c.Await(&g.records, n); err != nil {
		return err
	}
	return s.Wait(g.event)
}

// Await waits on the host until the n-th record has been queued, or announced.
func (g *Signal) Await(c *WorkerGroup, n int64) error { return c.Await(&g.records, n) }

// Announce counts a record without making one, so that who awaits it looks up.
func (g *Signal) Announce() { g.records.Add() }

// Close frees the event.
func (g *Signal) Close() error { return g.event.Close() }
