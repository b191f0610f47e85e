package scheme

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/streams"
)

// proposal is what one process brings to a decision beside norms.
type proposal struct {
	ended    bool  // its context
	pace     int64 // steps of the next round
	interval int64 // steps of the next interval, where one ends
}

// agreement is what the controllers of all processes agree on: the pace and the intervals of rank 0, an end where any
// has ended, and the norms of all.
type agreement struct {
	place *halo.Placement
	local []int
	step  *Step
	taken [][]taken // by look that was due last, then by process
}

func newAgreement(r *run) *agreement {
	return &agreement{place: r.place, local: r.local, step: r.step}
}

// room makes room for what is taken at so many looks.
func (a *agreement) room(looks int) {
	for len(a.taken) < looks {
		var all []taken
		for range a.place.Processes.Size() {
			all = append(all, a.step.newTaken())
		}
		a.taken = append(a.taken, all)
	}
}

// reach is called by all processes once a round. collected is what was taken, by look that is due and by rank.
func (a *agreement) reach(mine proposal, collected [][]taken) (proposal, error) {
	a.room(len(collected))
	b := mine.append(nil)
	for _, one := range collected {
		b = append(b, a.join(one).bytes()...)
	}
	all, err := a.place.Processes.Gather(context.Background(), "scheme: agree how a run goes on", b)
	if err != nil {
		return mine, err
	}
	agreed := proposal{}
	for rank, other := range all {
		if len(other) != len(b) {
			return mine, fmt.Errorf("scheme: %s brings %d bytes to a decision, and this process %d: they run different steps", a.place.Processes.Name(rank), len(other), len(b))
		}
		p := proposalOf(other)
		if rank == 0 {
			agreed.pace, agreed.interval = p.pace, p.interval
		}
		agreed.ended = agreed.ended || p.ended
		for i, rest := 0, other[proposalBytes:]; i < len(collected); i++ {
			bytes := len(rest) / (len(collected) - i)
			a.taken[i][rank].set(rest[:bytes], collected[i][a.local[0]])
			rest = rest[bytes:]
		}
	}
	return agreed, nil
}

// join returns what this process has taken of all its subdomains.
func (a *agreement) join(collected []taken) taken {
	sum := collected[a.local[0]]
	sum.norms, sum.reduced = slices.Clone(sum.norms), slices.Clone(sum.reduced)
	for _, rank := range a.local[1:] {
		for i := range sum.norms {
			sum.norms[i].Add(collected[rank].norms[i])
		}
		for i := range sum.reduced {
			sum.reduced[i].Join(collected[rank].reduced[i])
		}
	}
	return sum
}

const proposalBytes = 3 * 8

