package streams

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Window is the range of steps that are traced, First to Last, inclusive.
type Window struct {
	First int64 // first traced step, counted from 1
	Last  int64 // last traced step
}

func (w Window) holds(step int64) bool { return step >= w.First && step <= w.Last }

// Steps returns the number of steps.
func (w Window) Steps() int64 { return w.Last - w.First + 1 }

// marksPerStep bounds the marks of a device per step: six messages in each direction have five operations each,
// each may need two marks, and there are the sweeps and norms.
const marksPerStep = 128

// MaxTracedSteps bounds the number of traced steps, and thus of events that a tracer holds.
const MaxTracedSteps = 1000

// Tracer records which operations the streams of some devices run, and when, in the steps of a window, by timed
// events between the operations. It traces streams that are created after it, in the steps set by
// Stream.BeginStep.
//
// On a GPU an event between two operations takes about a microsecond, so traced steps are slower than others. All
// events are created beforehand.
type Tracer struct {
	tapes []*tape // per device
}

// tape is the part of a tracer for one device. Each stream of the device takes the next free mark.
type tape struct {
	device *Device
	window Window
	stream *Stream // used to read the clock of the device
	clock  clock
	marks  []mark
	next   atomic.Int64
	lost   atomic.Int64 // number of operations without a free mark
	closed atomic.Bool
	mu     sync.Mutex
	tracks []*track
	lanes  []*Lane
}

// mark is an event on a stream, and the operation that it ends.
type mark struct {
	event     *Event
	track     *track
	operation Operation   // operation before the event on the stream; none if its name is empty
	recorded  atomic.Bool // all other fields are set, and the event is on its stream
}

// NewTracer starts tracing on the devices, which must not be traced yet. The window must have between 1 and
// MaxTracedSteps steps. Close ends it.
func NewTracer(devices []*Device, w Window) (t *Tracer, err error) {
	if n := w.Steps(); n < 1 || n > MaxTracedSteps {
		return nil, fmt.Errorf("streams: trace: number of steps must be between 1 and %d, got %d", MaxTracedSteps, n)
	}
	made := &Tracer{}
	defer func() {
		if err != nil {
			t, err = nil, errors.Join(err, made.Close())
		}
	}()
	for _, d := range devices {
		p := &tape{device: d, window: w, marks: make([]mark, w.Steps()*marksPerStep)}
		made.tapes = append(made.tapes, p)
		if err := p.open(); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// open creates the events, reads the clock of the device, and starts tracing on it.
func (t *tape) open() (err error) {
	if t.stream, err = t.device.NewStream(Urgent); err != nil {
		return err
	}
	for i := range t.marks {
		if t.marks[i].event, err = t.device.NewTimedEvent(); err != nil {
			return err
		}
	}
	if t.clock.first, err = t.sight(); err != nil {
		return err
	}
	if !t.device.tape.CompareAndSwap(nil, t) {
		return t.device.fail(errors.New("the device is already traced"), "trace")
	}
	return nil
}

// Close ends tracing and frees the events. It must not be called while work is queued on the traced streams.
// Closing twice is allowed.
func (t *Tracer) Close() error {
	var errs []error
	for _, p := range t.tapes {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

func (t *tape) close() error {
	t.closed.Store(true)
	t.device.tape.CompareAndSwap(t, nil)
	errs := []error{t.clock.close()}
	for i := range t.marks {
		if e := t.marks[i].event; e != nil {
			errs = append(errs, e.Close())
		}
	}
	if t.stream != nil {
		errs = append(errs, t.stream.Close())
	}
	return errors.Join(errs...)
}

// clock converts times of one device, which are only relative to events, to the host clock, which all devices
// share. It holds the host times of two events, one before all traced operations and one after, since device
// clocks drift.
type clock struct {
	first, last sighting
}

// sighting is an event with the host time at which it was done, plus or minus within.
type sighting struct {
	event  *Event
	at     time.Time
	within time.Duration
}

// sightings is the number of clock readings; the one with the smallest uncertainty counts.
const sightings = 16

// sightLimit is how long one reading may take.
const sightLimit = 2 * time.Second

// maxDrift bounds the relative drift of two clocks. A larger apparent drift, over a short time, is an uncertainty
// of the sightings.
const maxDrift = 1e-4

// sight reads the clock of the device: an event on an idle stream is done between the host time before it is
// recorded and that after it was seen to be done.
func (t *tape) sight() (best sighting, err error) {
	best.within = math.MaxInt64
	spare, err := t.device.NewTimedEvent()
	if err != nil {
		return sighting{}, err
	}
	if best.event, err = t.device.NewTimedEvent(); err != nil {
		return sighting{}, err
	}
	for range sightings {
		look, err := t.look(spare)
		if err != nil {
			return sighting{}, err
		}
		if look.within < best.within {
			best, spare = look, best.event
		}
	}
	return best, spare.Close()
}

// look records the event, and uses its own time if that is a host time.
func (t *tape) look(e *Event) (sighting, error) {
	before := time.Now()
	if err := t.stream.Record(e); err != nil {
		return sighting{}, err
	}
	if err := e.Sync(sightLimit); err != nil {
		return sighting{}, err
	}
	half := time.Since(before) / 2
	if host, ok := e.marker.(hostTimed); ok {
		at, err := host.when()
		return sighting{e, at, 0}, err
	}
	return sighting{e, before.Add(half), half}, nil
}

// host returns the host time for the given device time after the first sighting.
func (c *clock) host(after time.Duration) time.Time {
	if c.last.event != nil {
		if whole, err := c.last.event.Since(c.first.event); err == nil && whole > 0 {
			speed := float64(c.last.at.Sub(c.first.at)) / float64(whole)
			after = time.Duration(float64(after) * min(max(speed, 1-maxDrift), 1+maxDrift))
		}
	}
	return c.first.at.Add(after)
}

// within returns the uncertainty of a time.
func (c *clock) within() time.Duration { return max(c.first.within, c.last.within) }

func (c *clock) close() error {
	var errs []error
	for _, s := range []sighting{c.first, c.last} {
		if s.event != nil {
			errs = append(errs, s.event.Close())
		}
	}
	return errors.Join(errs...)
}
