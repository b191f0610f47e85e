package streams

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Trace holds the operations recorded by a tracer.
type Trace struct {
	Devices []DeviceTrace // in the order given to NewTracer
	// Zero is the host time that times count from: when the first operation began. It is zero if there are no
	// operations.
	Zero time.Time
}

// DeviceTrace holds the operations of the streams of one device.
type DeviceTrace struct {
	Device *Device // the traced device
	// ClockError is the uncertainty of times of this device relative to those of others, in either direction; 0 for CPU
	// devices, which share a clock. Times of one device are as exact as its events, see Event.Since.
	ClockError time.Duration
	Streams    []StreamTrace // in the order of their creation, without empty ones, followed by the lanes
	Lost       int           // number of missing operations: those never done, and those beyond the capacity
	Err        error         // why operations may be missing, or nil
}

// StreamTrace holds the operations of one stream or lane, in order.
type StreamTrace struct {
	Name       string      // set by Stream.SetName or Device.NewLane
	Operations []Operation // in the order of their times
}

// Operation is one operation of a stream. Operations of one stream do not overlap. An operation begins when the
// one before it ended or, if the stream was idle, when the host queued it, so it includes the launch latency.
type Operation struct {
	Name  string        // of a kernel, or the direction of a copy
	Work  Work          // kind of work
	Step  int64         // step number, see Stream.BeginStep
	Bytes int64         // of a copy
	With  *Device       // the other device of a copy, or the device that was waited for; may be this device
	Begin time.Duration // since Trace.Zero
	End   time.Duration // since Trace.Zero
}

// copied describes a copy. It uses only constant strings, since queuing must not allocate.
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

// Trace returns the operations in the window so far, with host times since the first operation began. It may be
// called while streams are busy, or after a failure: then it returns the completed operations.
func (t *Tracer) Trace() *Trace {
	all := &Trace{}
	var zero time.Time
	found := make([][]moment, len(t.tapes))
	for i, p := range t.tapes {
		d := DeviceTrace{Device: p.device}
		found[i], d.Lost, d.Err = p.moments()
		d.ClockError = p.clock.within()
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

// moment is a mark and the host time at which it was done.
type moment struct {
	*mark
	at time.Time
}

// moments returns the completed marks of a device, in the order in which they were recorded on each stream, and
// the number of operations without a mark.
func (t *tape) moments() (found []moment, lost int, err error) {
	marks, lost, err := t.done()
	if err != nil || len(marks) == 0 {
		return nil, lost, err
	}
	if t.clock.last.event == nil {
		// A device that hangs does not show its clock again, but its completed operations are available.
		t.clock.last, err = t.sight()
	}
	found, failed := t.times(marks)
	return found, lost, errors.Join(err, failed)
}

// times adds host times. The error of a time between two events grows with the time, so times are measured from
// the earliest mark, and only that one from the clock.
func (t *tape) times(marks []*mark) (found []moment, err error) {
	after := make([]time.Duration, len(marks))
	for i, m := range marks {
		if after[i], err = m.event.Since(t.clock.first.event); err != nil {
			return nil, err
		}
	}
	first := slices.Index(after, slices.Min(after))
	for _, m := range marks {
		since, err := m.event.Since(marks[first].event)
		if err != nil {
			return nil, err
		}
		found = append(found, moment{m, t.clock.host(after[first] + since)})
	}
	return found, nil
}

// done returns the marks whose events are done, and the number of operations without one. A mark that is not done
// hides those after it on its stream.
func (t *tape) done() (marks []*mark, lost int, err error) {
	open := map[*track]bool{}
	for i := range min(t.next.Load(), int64(len(t.marks))) {
		m := &t.marks[i]
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
	return marks, lost + int(t.lost.Load()), nil
}

// arrange gives each stream its operations, with times since zero.
func (t *tape) arrange(d *DeviceTrace, found []moment, zero time.Time) {
	slices.SortStableFunc(found, func(a, b moment) int { return cmp.Compare(t.place(a.track), t.place(b.track)) })
	for len(found) > 0 {
		first := found[0].track
		n := slices.IndexFunc(found, func(m moment) bool { return m.track != first })
		if n < 0 {
			n = len(found)
		}
		if s := first.operations(found[:n], zero); len(s.Operations) > 0 {
			d.Streams = append(d.Streams, s)
		}
		found = found[n:]
	}
	for _, l := range t.allLanes() {
		if s := l.since(zero); len(s.Operations) > 0 {
			d.Streams = append(d.Streams, s)
		}
	}
}

// place returns the index of a track among those of the device.
func (t *tape) place(k *track) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Index(t.tracks, k)
}

// operations converts the marks of one stream to operations.
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

// Lane is a row of a trace for operations outside the streams of a device, such as messages that a library sends.
// It is nil, and notes nothing, if the device is not traced. Its methods may be called from several goroutines.
type Lane struct {
	tape  *tape
	name  string
	mu    sync.Mutex
	notes []note
}

// note is an operation with host times.
type note struct {
	operation  Operation
	begin, end time.Time
}

// NewLane creates a lane with the given name. It returns nil if the device is not traced.
func (d *Device) NewLane(format string, args ...any) *Lane {
	p := d.tape.Load()
	if p == nil {
		return nil
	}
	l := &Lane{tape: p, name: fmt.Sprintf(format, args...), notes: make([]note, 0, p.window.Steps())}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lanes = append(p.lanes, l)
	return l
}

// Note records an operation and its times, if its step is traced. Notes of a lane must be in the order of their
// times; there is capacity for one per step.
func (l *Lane) Note(o Operation, begin, end time.Time) {
	if l == nil || !l.tape.window.holds(o.Step) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.notes) == cap(l.notes) {
		l.tape.lost.Add(1)
		return
	}
	l.notes = append(l.notes, note{o, begin, end})
}

// since returns the notes, with times since zero.
func (l *Lane) since(zero time.Time) StreamTrace {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := StreamTrace{Name: l.name}
	for _, n := range l.notes {
		o := n.operation
		o.Begin, o.End = n.begin.Sub(zero), n.end.Sub(zero)
		s.Operations = append(s.Operations, o)
	}
	return s
}

// firstNote returns the begin of the first note of all lanes, or zero if there is none.
func (t *tape) firstNote() (first time.Time) {
	for _, l := range t.allLanes() {
		l.mu.Lock()
		if len(l.notes) > 0 && (first.IsZero() || l.notes[0].begin.Before(first)) {
			first = l.notes[0].begin
		}
		l.mu.Unlock()
	}
	return first
}

func (t *tape) allLanes() []*Lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lanes
}