// append adds a proposal to bytes.
func (p proposal) append(b []byte) []byte {
	ended := uint64(0)
	if p.ended {
		ended = 1
	}
	for _, word := range []uint64{ended, uint64(p.pace), uint64(p.interval)} {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// proposalOf returns the proposal that bytes begin with.
func proposalOf(b []byte) proposal {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	return proposal{word(0) != 0, int64(word(1)), int64(word(2))}
}

const (
	normsBytes   = int(unsafe.Sizeof(reduce.Norms{}))
	reducedBytes = int(unsafe.Sizeof(sweep.Stored{}))
)

// bytes returns what was taken as bytes.
func (s taken) bytes() []byte {
	b := make([]byte, len(s.norms)*normsBytes+len(s.reduced)*reducedBytes)
	norms, reduced := s.views(b)
	copy(norms, s.norms)
	for i, r := range s.reduced {
		reduced[i] = r.Stored()
	}
	return b
}

// set sets it to what bytes say; like has the operations of the reductions.
func (s taken) set(b []byte, like taken) {
	norms, reduced := s.views(slices.Clone(b)) // which is aligned
	copy(s.norms, norms)
	for i, r := range reduced {
		s.reduced[i] = like.reduced[i].With(r)
	}
}

// views returns where bytes hold the norms and the reductions.
func (s taken) views(b []byte) ([]reduce.Norms, []sweep.Stored) {
	n := len(s.norms) * normsBytes
	return streams.View[reduce.Norms](b[:n:n]), streams.View[sweep.Stored](b[n:])
}

// round is what all workers do between two barriers: queue steps first to
// last, with norms for the last one where check is set, and wait for all of them
// where drain is. With every, norms of the steps before the last that it divides are taken within the launch, see
// checker. A round without steps ends the run.
type round struct {
	first, last  int64
	every        int64
	check, drain bool
	number       int64    // of those with check
	division     division // by a divider
}

// String is "in steps 3 to 5", or "after step 5" of a round without steps.
func (r round) String() string {
	switch {
	case r.last < r.first:
		return fmt.Sprintf("after step %d", r.last)
	case r.last == r.first:
		return fmt.Sprintf("in step %d", r.last)
	}
	return fmt.Sprintf("in steps %d to %d", r.first, r.last)
}

// controller decides how a run goes on. The workers meet at its barrier after every
// round; the last to arrive decides for all, from the norms that they collected.
//
// The norms of a step are looked at one step later, so that the devices have work while the host waits for them. Where
// they end the run, the levels of their step are still there: the step after it wrote others. Where it would not, see
// keepsLevels, no step is queued before they are looked at. Of a divider it is a launch that follows, not a step. Norms
// of steps within a launch are looked at before the next one: if they end the run, that launch is made again up to
// there, from what it has read.
//
// Where processes share the grid each has a controller. Those agree on what they decide from, once a round, and so
// decide alike.
type controller struct {
	options Options
	step    *Step
	points  int64
	workers *streams.WorkerGroup
	ctx     context.Context
	cancel  bool // the context ended: the run stops at limit

	arrived   atomic.Int64
	arrivals  []streams.Counter // by worker
	meeting   streams.Counter
	collected [][]taken  // by look that is due, then by rank; nothing of other processes
	together  *agreement // with other processes; nil where there are none
	ahead     bool       // a step may be queued while the norms of the one before are under way: not where a launch has norms of many steps

	mostChecks int64             // see checker
	checked    []checkedByWorker // in the last round with checks within it
	divider    divider           // nil for other schemes

	round     round
	rounds    int64  // with check
	limit     int64  // the last step, if no tolerance ends the run before
	pending   look   // norms that are under way; of step 0 for none
	due       []look // norms that workers bring to the next barrier, once the round is queued
	ending    bool   // the round is the last
	pace      pace
	intervals intervals

	result Result
}

// checkedByWorker is what checker.checked returns.
type checkedByWorker struct {
	norms []reduce.Norms
	ended int64
}

func newController(ctx context.Context, o Options, r *run, workers int, sch scheme) (*controller, error) {
	if !r.step.measures() {
		o.CheckEvery = 0 // there is nothing to look at
	}
	mostChecks, looks := int64(0), 1
	if k, ok := sch.(checker); ok && o.checks() {
		mostChecks = k.mostChecks()
	}
	divider, ok := sch.(divider)
	if ok {
		looks += mostLooks
	}
	c := &controller{
		divider:    divider,
		mostChecks: mostChecks, checked: make([]checkedByWorker, workers),
		options: o, points: r.place.Grid.Points(), workers: r.workers, ctx: ctx, arrivals: make([]streams.Counter, workers),
		collected: make([][]taken, looks), ahead: r.step.keepsLevels() && mostChecks == 0, step: r.step,
		limit: o.Steps, pace: newPace(sch.maxQueued()), intervals: newIntervals(o.Interval),
	}
	for i := range c.collected {
		for range r.subdomains {
			c.collected[i] = append(c.collected[i], r.step.newTaken())
		}
	}
	if r.shared() {
		c.together = newAgreement(r)
	}
	c.meeting.Whom = "the other workers"
	p, err := c.agreed(proposal{pace: c.pace.steps(0), interval: c.intervals.ask(0)})
	if err != nil {
		return nil, err
	}
	if !c.intervals.begin(0, p.interval) {
		c.limit = 1
	}
	c.plan(0, p.pace)
	return c, nil
}

// barrier waits for all workers and returns the next round. Before, a worker has
// put the norms that are due into collected.
func (c *controller) barrier(worker int) (round, error) {
	n := c.meeting.Count()
	c.arrivals[worker].Set(n + 1)
	if c.arrived.Add(1) == int64(len(c.arrivals)) {
		c.arrived.Store(0)
		if err := c.decide(); err != nil {
			return round{}, err
		}
		c.meeting.Set(n + 1)
		return c.round, nil
	}
	if err := c.workers.Await(&c.meeting, n+1); err != nil {
		return round{}, fmt.Errorf("%w (late: %v)", err, c.late(n+1))
	}
	return c.round, nil
}

// late lists the workers that have not arrived at the n-th barrier.
func (c *controller) late(n int64) (workers []int) {
	for w := range c.arrivals {
		if c.arrivals[w].Count() < n {
			workers = append(workers, w)
		}
	}
	return workers
}

// begin sets the next round, and what is due after it.
func (c *controller) begin(r round) {
	if r.check {
		c.rounds++
		r.number = c.rounds
	}
	c.round, c.due = r, c.due[:0]
	if n := c.pending.step; n > 0 && (r.last > n || n == c.limit || !c.ahead) {
		c.due = append(c.due, c.pending)
	}
	if r.division.within() {
		for i, step := range r.division.looks {
			c.due = append(c.due, look{step, r.number, i})
		}
	}
}

// decide sets the next round after round.last was queued.
func (c *controller) decide() error {
	if c.ending {
		c.end()
		return nil
	}
	if c.round.every > 0 {
		if again, err := c.judgeWithin(); again || err != nil {
			return err
		}
	}
	issued := c.round.last
	p, err := c.agreed(c.propose(issued))
	if err != nil {
		return err
	}
	if c.round.drain && !c.intervals.begin(issued, p.interval) {
		c.limit = min(c.limit, issued+1)
	}
	if p.ended && !c.cancel && issued+1 < c.limit {
		c.cancel, c.limit = true, issued+1
	}
	for i, l := range c.due {
		if c.judge(i, l.step) {
			c.endAt(l.step)
			return nil
		}
	}
	if len(c.due) > 0 {
		c.pending = look{}
	}
	if c.round.check && !c.round.division.within() {
		c.pending = look{step: issued, number: c.round.number}
	}
	c.plan(issued, p.pace)
	return c.progress(issued)
}

// progress tells the caller how many steps are queued.
func (c *controller) progress(steps int64) (err error) {
	if c.options.Progress == nil {
		return nil
	}
	defer streams.Caught(&err, "Options.Progress of step", c.step.Name)
	c.options.Progress(steps)
	return nil
}

// endAt ends the run with a step. If a launch has made more, it is made again up to there, from what it has read.
func (c *controller) endAt(step int64) {
	d := c.round.division
	if !d.within() || step <= d.from || step == d.last {
		c.end()
		return
	}
	c.pending, c.ending = look{}, true
	c.begin(round{first: d.from + 1, last: step, division: c.divider.divide(ask{after: d.from, to: step, pace: step, final: true})})
}

// end sets a round without steps.
func (c *controller) end() {
	c.pending = look{}
	c.begin(round{first: c.round.last + 1, last: c.round.last})
}

// propose returns what this process knows after step issued.
func (c *controller) propose(issued int64) proposal {
	p := proposal{pace: c.pace.steps(issued), ended: c.ctx.Err() != nil}
	if c.round.drain {
		p.interval = c.intervals.ask(issued)
	}
	return p
}

// agreed returns what all processes go by, and brings the norms of all that are due.
func (c *controller) agreed(mine proposal) (proposal, error) {
	if c.together == nil {
		return mine, nil
	}
	return c.together.reach(mine, c.collected[:len(c.due)])
}

// taken returns what was taken at a look, of all parts of the grid.
func (c *controller) taken(look int) []taken {
	if c.together == nil {
		return c.collected[look]
	}
	return c.together.taken[look]
}

// plan sets the round after step issued: up to the next check, the end of the interval or
// the pace, but a single step while norms are under way, and none if those are
// of the last step.
func (c *controller) plan(issued, pace int64) {
	last := min(c.nextCheck(issued), issued+pace, c.intervals.end)
	waits := c.pending.step > 0
	if waits {
		last = issued + 1
		if c.pending.step == c.limit || !c.ahead {
			last = issued
		}
	}
	some := last > issued
	if some && c.divider != nil {
		c.begin(c.divided(issued, pace))
		return
	}
	if far := c.farthest(issued, pace); !waits && far > c.nextCheck(issued) {
		c.begin(round{first: issued + 1, last: far, every: c.options.CheckEvery, check: true, drain: far == c.intervals.end})
		return
	}
	c.begin(round{first: issued + 1, last: last, check: some && last == c.nextCheck(issued), drain: some && last == c.intervals.end})
}

// divided returns the next round of a divider. While norms are under way it is one launch, which leaves the level that
// they are of.
func (c *controller) divided(issued, pace int64) round {
	end := min(c.limit, c.intervals.end)
	d := c.divider.divide(ask{
		after: issued, to: end, pace: pace, final: end == c.limit, one: c.pending.step > 0, every: c.options.CheckEvery, norms: end == c.limit,
	})
	return round{first: issued + 1, last: d.last, check: len(d.looks) > 0, drain: d.last == c.intervals.end, division: d}
}

// farthest returns the last step of a round with checks within it: one whose norms are wanted, about as far as the pace
// says.
func (c *controller) farthest(issued, pace int64) int64 {
	every := c.options.CheckEvery
	if c.mostChecks == 0 || every > pace {
		return issued
	}
	end := min(c.limit, c.intervals.end)
	far := min((issued+pace+every-1)/every*every, issued/every*every+c.mostChecks*every)
	if far <= end {
		return far
	}
	if end < c.limit {
		end -= end % every
	}
	return end
}

// judgeWithin takes the norms within a round. Where they may have ended the steps, and so left the fields as they were
// before the round, it plans the steps up to there again, with norms by which the run goes on or ends.
func (c *controller) judgeWithin() (again bool, err error) {
	ended, next := c.checked[0].ended, c.nextCheck(c.round.first-1)
	for n := range c.checked[0].norms {
		step := next + int64(n)*c.round.every
		if int64(n)+1 == ended {
			c.begin(round{first: c.round.first, last: step, check: true})
			return true, nil
		}
		for rank := range c.collected[0] {
			c.collected[0][rank].norms[0] = c.checked[rank].norms[n]
		}
		if c.judge(0, step) {
			return false, fmt.Errorf("scheme: the norms of step %d end the run, and the devices went on", step)
		}
	}
	return false, nil
}

// nextCheck returns the first step after n whose norms are wanted.
func (c *controller) nextCheck(n int64) int64 {
	if !c.options.checks() {
		return c.limit
	}
	every := c.options.CheckEvery
	return min(c.limit, (n/every+1)*every)
}

// judge takes the norms of a step, those of a look, and reports whether the run ends with it.
func (c *controller) judge(look int, step int64) bool {
	all := c.sum(look, step)
	if c.options.History {
		c.result.History = append(c.result.History, c.result.Check.clone())
	}
	change := all.MaxChange
	if c.options.Norm == L2Norm {
		change = math.Sqrt(all.SumChange2.Value())
	}
	switch {
	case !finite(all) && !c.options.anything:
		c.result.Stopped = StoppedDiverged
	case c.options.Tolerance > 0 && len(c.result.Norms) > 0 && change <= c.options.Tolerance:
		c.result.Stopped = StoppedTolerance
	case step < c.limit:
		return false
	case c.cancel:
		c.result.Stopped = StoppedInterrupted
	default:
		c.result.Stopped = StoppedSteps
	}
	return true
}

// sum sets the result's norms and reductions to those of a step, over all subdomains, and
// returns the norms over all variables.
func (c *controller) sum(look int, step int64) (all reduce.Norms) {
	r := &c.result
	r.Steps, r.Step, r.Norms, r.Reduced = step, step, r.Norms[:0], r.Reduced[:0]
	for v := range c.step.Measured {
		var sum reduce.Norms
		for _, of := range c.taken(look) {
			sum.Add(of.norms[v])
		}
		all.Add(sum)
		r.Norms = append(r.Norms, Norms{
			MaxChange: sum.MaxChange, L2Change: math.Sqrt(sum.SumChange2.Value()), Max: sum.Max, L2: math.Sqrt(sum.Sum2.Value() / float64(c.points)),
		})
	}
	parts := c.taken(look)
	for i := range parts[0].reduced {
		value := parts[0].reduced[i]
		for _, of := range parts[1:] {
			value.Join(of.reduced[i])
		}
		r.Reduced = append(r.Reduced, value.Value())
	}
	return all
}

// finite reports whether all points were finite: a NaN shows in the sums, and an
// infinity in the largest value. The squares of large values may overflow.
func finite(n reduce.Norms) bool {
	s := n.Sum2.Value() + n.SumChange2.Value()
	return !math.IsNaN(s) && !math.IsInf(n.Max, 0) && !math.IsInf(n.MaxChange, 0)
}

// pace chooses how many steps a round has, so that workers meet at the barrier some fifty
// times a second: rarely enough to cost nothing, often enough to be stopped.
type pace struct {
	now   int64
	limit int64 // steps that may be queued at once
	from  int64
	since time.Time
}

const (
	roundTime = 20 * time.Millisecond
	maxSteps  = 32 // two rounds of steps fit into the queues of a device, which hold some 1000 launches
)

func newPace(limit int64) pace { return pace{now: 1, limit: limit} }

// steps returns the length of the next round, given the steps so far.
func (p *pace) steps(issued int64) int64 {
	took := time.Since(p.since)
	done := issued - p.from
	if done >= p.now && !p.since.IsZero() {
		if took < roundTime/2 {
			p.now = min(2*p.now, p.limit)
		} else if took > 2*roundTime {
			p.now = max(p.now/2, 1)
		}
	}
	p.from, p.since = issued, time.Now()
	return p.now
}
