package streams

import (
	"fmt"
	"sync"
	"time"
)

// Lane is a row of a trace for what is done for a device beside its streams, such as messages that a library carries. Of a device that is
// not traced it is nil, and notes nothing. Its methods may be called from several goroutines.
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

// Note says what was done from one time to another, if the operation's step is one to be traced. Notes of a lane come in the order of
// their times, and one a step has room.
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
func (p *tape) firstNote() (first time.Time) {
	for _, l := range p.allLanes() {
		l.mu.Lock()
		if len(l.notes) > 0 && (first.IsZero() || l.notes[0].begin.Before(first)) {
			first = l.notes[0].begin
		}
		l.mu.Unlock()
	}
	return first
}

func (p *tape) allLanes() []*Lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lanes
}
