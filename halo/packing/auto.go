package packing

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/streams"
)

// fastest makes a job of the engine that is fastest for the task's layout: by earlier measurements on this device, by
// the model if Options.Predict is set and the model covers the task, or by measuring now.
func (p *Packer) fastest(t *task) (*Job, error) {
	if t.message.Layout.Size() == 0 {
		return &Job{Engine: Targeted, Why: "there is nothing to do"}, nil
	}
	kind, layout := p.kind(t), t.layoutName()
	c, ok := p.tunings.get(kind, layout)
	if !ok && p.options.Predict {
		if j, err := p.predicted(t, p.tunings.model(kind)); j != nil || err != nil {
			return j, err
		}
	}
	if !ok {
		var err error
		if c, err = p.measure(t, p.tunings.model(kind)); err != nil {
			return nil, fmt.Errorf("packing: measure the engines: %w", err)
		}
		c.Kind, c.Layout = kind, layout
		if !p.device.IsDry() {
			p.tunings.put(c)
		}
	}
	return p.first(c.Times, t, c.why())
}

// first makes a job of the first of the engines that suits the task, and says why. The measurement may come from
// another type with the same layout, and an engine may suit that type only: blocks of an indexed_block that touch have
// one length for targeted.
func (p *Packer) first(order []timed, t *task, why string) (*Job, error) {
	for _, m := range order {
		j, err := p.suited(m.Engine, t)
		if err != nil {
			return nil, err
		}
		if j != nil {
			j.Why = why
			return j, nil
		}
	}
	return nil, fmt.Errorf("packing: %s: %w, nor does any other", t.name(), ErrUnsuited)
}

// why says what the engines took, and which were not tried.
func (t *tuning) why() string {
	text := "measured: " + listTimes(t.Times)
	if len(t.Skipped) > 0 {
		text += "; skipped, predicted hopeless: " + listTimes(t.Skipped)
	}
	return text
}

// layoutName names the task's layout. What the addresses are multiples of belongs to it:
// it says how wide words may be.
func (t *task) layoutName() string {
	return fmt.Sprintf("%x %d %v", t.message.Layout.Key(), t.alignment(), t.message.Type != nil)
}

// kind names all else that the times depend on.
func (p *Packer) kind(t *task) string {
	o := p.options
	o.Cache, o.Predict = "", false
	return fmt.Sprintf("%s %s %s %+v", t.name(), p.where(t.packed), p.where(t.place.Data), o)
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

// predicted makes a job of the engine that the model says is fastest. It is nil if the model lacks one of the engines
// that suit the task.
func (p *Packer) predicted(t *task, m model) (*Job, error) {
	var times []timed
	for _, f := range m.forecasts(t.features(), namesOf(p.engines)) {
		if f.known() {
			times = append(times, f.timed)
			continue
		}
		j, err := p.suited(f.Engine, t)
		if err != nil {
			return nil, err
		}
		if j != nil {
			return nil, j.Close()
		}
	}
	if len(times) == 0 {
		return nil, nil
	}
	return p.first(times, t, "predicted: "+listTimes(times))
}

// suited makes a job of an engine; nil if the engine does not suit the task.
func (p *Packer) suited(e Engine, t *task) (*Job, error) {
	j, err := p.jobOf(e, t)
	if errors.Is(err, ErrUnsuited) {
		return nil, nil
	}
	return j, err
}

// autoBudget is how long one engine is timed.
const autoBudget = time.Millisecond

// measure times the engines that suit the task, except those that the model says are hopeless.
func (p *Packer) measure(t *task, m model) (c tuning, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	trial, err := p.trial(t, &open)
	if err != nil {
		return c, err
	}
	clock, err := NewClock(p.compiler, p.device)
	if err != nil {
		return c, err
	}
	open.Add(clock)
	c.Features = trial.features()
	jobs, skipped, err := p.contenders(trial, m, &open)
	if err != nil {
		return c, err
	}
	if len(jobs) == 0 {
		return c, ErrUnsuited // nor does any other
	}
	c.Skipped = skipped
	if p.device.IsDry() {
		c.Times, err = p.largest(t)
	} else {
		c.Times, err = clock.compare(jobs)
	}
	return c, err
}

// largest returns the engines that suit the task, the one that takes the most memory first: a dry run does not know
// which will be the fastest.
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

// contenders makes jobs of the engines that suit the task and are not hopeless. One of
// which nothing is known is not.
func (p *Packer) contenders(t *task, m model, open *streams.Resources) (jobs []*Job, skipped []timed, err error) {
	var best forecast // of those that suit
	for _, f := range m.forecasts(t.features(), namesOf(p.engines)) {
		if f.hopeless(best) {
			skipped = append(skipped, f.timed)
			continue
		}
		j, err := p.suited(f.Engine, t)
		if err != nil {
			return nil, nil, err
		}
		if j == nil {
			continue
		}
		open.Add(j)
		jobs = append(jobs, j)
		if !best.known() {
			best = f
		}
	}
	return jobs, skipped, nil
}

// compare returns the times of the jobs, the fastest first. A job whose first run takes far longer than another's is
// not run again; the others are timed in rounds.
func (c *Clock) compare(jobs []*Job) (times []timed, err error) {
	var ones []time.Duration
	for _, j := range jobs {
		one, err := c.once(j)
		if err != nil {
			return nil, err
		}
		ones = append(ones, one)
	}
	limit := hopeless*slices.Min(ones) + autoBudget/50 // one run of a few microseconds says little
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

// maxScratch is how much memory a trial of unpacking may take for the place.
const maxScratch = 1 << 30

// line is what the addresses of memory are multiples of, and more.
const line = 128

// trial returns the task with scratch buffers of the same kinds of memory and alignment, so that the caller's memory is
// not written. Packing reads the caller's place. Unpacking writes to scratch memory; where that would be large, packing
// is timed instead.
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
	start := t.place.Data.Address() + uint64(t.place.Origin+l.TrueLB()) // lies as it does there
	r.place = Place{Data: place.All(), Origin: int64(start%line) - l.TrueLB()}
	return &r, nil
}

// alike allocates memory of the same kind as that of a span.
func alike(s streams.Span, bytes int64, open *streams.Resources) (*streams.Memory, error) {
	alloc := s.Memory.Device().Alloc
	if s.Memory.Pinned() {
		alloc = s.Memory.Device().AllocPinned
	}
	m, err := alloc(bytes)
	if err != nil {
		return nil, err
	}
	open.Add(m)
	return m, nil
}
