package streams

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Window is the steps that are traced, those after First-1 up to Last.
type Window struct{ First, Last int64 }

func (w Window) holds(step int64) bool { return step >= w.First && step <= w.Last }

// Steps returns how many steps there are.
func (w Window) Steps() int64 { return w.Last - w.First + 1 }

// marksPerStep is how many marks a device may need in one step: six messages each way
// have five operations each, which may need a mark before and one after, and there are
// the sweeps and norms.
const marksPerStep = 128

// MaxTracedSteps bounds the events that a tracer holds.
const MaxTracedSteps = 1000

// Tracer finds out what the streams of some devices do and when, in the steps of a
// window, by timed events between their operations. Streams that are made after it are
// traced, in the steps that Stream.BeginStep was told of.
//
// On a GPU an event between two operations takes about a microsecond, so that a
// traced step is slower than another. All events are made beforehand.
type Tracer struct {
	tapes []*tape // by device
}

// tape is a tracer's part for one device. Any of its streams takes the next free mark.
type tape struct {
	device *Device
	window Window
	stream *Stream // to look at the device's clock by
	clock  clock
	marks  []mark
	next   atomic.Int64
	lost   atomic.Int64 // operations for which there was no mark left
	closed atomic.Bool
	mu     sync.Mutex
	tracks []*track
	lanes  []*Lane
}

// mark is an event on a stream, and the operation that it ends.
type mark struct {
	event     *Event
	track     *track
	operation Operation   // what came before the event on the stream; none where it has no name
	recorded  atomic.Bool // all else is set, and the event is on its stream
}

// NewTracer switches tracing on for the devices, which have none yet. Close ends it.
func NewTracer(devices []*Device, w Window) (t *Tracer, err error) {
	if n := w.Steps(); n < 1 || n > MaxTracedSteps {
		return nil, fmt.Errorf("streams: a trace of %d steps; must be between 1 and %d", n, MaxTracedSteps)
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

// open makes the events, looks at the device's clock, and lets the device's streams
// know.
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
		return t.device.fail(errors.New("it has a tracer"), "trace it")
	}
	return nil
}

// Close switches tracing off and frees the events. It must not be called while work is
// queued on the traced streams. Closing twice is no error.
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

// clock translates the times of one device, which only tells how long after one event
// another was done, to those of the host, which all devices share. It knows the host's
// time of two events, one before all that is traced and one after it: clocks of devices
// do not run at quite the same speed.
type clock struct {
	first, last sighting
}

// sighting is an event with the host's time at which it was done, give or take within.
type sighting struct {
	event  *Event
	at     time.Time
	within time.Duration
}

// sightings is how often the clock is looked at; the tightest look counts.
const sightings = 16

// sightLimit is how long one look may take.
const sightLimit = 2 * time.Second

// maxDrift is by how much the speeds of two clocks may differ. What seems to be more,
// over a short time, is how inexact the sightings are.
const maxDrift = 1e-4

// sight looks at the clock of the device: an event on an idle stream is done between
// the two times of the host before it is recorded and after it was seen to be done.
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

// look records the event, and takes its own time where that is of the host's clock.
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

// host returns the host's time that is so long after the first sighting by the clock
// of the device.
func (c *clock) host(after time.Duration) time.Time {
	if c.last.event != nil {
		if whole, err := c.last.event.Since(c.first.event); err == nil && whole > 0 {
			speed := float64(c.last.at.Sub(c.first.at)) / float64(whole)
			after = time.Duration(float64(after) * min(max(speed, 1-maxDrift), 1+maxDrift))
		}
	}
	return c.first.at.Add(after)
}

// within returns how far off a time may be.
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
