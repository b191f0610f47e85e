package streams

import (
	"errors"
	"math"
	"time"
)

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
func (p *tape) sight() (best sighting, err error) {
	best.within = math.MaxInt64
	spare, err := p.device.NewTimedEvent()
	if err != nil {
		return sighting{}, err
	}
	if best.event, err = p.device.NewTimedEvent(); err != nil {
		return sighting{}, err
	}
	for range sightings {
		look, err := p.look(spare)
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
func (p *tape) look(e *Event) (sighting, error) {
	before := time.Now()
	if err := p.stream.Record(e); err != nil {
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
