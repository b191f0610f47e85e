package streams

import "fmt"

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
