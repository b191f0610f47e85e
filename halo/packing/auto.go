package packing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// timed is the measured time of an engine.
type timed struct {
	Engine Engine        `json:"engine"`
	Time   time.Duration `json:"ns"`
}

// tuningsVersion changes when tasks are measured differently. The engines have their own revisions.
const tuningsVersion = 4

var errUnknown = errors.New("packing: not measured in a dry run")

// fastest returns a job of the fastest engine for the task's layout. The engines are measured once for each
// kind of device and task, and the compiler's cache keeps the times.
func (p *Packer) fastest(t *task) (*Job, error) {
	if t.message.Layout.Size() == 0 {
		return &Job{Engine: Targeted, Why: "empty message"}, nil
	}
	var dry []timed
	times, _, err := kernels.Remember(p.compiler, "packing", p.tuningKey(t), p.isTuned, func() ([]timed, error) {
		times, err := p.measure(t)
		if err == nil && p.device.IsDry() {
			dry, err = times, errUnknown
		}
		return times, err
	})
	if errors.Is(err, errUnknown) {
		times, err = dry, nil
	}
	if err != nil {
		return nil, fmt.Errorf("packing: measure the engines: %w", err)
	}
	return p.first(times, t)
}

// isTuned reports whether the times are measurements of these engines.
func (p *Packer) isTuned(times []timed) bool {
	names := namesOf(p.engines)
	return len(times) > 0 && !slices.ContainsFunc(times, func(m timed) bool {
		return m.Time <= 0 || !slices.Contains(names, m.Engine)
	})
}

// first returns a job of the first engine that supports the task. The measurement may come from another type
// with the same layout, and an engine may support only that type: adjacent blocks of an indexed_block have
// one length for targeted.
func (p *Packer) first(order []timed, t *task) (*Job, error) {
	for _, m := range order {
		j, err := p.suited(m.Engine, t)
		if err != nil {
			return nil, err
		}
		if j != nil {
			j.Why = "measured: " + listTimes(order)
			return j, nil
		}
	}
	return nil, fmt.Errorf("packing: %s: %w (any of the engines)", t.name(), ErrUnsuited)
}

func listTimes(times []timed) string {
	var all []string
	for _, m := range times {
		all = append(all, fmt.Sprintf("%s %s", m.Engine, p2p.Microseconds(m.Time)))
	}
	return strings.Join(all, ", ")
}

// tuningKey names everything that the times depend on, including the alignment of the addresses, which
// determines the word size.
func (p *Packer) tuningKey(t *task) string {
	var engines []string
	for _, e := range p.engines {
		engines = append(engines, fmt.Sprint(e.name, " ", e.revision))
	}
	d := p.device
	return fmt.Sprintf("version %d, engines %v, %s %s %s, %s from %s to %s, %+v, layout %x, alignment %d, type %v",
		tuningsVersion, engines, d.Backend, d.Name, d.Arch, t.name(), p.where(t.packed), p.where(t.place.Data),
		p.options, t.message.Layout.Key(), t.alignment(), t.message.Type != nil)
}

// where names the kind of memory of a span, as seen by the packer's device.
func (p *Packer) where(s streams.Span) string {
	switch {
	case s.Memory.Pinned():
		return "pinned"
	case s.Memory.Device() == p.device:
		return "here"
	}
	return "peer"
}

// suited makes a job of an engine; nil if the engine does not support the task.
func (p *Packer) suited(e Engine, t *task) (*Job, error) {
	j, err := p.jobOf(e, t)
	if errors.Is(err, ErrUnsuited) {
		return nil, nil
	}
	return j, err
}

// autoBudget is the time for measuring one engine.
const autoBudget = time.Millisecond