// track is the state of a tracer for one stream. It belongs to the thread that feeds the stream.
//
// Operations of a stream run one after another, so one mark after each is enough: it ends one and begins the next.
// If the stream was idle when an operation was queued, a mark before the operation holds that time.
type track struct {
	tape *tape
	name string
	step int64
	on   bool  // the current step is traced
	last *mark // last mark on the stream; nil if there is none
}

// newTrack returns the track of a new stream, or nil if the device is not traced.
func (d *Device) newTrack() *track {
	p := d.tape.Load()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &track{tape: p, name: fmt.Sprintf("stream %d", len(p.tracks))}
	p.tracks = append(p.tracks, t)
	return t
}

// SetName sets the name of the stream in traces. It must be called before the stream is used.
func (s *Stream) SetName(format string, args ...any) {
	if s.track != nil {
		s.track.name = fmt.Sprintf(format, args...)
	}
}

// BeginStep assigns the work queued from here on to step n, for a tracer. It must be called by the thread that
// feeds the stream.
func (s *Stream) BeginStep(n int64) {
	if t := s.track; t != nil {
		t.step, t.on = n, t.tape.window.holds(n)
		if !t.on {
			t.last = nil
		}
	}
}

// Traced reports whether any step from first to last, inclusive, is traced.
func (s *Stream) Traced(first, last int64) bool {
	return s.track != nil && first <= s.track.tape.window.Last && last >= s.track.tape.window.First
}

// Step returns the current step of the stream, or 0 if it is not traced.
func (s *Stream) Step() int64 {
	if s.track == nil {
		return 0
	}
	return s.track.step
}

// Follow sets the step of s to that of the other stream.
func (s *Stream) Follow(other *Stream) {
	if other.track != nil {
		s.BeginStep(other.track.step)
	}
}

// before is called before an operation is queued.
func (s *Stream) before() error {
	if s.track == nil || !s.track.on || s.captured {
		return nil
	}
	return s.track.before(s)
}

// after is called after an operation was queued.
func (s *Stream) after(o Operation) error {
	if s.track == nil || !s.track.on || s.captured || s.track.last == nil {
		return nil
	}
	return s.track.mark(s, o)
}

func (t *track) before(s *Stream) error {
	if t.tape.closed.Load() {
		t.on, t.last = false, nil
		return nil
	}
	if t.last != nil {
		if done, err := t.last.event.Done(); !done || err != nil {
			return err
		}
	}
	return t.mark(s, Operation{})
}

// mark records a mark on the stream, which ends the operation. If no mark is left, the next operation has no
// begin.
func (t *track) mark(s *Stream, o Operation) error {
	t.last = nil
	i := t.tape.next.Add(1) - 1
	if i >= int64(len(t.tape.marks)) {
		t.tape.lost.Add(1)
		return nil
	}
	m := &t.tape.marks[i]
	o.Step = t.step
	m.track, m.operation = t, o
	if err := s.Record(m.event); err != nil {
		return err
	}
	m.recorded.Store(true)
	t.last = m
	return nil
}

// Work is the kind of work of an operation, for traces.
type Work string

// The kinds of work. OtherWork is the default for kernels.
const (
	Sweep     Work = "sweep"    // a stencil applied to points
	Pack      Work = "pack"     // messages gathered into a buffer
	Unpack    Work = "unpack"   // messages scattered from a buffer
	Exchange  Work = "exchange" // a kernel that stores into the memory of neighbors
	CopyWork  Work = "copy"     // messages copied between memories
	WaitWork  Work = "wait"     // the stream waits for an event
	OtherWork Work = "other"
)

// Communicates reports whether the work is part of an exchange.
func (w Work) Communicates() bool {
	return w == Pack || w == Unpack || w == Exchange || w == CopyWork
}
