package main

import (
	"context"
	"errors"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// byStreams steps a box by a kernel for each part of a step, copies between neighbours, and events. Some steps are
// captured as a graph, which is launched again and again.
type byStreams struct {
	box   *box
	limit time.Duration
	ends  []*end
	graph *streams.Graph
	batch int // steps of the graph
	open  streams.Resources
}

// end is what a device has.
type end struct {
	stream         *streams.Stream
	advance, merge *streams.Kernel
	done           *streams.Event // a kernel
	links          [2]*link       // to the device below and above; nil: none
}

// link copies the lists of the last segment of a device to a neighbour.
type link struct {
	stream                 *streams.Stream
	came                   *streams.Event
	migrants, migrantsTo   streams.Span
	positions, positionsTo streams.Span
	to                     int // device
}

// maxBatch is how many steps are captured at most.
const maxBatch = 10

func newByStreams(s *halo.Session, b *box, threads, steps int, limit time.Duration) (made *byStreams, err error) {
	m := &byStreams{box: b, limit: limit, batch: min(maxBatch, steps)}
	for steps%m.batch != 0 {
		m.batch--
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.open.Close())
		}
	}()
	for i := range b.devices {
		e, err := m.newEnd(s.Compiler, i, threads)
		if err != nil {
			return nil, err
		}
		m.ends = append(m.ends, e)
	}
	var others []*streams.Stream
	for i, e := range m.ends {
		if i > 0 {
			others = append(others, e.stream)
		}
		for _, l := range e.links {
			if l != nil {
				others = append(others, l.stream)
			}
		}
	}
	m.graph, err = streams.Capture(m.ends[0].stream, others, func() error {
		for step := range m.batch {
			if err := m.step(step); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	m.open.Add(m.graph)
	return m, nil
}

// newEnd makes what a device needs.
func (m *byStreams) newEnd(c *kernels.Compiler, device, threads int) (e *end, err error) {
	d, b := m.box.devices[device], m.box
	e = &end{}
	if e.stream, e.done, err = m.newStream(d, "compute"); err != nil {
		return nil, err
	}
	f, err := c.Functions(d, source(threads), "advance_all", "merge_all")
	if err != nil {
		return nil, err
	}
	part := b.parts[device]
	each := func(do func(board, int64)) func() {
		return func() {
			mine := b.board(device)
			for s := range mine.Segments {
				do(mine, s)
			}
		}
	}
	launch := func(name string, f streams.Function, host func()) (*streams.Kernel, error) {
		spec := kernels.LaunchSpec[partArgument]{Name: name, Uses: []streams.Span{b.slots[device].All(), b.failures[device].All()}, Host: host, Function: f,
			Grid: [3]int{int(part.Segments), 1, 1}, Block: [3]int{threads, 1, 1}, Argument: part}
		k, err := kernels.Launch(d, spec)
		if err == nil {
			m.open.Add(k)
		}
		return k, err
	}
	if e.advance, err = launch("advance", f[0], each(board.advance)); err != nil {
		return nil, err
	}
	if e.merge, err = launch("merge", f[1], each(board.merge)); err != nil {
		return nil, err
	}
	for side, to := range []int{device - 1, device + 1} {
		if to < 0 || to >= len(b.devices) {
			continue
		}
		if e.links[side], err = m.newLink(device, to); err != nil {
			return nil, err
		}
	}
	return e, nil
}

type partArgument = part

func (m *byStreams) newStream(d *streams.Device, name string) (*streams.Stream, *streams.Event, error) {
	s, err := d.NewStream(streams.Normal)
	if err != nil {
		return nil, nil, err
	}
	m.open.Add(s)
	s.SetName("%s", name)
	e, err := d.NewEvent()
	if err == nil {
		m.open.Add(e)
	}
	return s, e, err
}

// newLink makes the copies from a device to a neighbour.
func (m *byStreams) newLink(from, to int) (l *link, err error) {
	b := m.box
	l = &link{to: to}
	if l.stream, l.came, err = m.newStream(b.devices[from], "to "+b.devices[to].String()); err != nil {
		return nil, err
	}
	q := &b.parts[from]
	own, there, list := int64(0), q.Segments, int64(listBelow)
	if to > from {
		own, there, list = q.Segments-1, -1, listAbove
	}
	span := func(device int, segment, list, bytes int64) streams.Span {
		return b.slots[device].Span(q.offset(segment, list), bytes)
	}
	all, positions := listBytes(q.Capacity), header+16*q.Capacity
	l.migrants, l.migrantsTo = span(from, own, list, all), span(to, there, list, all)
	l.positions, l.positionsTo = span(from, own, listState, positions), span(to, there, listState, positions)
	return l, nil
}

// step queues a step; all but the first one of a graph wait for the positions of the step before.
func (m *byStreams) step(n int) error {
	for i, e := range m.ends {
		if n > 0 {
			if err := m.await(i); err != nil {
				return err
			}
		}
		if err := e.part(e.advance, func(l *link) error { return l.stream.Copy(l.migrantsTo, l.migrants) }); err != nil {
			return err
		}
	}
	for i, e := range m.ends {
		if err := m.await(i); err != nil {
			return err
		}
		if err := e.part(e.merge, func(l *link) error { return l.stream.Copy(l.positionsTo, l.positions) }); err != nil {
			return err
		}
	}
	return nil
}

// part queues a kernel and the copies of what it made.
func (e *end) part(k *streams.Kernel, send func(l *link) error) error {
	if err := errors.Join(e.stream.Launch(k), e.stream.Record(e.done)); err != nil {
		return err
	}
	for _, l := range e.links {
		if l == nil {
			continue
		}
		if err := errors.Join(l.stream.Wait(e.done), send(l), l.stream.Record(l.came)); err != nil {
			return err
		}
	}
	return nil
}

// await has a device wait for what its neighbours sent, and until what it sent itself may be changed.
func (m *byStreams) await(device int) error {
	for _, e := range m.ends {
		for _, l := range e.links {
			if l == nil || l.to != device && e != m.ends[device] {
				continue
			}
			if err := m.ends[device].stream.Wait(l.came); err != nil {
				return err
			}
		}
	}
	return nil
}

// run makes so many steps, a multiple of those that were captured, and returns what they took.
func (m *byStreams) run(ctx context.Context, steps int) (time.Duration, error) {
	begun := time.Now()
	for done := 0; done < steps; done += m.batch {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		if err := m.graph.Launch(); err != nil {
			return 0, err
		}
	}
	err := m.ends[0].stream.Sync(m.limit)
	return time.Since(begun), err
}

// Close frees what it holds. Closing twice is no error.
func (m *byStreams) Close() error { return m.open.Close() }
