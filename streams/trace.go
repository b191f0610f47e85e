package streams

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Trace is what a tracer found out.
type Trace struct {
	Devices []DeviceTrace // as NewTracer was given them
	Zero    time.Time     // of the host's clock, that times count from: when the first operation began; zero where there is none
}

// DeviceTrace is what the streams of one device did.
type DeviceTrace struct {
	Device *Device
	// Within is how far all times of this device may be off those of others, in either
	// direction; 0 for host devices, which share a clock. Times of one device are as
	// exact as its events, see Event.Since.
	Within  time.Duration
	Streams []StreamTrace // in the order in which they were made, without those that did nothing, and then the lanes
	Lost    int           // operations that are not here: they were never done, or too many
	Err     error         // why there may be less here than there was, nil if all is
}

// StreamTrace is what one stream did, or what is in one lane, in order.
type StreamTrace struct {
	Name       string
	Operations []Operation
}

// Operation is one thing that a stream did. Those of one stream do not overlap. An
// operation begins when the one before it ended or, where the stream had nothing else to
// do, when the host queued it: the time until a GPU starts on it is part of it.
type Operation struct {
	Name       string // of a kernel, or what was copied where to
	Work       Work
	Step       int64
	Bytes      int64   // of a copy
	With       *Device // where a copy goes, comes from, or whom was waited for: this device too
	Begin, End time.Duration
}

// copied describes a copy: constants alone, since to queue it must allocate nothing.
func copied(work Work, dst, src *Memory, bytes int64) Operation {
	o := Operation{Work: work, Bytes: bytes, Name: "copy", With: dst.device}
	switch {
	case dst.pinned:
		o.Name = "copy to host"
	case src.pinned:
		o.Name = "copy from host"
	case dst.device != src.device:
		o.Name = "copy to peer"
	}
	return o
}

// Trace returns what was done in the window until now, at times of the host's clock since
// the first operation began. It may be called while streams are still busy, or after a
// failure: then it returns what was done.
func (t *Tracer) Trace() *Trace {
	all := &Trace{}
	var zero time.Time
	found := make([][]moment, len(t.tapes))
	for i, p := range t.tapes {
		d := DeviceTrace{Device: p.device}
		found[i], d.Lost, d.Err = p.moments()
		d.Within = p.clock.within()
		all.Devices = append(all.Devices, d)
		begins := []time.Time{p.firstNote()}
		for _, m := range found[i] {
			begins = append(begins, m.at)
		}
		for _, at := range begins {
			if !at.IsZero() && (zero.IsZero() || at.Before(zero)) {
				zero = at
			}
		}
	}
	all.Zero = zero
	for i, p := range t.tapes {
		p.arrange(&all.Devices[i], found[i], zero)
	}
	return all
}

// moment is a mark with the host's time at which it was done.
type moment struct {
	*mark
	at time.Time
}

// moments returns the marks of a device that were done, in the order in which they were
// recorded on each stream, and how many operations there are none for.
func (p *tape) moments() (found []moment, lost int, err error) {
	marks, lost, err := p.done()
	if err != nil || len(marks) == 0 {
		return nil, lost, err
	}
	if p.clock.last.event == nil {
		// A device that hangs does not show its clock again, but what it did before.
		p.clock.last, err = p.sight()
	}
	found, failed := p.times(marks)
	return found, lost, errors.Join(err, failed)
}

// times adds the times. Those between events are less exact the further apart they are,
// so the marks are looked at from the earliest of them, and that one alone from the
// clock's.
func (p *tape) times(marks []*mark) (found []moment, err error) {
	after := make([]time.Duration, len(marks))
	for i, m := range marks {
		if after[i], err = m.event.Since(p.clock.first.event); err != nil {
			return nil, err
		}
	}
	first := slices.Index(after, slices.Min(after))
	for _, m := range marks {
		since, err := m.event.Since(marks[first].event)
		if err != nil {
			return nil, err
		}
		found = append(found, moment{m, p.clock.host(after[first] + since)})
	}
	return found, nil
}

// done returns the marks whose events are done, and how many operations have none. A mark
// that is not done hides those after it on its stream.
func (p *tape) done() (marks []*mark, lost int, err error) {
	open := map[*track]bool{}
	for i := range min(p.next.Load(), int64(len(p.marks))) {
		m := &p.marks[i]
		if !m.recorded.Load() {
			continue
		}
		if !open[m.track] {
			done, err := m.event.Done()
			if err != nil {
				return nil, 0, err
			}
			open[m.track] = !done
		}
		switch {
		case !open[m.track]:
			marks = append(marks, m)
		case m.operation.Name != "":
			lost++
		}
	}
	return marks, lost + int(p.lost.Load()), nil
}

// arrange gives each stream its operations, with times since zero.
func (p *tape) arrange(d *DeviceTrace, found []moment, zero time.Time) {
	slices.SortStableFunc(found, func(a, b moment) int { return cmp.Compare(p.place(a.track), p.place(b.track)) })
	for len(found) > 0 {
		t := found[0].track
		n := slices.IndexFunc(found, func(m moment) bool { return m.track != t })
		if n < 0 {
			n = len(found)
		}
		if s := t.operations(found[:n], zero); len(s.Operations) > 0 {
			d.Streams = append(d.Streams, s)
		}
		found = found[n:]
	}
	for _, l := range p.allLanes() {
		if s := l.since(zero); len(s.Operations) > 0 {
			d.Streams = append(d.Streams, s)
		}
	}
}

// place returns the place of a track among those of the device.
func (p *tape) place(t *track) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Index(p.tracks, t)
}

// operations makes operations of the marks of one stream.
func (t *track) operations(marks []moment, zero time.Time) StreamTrace {
	s := StreamTrace{Name: t.name}
	var last time.Duration
	for _, m := range marks {
		at := max(last, m.at.Sub(zero))
		if o := m.operation; o.Name != "" {
			o.Begin, o.End = last, at
			s.Operations = append(s.Operations, o)
		}
		last = at
	}
	return s
}

// Err joins the errors of the devices.
func (t *Trace) Err() error {
	var errs []error
	for _, d := range t.Devices {
		errs = append(errs, d.Err)
	}
	return errors.Join(errs...)
}
