package main

import (
	"errors"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// byStreams steps a box by a kernel for each part of a step, copies between neighbours, and events.
type byStreams struct {
	*compare.Queue
	box  *box
	ends []*end
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

func newByStreams(w *ranks.World, b *box, threads int) (*byStreams, error) {
	m := &byStreams{Queue: &compare.Queue{}, box: b}
	b.open.Add(m)
	m.Iteration = m.step
	for i := range w.Devices() {
		e, err := m.newEnd(w, i, threads)
		if err != nil {
			return nil, err
		}
		m.ends = append(m.ends, e)
	}
	return m, nil
}

// newEnd makes what a device needs.
func (m *byStreams) newEnd(w *ranks.World, device, threads int) (e *end, err error) {
	d, b := m.box.devices[device], m.box
	e = &end{}
	if e.stream, e.done, err = m.newStream(d, "compute"); err != nil {
		return nil, err
	}
	f, err := w.Functions(device, "advance_all", "merge_all")
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
			b.open.Add(k)
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
	s, err := m.NewStream(d)
	if err != nil {
		return nil, nil, err
	}
	s.SetName("%s", name)
	e, err := m.NewEvent(d)
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

// step queues a step: it begins once the positions of the step before are there.
func (m *byStreams) step(int) error {
	for i, e := range m.ends {
		if err := m.await(i, m.WaitEarlier); err != nil {
			return err
		}
		if err := e.part(e.advance, func(l *link) error { return l.stream.Copy(l.migrantsTo, l.migrants) }); err != nil {
			return err
		}
	}
	for i, e := range m.ends {
		if err := m.await(i, (*streams.Stream).Wait); err != nil {
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
func (m *byStreams) await(device int, wait func(*streams.Stream, *streams.Event) error) error {
	for _, e := range m.ends {
		for _, l := range e.links {
			if l == nil || l.to != device && e != m.ends[device] {
				continue
			}
			if err := wait(m.ends[device].stream, l.came); err != nil {
				return err
			}
		}
	}
	return nil
}