// measure returns the times of the engines that support the task, the fastest first.
func (p *Packer) measure(t *task) (times []timed, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	trial, err := p.trial(t, &open)
	if err != nil {
		return nil, err
	}
	clock, err := NewClock(p.compiler, p.device)
	if err != nil {
		return nil, err
	}
	open.Add(clock)
	var jobs []*Job
	for _, e := range namesOf(p.engines) {
		j, err := p.suited(e, trial)
		if err != nil {
			return nil, err
		}
		if j != nil {
			open.Add(j)
			jobs = append(jobs, j)
		}
	}
	switch {
	case len(jobs) == 0:
		return nil, ErrUnsuited // no engine is suitable
	case p.device.IsDry():
		return p.largest(t)
	}
	return clock.compare(jobs)
}

// largest returns the engines that support the task, the one with the most memory first: a dry run does not
// know which is the fastest.
func (p *Packer) largest(t *task) (all []timed, err error) {
	takes := map[Engine]int64{}
	for _, e := range namesOf(p.engines) {
		before := p.device.Held()
		j, err := p.suited(e, t)
		if err != nil {
			return nil, err
		}
		if j == nil {
			continue
		}
		after := p.device.Held()
		takes[e] = after.Memory + after.Pinned - before.Memory - before.Pinned
		all = append(all, timed{Engine: e})
		if err := j.Close(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(takes[b.Engine], takes[a.Engine]) })
	return all, nil
}

// hopeless is the time, relative to the fastest engine, above which an engine is not measured again.
const hopeless = 3

// compare returns the times of the jobs, the fastest first. A job whose first run is far slower than the
// fastest is not run again; the others are timed in rounds.
func (c *Clock) compare(jobs []*Job) (times []timed, err error) {
	var ones []time.Duration
	for _, j := range jobs {
		one, err := c.once(j)
		if err != nil {
			return nil, err
		}
		ones = append(ones, one)
	}
	limit := hopeless*slices.Min(ones) + autoBudget/50 // single runs of a few microseconds are inaccurate
	var left []*Job
	var theirs []time.Duration
	for i, j := range jobs {
		if ones[i] > limit {
			times = append(times, timed{j.Engine, ones[i]})
			continue
		}
		left, theirs = append(left, j), append(theirs, ones[i])
	}
	took, err := c.rounds(autoBudget, left, theirs)
	for i, median := range medians(took) {
		times = append(times, timed{left[i].Engine, median})
	}
	slices.SortStableFunc(times, func(a, b timed) int { return cmp.Compare(a.Time, b.Time) })
	return times, err
}

// maxScratch is the maximum memory of a trial of unpacking, in bytes.
const maxScratch = 1 << 30

// line is the minimum alignment of allocated memory, in bytes.
const line = 128

// trial returns the task with scratch buffers of the same kinds of memory and alignment, so that the caller's
// memory is not written. Packing reads the caller's memory. Unpacking writes to scratch memory; if that would
// be too large, packing is timed instead.
func (p *Packer) trial(t *task, open *streams.Resources) (*task, error) {
	r := *t
	l := t.message.Layout
	packed, err := alike(t.packed, l.Size()+line, open)
	if err != nil {
		return nil, err
	}
	r.packed = packed.Span(int64(t.packed.Address()%line), l.Size())
	extent := l.TrueUB() - l.TrueLB()
	if !t.unpack || extent > maxScratch {
		r.unpack = false
		return &r, nil
	}
	place, err := alike(t.place.Data, extent+line, open)
	if err != nil {
		return nil, err
	}
	start := t.place.Data.Address() + uint64(t.place.Origin+l.TrueLB()) // same alignment as the original
	r.place = Place{Data: place.All(), Origin: int64(start%line) - l.TrueLB()}
	return &r, nil
}

// alike allocates memory of the same kind as that of a span.
func alike(s streams.Span, bytes int64, open *streams.Resources) (*streams.Memory, error) {
	alloc := open.Alloc
	if s.Memory.Pinned() {
		alloc = open.AllocPinned
	}
	return alloc(s.Memory.Device(), bytes), open.Err()
}
