package streams

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Trace is what a tracer found out.
type Trace struct {
	Devices []DeviceTrace // as NewTracer was given them
	// of the host's clock, that times count from: when the first operation began; zero where there is none
	Zero time.Time
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
	With       *Device // where a copy goes or comes from, or the device that was waited for; may be this device
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
func (t *tape) moments() (found []moment, lost int, err error) {
	marks, lost, err := t.done()
	if err != nil || len(marks) == 0 {
		return nil, lost, err
	}
	if t.clock.last.event == nil {
		// A device that hangs does not show its clock again, but what it did before.
		t.clock.last, err = t.sight()
	}
	found, failed := t.times(marks)
	return found, lost, errors.Join(err, failed)
}

// times adds the times. Those between events are less exact the further apart they are,
// so the marks are looked at from the earliest of them, and that one alone from the
// clock's.
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

// done returns the marks whose events are done, and how many operations have none. A mark
// that is not done hides those after it on its stream.
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

// place returns the place of a track among those of the device.
func (t *tape) place(k *track) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Index(t.tracks, k)
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

// Lane is a row of a trace for what is done for a device beside its streams, such as messages that a library carries.
// Of a device that is not traced it is nil, and notes nothing. Its methods may be called from several goroutines.
type Lane struct {
	tape  *tape
	name  string
	mu    sync.Mutex
	notes []note
}

// note is an operation by the host's clock.
type note struct {
	operation  Operation
	begin, end time.Time
}

// NewLane makes a lane of that name, nil where the device is not traced.
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

// Note says what was done from one time to another, if the operation's step is one to be traced. Notes of a lane come
// in the order of their times, and one a step has room.
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

// since returns what was noted, with times since zero.
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

// firstNote returns when the first note of all lanes begins, zero where there is none.
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

// track is what a tracer knows of one stream. It belongs to the thread that feeds the
// stream.
//
// Operations of a stream run one after another, so one mark after each is enough: it
// ends one and begins the next. Only where the stream had nothing to do when an operation
// was queued, a mark before it says when that was.
type track struct {
	tape *tape
	name string
	step int64
	on   bool  // the step is one to be traced
	last *mark // the last on the stream; nil if there is none
}

// newTrack returns the track of a new stream, nil where the device is not traced.
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

// SetName says what the stream is called in a trace. It is to be called before the
// stream is used.
func (s *Stream) SetName(format string, args ...any) {
	if s.track != nil {
		s.track.name = fmt.Sprintf(format, args...)
	}
}

// BeginStep says that what is queued from here on belongs to step n, for a tracer. It
// is to be called by the thread that feeds the stream.
func (s *Stream) BeginStep(n int64) {
	if t := s.track; t != nil {
		t.step, t.on = n, t.tape.window.holds(n)
		if !t.on {
			t.last = nil
		}
	}
}

// Traced reports whether a tracer looks at any of the steps from first to last.
func (s *Stream) Traced(first, last int64) bool {
	return s.track != nil && first <= s.track.tape.window.Last && last >= s.track.tape.window.First
}

// Step returns the step that the stream is at, 0 where no tracer looks at it.
func (s *Stream) Step() int64 {
	if s.track == nil {
		return 0
	}
	return s.track.step
}

// Follow makes s be at the step that the other stream is at.
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

// mark puts a mark on the stream, which ends the operation. Where no mark is left, the
// stream has no last one: what comes next has no beginning.
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

// Work says what kind of work an operation is, for one who looks at a trace.
type Work string

// The kinds of work. A kernel that says nothing else does OtherWork.
const (
	Sweep     Work = "sweep"    // a stencil applied to points
	Pack      Work = "pack"     // messages gathered into a buffer
	Unpack    Work = "unpack"   // messages spread out of a buffer
	Exchange  Work = "exchange" // a kernel that stores into the memory of neighbours
	CopyWork  Work = "copy"     // messages on their way between memories
	WaitWork  Work = "wait"     // nothing is done: the stream waits for an event
	OtherWork Work = "other"
)

// Communicates reports whether the work is part of an exchange.
func (w Work) Communicates() bool {
	return w == Pack || w == Unpack || w == Exchange || w == CopyWork
}
