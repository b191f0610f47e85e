package packing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// fastest makes a job of the engine that is fastest for the task's layout, by what was
// measured on this device before, or is now.
func (p *Packer) fastest(t *task) (*Job, error) {
	key := p.choiceKey(t)
	times, ok := p.choices.get(key)
	if !ok {
		var err error
		if times, err = p.measure(t); err != nil {
			return nil, fmt.Errorf("packing: measure the engines: %w", err)
		}
		p.choices.put(key, times)
	}
	j, err := p.job(times[0].Engine, t)
	if err != nil {
		return nil, err
	}
	j.Why = why(times)
	return j, nil
}

// Timed is what an engine took.
type Timed struct {
	Engine Engine        `json:"engine"`
	Time   time.Duration `json:"ns"`
}

// why says what the engines took.
func why(times []Timed) string {
	var all []string
	for _, m := range times {
		all = append(all, fmt.Sprintf("%s %s", m.Engine, p2p.Microseconds(m.Time)))
	}
	return strings.Join(all, ", ")
}

// choiceKey names the layout and all else that the times depend on.
func (p *Packer) choiceKey(t *task) string {
	o := p.options
	o.Cache = ""
	return fmt.Sprintf("%x %s %s %s %v %+v", t.cargo.Layout.Key(), t.name(), p.where(t.packed), p.where(t.place.Data), t.cargo.Type != nil, o)
}

// where says what kind of memory a span lies in, as the packer's device sees it.
func (p *Packer) where(s streams.Span) string {
	switch {
	case s.Memory.Pinned():
		return "pinned"
	case s.Memory.Device() == p.device:
		return "here"
	}
	return "peer"
}

// measure returns what each engine that suits the task takes for it, the fastest first.
func (p *Packer) measure(t *task) (times []Timed, err error) {
	var open streams.Closers
	defer func() { err = errors.Join(err, open.Close()) }()
	if t.cargo.Layout.Size() == 0 {
		return []Timed{{Engine: Targeted}}, nil
	}
	rehearsal, err := p.rehearsal(t, &open)
	if err != nil {
		return nil, err
	}
	clock, err := newClock(p.device, &open)
	if err != nil {
		return nil, err
	}
	best := time.Duration(0)
	for _, e := range Engines() {
		j, err := p.job(e, rehearsal)
		if errors.Is(err, ErrUnsuited) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all, err := clock.time(j, autoBudget, best)
		if err = errors.Join(err, j.Close()); err != nil {
			return nil, err
		}
		took := all[0] // what makes a batch longer is not the engine
		if best == 0 || took < best {
			best = took
		}
		times = append(times, Timed{e, took})
	}
	slices.SortStableFunc(times, func(a, b Timed) int { return int(a.Time - b.Time) })
	return times, nil
}

// mostScratch is how much memory a rehearsal of unpacking may take for the place.
const mostScratch = 1 << 30

// rehearsal returns the task with buffers of its own, of the same kinds of memory, so that
// nothing of the caller's is written. Packing reads the caller's place. Unpacking writes
// over one of its own; where that would be large, it is rehearsed by packing.
func (p *Packer) rehearsal(t *task, open *streams.Closers) (*task, error) {
	r := *t
	l := t.cargo.Layout
	var err error
	if r.packed, err = alike(t.packed, l.Size(), open); err != nil {
		return nil, err
	}
	const line = 128
	extent := l.TrueUB() - l.TrueLB()
	if !t.unpack || extent > mostScratch {
		r.unpack = false
		return &r, nil
	}
	if r.place.Data, err = alike(t.place.Data, extent+line, open); err != nil {
		return nil, err
	}
	start := t.place.Data.Address() + uint64(t.place.Origin+l.TrueLB()) // lies as it does there
	r.place.Origin = int64(start%line) - l.TrueLB()
	return &r, nil
}

// alike allocates memory of the same kind as that of a span.
func alike(s streams.Span, bytes int64, open *streams.Closers) (streams.Span, error) {
	alloc := s.Memory.Device().Alloc
	if s.Memory.Pinned() {
		alloc = s.Memory.Device().AllocPinned
	}
	m, err := alloc(bytes)
	if err != nil {
		return streams.Span{}, err
	}
	open.Add(m)
	return m.All(), nil
}

// Time returns how long a job takes on the device, from one run to the next of some that
// follow each other: the median of batches, which take about the budget together. The
// job does its work, many times.
func (p *Packer) Time(j *Job, budget time.Duration) (t time.Duration, err error) {
	var open streams.Closers
	defer func() { err = errors.Join(err, open.Close()) }()
	c, err := newClock(p.device, &open)
	if err != nil {
		return 0, err
	}
	all, err := c.time(j, budget, 0)
	if err != nil {
		return 0, err
	}
	return all[len(all)/2], nil
}

// clock takes the time of jobs on a device.
type clock struct {
	stream     *streams.Stream
	start, end *streams.Event
}

func newClock(d *streams.Device, open *streams.Closers) (c clock, err error) {
	if c.stream, err = d.NewStream(streams.Normal); err != nil {
		return c, err
	}
	open.Add(c.stream)
	for _, e := range []**streams.Event{&c.start, &c.end} {
		if *e, err = d.NewTimedEvent(); err != nil {
			return c, err
		}
		open.Add(*e)
	}
	return c, nil
}

const (
	batches    = 7
	mostRuns   = 400              // of a batch
	hopeless   = 3                // times as long as the best is not measured twice
	autoBudget = time.Millisecond // for an engine
	clockLimit = 60 * time.Second
)

// time returns how long a job takes in each of some batches, the shortest time first. One
// that is far from the best, where there is one, is run no more than twice.
func (c *clock) time(j *Job, budget, best time.Duration) ([]time.Duration, error) {
	if _, err := c.batch(j, 1); err != nil { // compiles, uploads, warms up
		return nil, err
	}
	one, err := c.batch(j, 1)
	if err != nil || best > 0 && one > hopeless*best+budget/50 {
		return []time.Duration{one}, err
	}
	runs := int(max(2, min(mostRuns, budget/batches/max(1, one))))
	var all []time.Duration
	for range batches {
		took, err := c.batch(j, runs)
		if err != nil {
			return nil, err
		}
		all = append(all, max(1, took))
	}
	slices.Sort(all)
	return all, nil
}

// batch runs the job so many times and returns the time of one.
func (c *clock) batch(j *Job, runs int) (time.Duration, error) {
	if err := c.stream.Record(c.start); err != nil {
		return 0, err
	}
	for range runs {
		if err := j.Queue(c.stream); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(c.stream.Record(c.end), c.stream.Sync(clockLimit)); err != nil {
		return 0, err
	}
	took, err := c.end.Since(c.start)
	return took / time.Duration(runs), err
}
