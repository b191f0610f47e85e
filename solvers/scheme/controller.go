package scheme

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// round is what all workers do between two barriers: queue steps first to last, with norms of the last one if
// check is set, and wait for all of them if drain is set. If early is set, norms of checked steps before the last
// are taken within the launch, see earlyNorms. A round without steps ends the run.
type round struct {
	first, last  int64
	early        bool
	check, drain bool
	number       int64    // number of the round among those with check
	plan         passPlan // set by a passPlanner
}

// String returns "in steps 3 to 5", or "after step 5" for a round without steps.
func (r round) String() string {
	switch {
	case r.last < r.first:
		return fmt.Sprintf("after step %d", r.last)
	case r.last == r.first:
		return fmt.Sprintf("in step %d", r.last)
	}
	return fmt.Sprintf("in steps %d to %d", r.first, r.last)
}

// checkedSteps are the steps whose norms are checked: every so many, 0 for none, counted from another step.
type checkedSteps struct{ every, from int64 }

// after returns the first of them after step n, math.MaxInt64 for none.
func (c checkedSteps) after(n int64) int64 {
	if c.every == 0 {
		return math.MaxInt64
	}
	return c.from + ((n-c.from)/c.every+1)*c.every
}

// have reports whether a step is one of them.
func (c checkedSteps) have(step int64) bool { return c.after(step-1) == step }

// passPlanner is implemented by workers that divide steps into rounds themselves, and take norms of steps
// within launches.
type passPlanner interface {
	// plan returns the next round, for all workers. It is called between rounds, on one of them.
	plan(a planRequest) passPlan
	// take returns the norms and reductions of the worker's subdomain at a norm check of the last round or of
	// the one before, once they are on the host.
	take(c normCheck, to *taken)
	// finish makes the variables hold the level of a step: the last that was run, or the one before the last
	// launch of the last round.
	finish(step int64) error
}

// planRequest describes the rounds that a passPlanner may plan.
type planRequest struct {
	after, to int64 // steps after one, at most up to another
	pace      int64 // approximate number of steps
	final     bool  // the run ends with the last of them
	one       bool  // only one launch, since the fields read by the one before are still needed
	checked   checkedSteps
	norms     bool // take norms of the last step if final
}

// maxChecks is the maximum number of steps of a launch whose norms are taken.
const maxChecks = temporal.MaxNorms

// passPlan is a round that ends with step last. The last launch, which begins after step from, takes the
// norms of the steps checks.
type passPlan struct {
	from, last int64
	checks     []int64
}

// isEarly reports whether norms of steps before the last step of the launch are taken. If they end the run,
// the launch is repeated up to there, so they are checked before another one is queued.
func (p passPlan) isEarly() bool { return len(p.checks) > 0 && p.checks[0] < p.last }

// nextCheck returns the first step after n whose norms are needed, math.MaxInt64 for none.
func (p planRequest) nextCheck(n int64) int64 {
	check := p.checked.after(n)
	if p.norms && n < p.to {
		check = min(check, p.to)
	}
	return check
}

// normCheck is the norms of a step that workers bring to a barrier.
type normCheck struct {
	step   int64
	number int64 // of the round that took them
	place  int   // index among the norm checks of that round
	steps  int64 // of that round
}

// intervals divides a run into intervals of steps. At their ends the devices have finished all queued work,
// so that the time between two ends is exactly that of the steps.
type intervals struct {
	next  func(steps int64, took time.Duration) int64 // Options.Interval; nil for none
	begun int64                                       // the step before the interval
	end   int64                                       // last step of the interval
	since time.Time
}

// noEnd is the end of an interval without end.
const noEnd = math.MaxInt64

// ask ends the interval with the last finished step, and returns the number of steps of the next.
func (i *intervals) ask(done int64) (steps int64) {
	if i.next == nil {
		return 0
	}
	var took time.Duration
	if done > i.begun {
		took = time.Since(i.since)
	}
	return i.next(done-i.begun, took)
}

// begin begins the next interval after a step. It returns false if none is requested; later steps do not belong to an
// interval.
func (i *intervals) begin(done, steps int64) bool {
	if i.next == nil {
		return true
	}
	i.begun, i.end = done, noEnd
	if steps > 0 {
		i.end = done + steps
	}
	i.since = time.Now()
	return steps > 0
}

// stepPace chooses the number of steps of a round, so that workers meet at the barrier about fifty times a
// second: rarely enough to cost nothing, often enough to be stopped.
type stepPace struct {
	now   int64
	limit int64 // steps that may be queued at once
	from  int64
	since time.Time
}

const roundTime = 20 * time.Millisecond

// looks are norm checks of a run without CheckEvery, which only detect divergence. They are rare, in steps
// and in time, so that their cost is negligible for slow and fast steps.
type looks struct {
	every time.Duration // minimum time between two; 0 for none
	last  time.Time
	step  int64 // step of the next, or of the last
}

const (
	lookTime  = time.Second
	lookSteps = 100 // minimum steps between two
)

// due reports whether the next look may be planned after step issued.
func (l *looks) due(issued int64) bool {
	return l.every > 0 && issued >= l.step+lookSteps && time.Since(l.last) >= l.every
}

// next returns the number of steps of the next round, given the steps so far.
func (p *stepPace) next(issued int64) int64 {
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

// proposal is what one process contributes to a decision, in addition to norms.
type proposal struct {
	ended    int64 // 1 if its context has ended
	pace     int64 // steps of the next round
	interval int64 // steps of the next interval, if one ends
	look     int64 // 1 if it is time for a look, see looks
}

// agreement is what the controllers of all processes agree on: the pace, the intervals and the looks of rank
// 0, an end if any context has ended, and the norms of all.
type agreement struct {
	*run
	taken [][]taken // by due norm check, then by process
}

// newAgreement allocates an agreement on a number of norm checks.
func newAgreement(r *run, checks int) *agreement {
	a := &agreement{run: r}
	for range checks {
		a.taken = append(a.taken, r.step.newTaken(r.place.Processes.Size()))
	}
	return a
}

// reach is called by all processes once per round. collected is the norms and reductions by due norm check
// and by rank.
func (a *agreement) reach(mine proposal, collected [][]taken) (agreed proposal, err error) {
	nNorms, nReduced := len(a.step.Measured), len(a.step.Reductions())
	bytes := len(collected) * (nNorms*int(unsafe.Sizeof(reduce.Norms{})) + nReduced*int(unsafe.Sizeof(sweep.Stored{})))
	b := make([]byte, int(unsafe.Sizeof(mine))+bytes)
	head, norms, reduced := a.views(b, len(collected))
	head[0] = mine
	for i, one := range collected {
		sum := one[a.local[0]].clone()
		for _, rank := range a.local[1:] {
			sum.add(one[rank])
		}
		copy(norms[i*nNorms:], sum.norms)
		for k, r := range sum.reduced {
			reduced[i*nReduced+k] = r.Stored()
		}
	}
	p := a.place.Processes
	all, err := mpi.Gather(context.Background(), p, "scheme: agree how a run goes on", b)
	if err != nil {
		return mine, err
	}
	for rank, other := range all {
		if len(other) != len(b) {
			return mine, fmt.Errorf("scheme: %s sent %d bytes for a decision, and this process %d: "+
				"they run different steps", p.Name(rank), len(other), len(b))
		}
		head, norms, reduced := a.views(slices.Clone(other), len(collected)) // slices.Clone aligns it
		if rank == 0 {
			agreed = head[0]
		}
		agreed.ended = max(agreed.ended, head[0].ended)
		for i := range collected {
			to := a.taken[i][rank]
			copy(to.norms, norms[i*nNorms:])
			for k := range to.reduced {
				to.reduced[k] = collected[i][a.local[0]].reduced[k].With(reduced[i*nReduced+k])
			}
		}
	}
	return agreed, nil
}

// views returns the proposal, and the norms and the reductions of a number of norm checks, in bytes.
func (a *agreement) views(b []byte, checks int) ([]proposal, []reduce.Norms, []sweep.Stored) {
	head := int(unsafe.Sizeof(proposal{}))
	norms := head + checks*len(a.step.Measured)*int(unsafe.Sizeof(reduce.Norms{}))
	return streams.View[proposal](b[:head]), streams.View[reduce.Norms](b[head:norms:norms]),
		streams.View[sweep.Stored](b[norms:])
}

// controller decides how a run continues. The workers meet at its barrier after every round; the last to
// arrive decides for all, by the norms that they collected.
//
// The norms of a step are checked one step later, so that the devices have work while the host waits for
// them. If they end the run, the levels of their step still exist: the step after it wrote others. Otherwise,
// see keepsLevels, no step is queued before they are checked. With a passPlanner a launch takes the place of
// a step. Norms of steps within a launch are checked before the next one: if they end the run, that launch is
// repeated up to there, from the fields that it read.
//
// If processes share the grid, each has a controller. They agree on the input of decisions once per round,
// and so decide alike.
type controller struct {
	options Options
	run     *run
	step    *Step
	checked checkedSteps
	points  int64
	terms   float64 // number of terms of the sums of all measured variables
	threads *streams.WorkerGroup
	ctx     context.Context
	cancel  bool // the context has ended: the run stops at limit

	arrived   atomic.Int64
	arrivals  []streams.Counter // by worker
	meeting   streams.Counter
	collected [][]taken  // by due norm check, then by rank; empty for other processes
	sum       taken      // sum over all subdomains
	agreement *agreement // with other processes; nil for a single process
	// a step may be queued before the norms of the previous one arrive; false if a launch has norms of
	// several steps
	ahead bool

	maxEarly int64              // see earlyNorms
	early    []earlyNormsResult // by worker, in the last round with norms before its last step
	planner  passPlanner        // nil for other schemes
	pacer    pacer              // nil unless devices choose the lengths of the steps of a round

	round     round
	limit     int64       // the last step, unless the tolerance ends the run before
	pending   normCheck   // norms in flight; step 0 for none
	due       []normCheck // norms that workers bring to the next barrier, after the round is queued
	ending    bool        // the round is the last
	steps     stepPace
	intervals intervals
	looks     looks

	result Result
}

// earlyNormsResult is what earlyNorms.early returns.
type earlyNormsResult struct {
	norms []reduce.Norms
	ended int64
}

// newController returns the controller of a run. It requests the first interval.
func newController(ctx context.Context, o Options, r *run, workers []worker) (c *controller, err error) {
	defer streams.Caught(&err, "Options.Interval of step", r.step.Name)
	if !r.step.measures() {
		o.CheckEvery = 0 // there is nothing to check
	}
	c = &controller{
		options: o, run: r, step: r.step, points: r.place.Grid.Points(), threads: r.threads, ctx: ctx,
		limit: r.from + o.Steps, checked: checkedSteps{o.CheckEvery, r.from},
		arrivals: make([]streams.Counter, len(workers)), early: make([]earlyNormsResult, len(workers)),
		steps:     stepPace{now: max(1, r.pace), limit: workers[0].maxQueued()},
		intervals: intervals{next: o.Interval, begun: r.from, end: noEnd},
		sum:       r.step.newTaken(1)[0],
		looks:     looks{last: time.Now(), step: r.from},
	}
	if o.part != nil {
		c.checked.from = -r.done // the first step of the simulation
	}
	if r.step.measures() && !o.checks() && !o.History && !o.anything && o.Interval == nil {
		c.looks.every = cmp.Or(o.lookTime, lookTime)
	}
	for _, v := range r.step.Measured {
		c.terms += float64(c.points) * float64(max(1, v.Spec.Components))
	}
	if o.checks() {
		c.maxEarly = maxEarly(workers)
	}
	c.ahead = r.step.keepsLevels() && c.maxEarly == 0 && !r.step.paced()
	checks := 1
	if planner, ok := workers[0].(passPlanner); ok {
		c.planner = planner
		checks += maxChecks
	}
	if p, ok := workers[0].(pacer); ok && p.paces() && (o.Interval == nil || o.anything) {
		c.pacer = p
	}
	for range checks {
		c.collected = append(c.collected, r.step.newTaken(len(r.subdomains)))
	}
	if r.shared() {
		c.agreement = newAgreement(r, checks)
	}
	c.meeting.Name = "the other workers"
	if r.step.paced() {
		if level := r.done + r.from; r.clock.level != level {
			r.clock = stepClock{level: level, now: r.timeOf(level)}
		}
		if err := r.reduceFirst(r.stepStreams(workers), c.collected[0]); err != nil {
			return nil, err
		}
		c.due = []normCheck{{}}
	}
	p, err := c.agree(proposal{pace: c.steps.next(r.from), interval: c.intervals.ask(r.from)})
	if err != nil {
		return nil, err
	}
	if len(c.due) > 0 {
		c.addUp(0, r.from)
		ends, err := c.pace()
		if c.result.Norms, c.result.Stopped = nil, ends; ends != "" || err != nil {
			c.begin(round{first: r.from + 1, last: r.from}) // without steps
			return c, err
		}
	}
	if !c.intervals.begin(r.from, p.interval) {
		c.limit = r.from + 1
	}
	c.plan(r.from, p.pace)
	return c, nil
}

// maxEarly returns the number of early norms that all workers can take.
func maxEarly(workers []worker) int64 {
	most := int64(math.MaxInt64)
	for _, w := range workers {
		e, ok := w.(earlyNorms)
		if !ok {
			return 0
		}
		most = min(most, e.maxEarly())
	}
	return most
}

// barrier waits for all workers and returns the next round. Before, a worker has put the due norms into
// collected.
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
	if err := c.threads.Await(&c.meeting, n+1); err != nil {
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

// begin sets the next round, and the norms that are due after it.
func (c *controller) begin(r round) {
	if r.check {
		c.run.rounds++
		r.number = c.run.rounds
	}
	c.round, c.due = r, c.due[:0]
	if n := c.pending.step; n > 0 && (r.last > n || n == c.limit || !c.ahead) {
		c.due = append(c.due, c.pending)
	}
	if r.plan.isEarly() {
		for i, step := range r.plan.checks {
			c.due = append(c.due, normCheck{step: step, number: r.number, place: i})
		}
	}
}

// decide sets the next round after round.last was queued.
func (c *controller) decide() error {
	if c.ending {
		c.end()
		return nil
	}
	if c.round.early {
		if again, err := c.judgeEarly(); again || err != nil {
			return err
		}
	}
	issued := c.round.last
	mine := proposal{pace: c.steps.next(issued)}
	if c.ctx.Err() != nil {
		mine.ended = 1
	}
	if c.looks.due(issued) {
		mine.look = 1
	}
	if c.round.drain {
		mine.interval = c.intervals.ask(issued)
	}
	p, err := c.agree(mine)
	if err != nil {
		return err
	}
	if c.round.drain && !c.intervals.begin(issued, p.interval) {
		c.limit = min(c.limit, issued+1)
	}
	if p.ended != 0 && !c.cancel && issued+1 < c.limit {
		c.cancel, c.limit = true, issued+1
	}
	for i, check := range c.due {
		step := check.step
		if c.pacer != nil { // the round may have ended early
			step -= check.steps - c.pacer.paced().Steps
			issued, c.round.last = step, step
		}
		ends, err := c.judge(i, step)
		if err != nil {
			return err
		}
		if ends {
			c.endAt(step)
			return nil
		}
	}
	if len(c.due) > 0 {
		c.pending = normCheck{}
	}
	if c.round.check && !c.round.plan.isEarly() {
		c.pending = normCheck{step: issued, number: c.round.number, steps: c.round.last - c.round.first + 1}
	}
	if p.look != 0 {
		c.looks.step, c.looks.last = issued+p.pace, time.Now()
	}
	c.plan(issued, p.pace)
	return c.progress(issued)
}

// progress reports the number of queued steps to the caller.
func (c *controller) progress(steps int64) (err error) {
	if c.options.Progress == nil {
		return nil
	}
	defer streams.Caught(&err, "Options.Progress of step", c.step.Name)
	c.options.Progress(steps - c.run.from)
	return nil
}

// endAt ends the run with a step. If a launch has run more, it is repeated up to there, from the fields that
// it read.
func (c *controller) endAt(step int64) {
	p := c.round.plan
	if !p.isEarly() || step <= p.from || step == p.last {
		c.end()
		return
	}
	c.pending, c.ending = normCheck{}, true
	again := c.planner.plan(planRequest{after: p.from, to: step, pace: step, final: true})
	c.begin(round{first: p.from + 1, last: step, plan: again})
}

// end sets a round without steps.
func (c *controller) end() {
	c.pending = normCheck{}
	c.begin(round{first: c.round.last + 1, last: c.round.last})
}

// agree returns the proposal that all processes follow, and exchanges all due norms.
func (c *controller) agree(mine proposal) (proposal, error) {
	if c.agreement == nil {
		return mine, nil
	}
	return c.agreement.reach(mine, c.collected[:len(c.due)])
}

// plan sets the round after step issued: up to the next check, the end of the interval or the pace, but a
// single step while norms are in flight, and none if those are of the last step.
func (c *controller) plan(issued, pace int64) {
	check, end := c.nextCheck(issued), min(c.limit, c.intervals.end)
	last := min(check, issued+pace, c.intervals.end)
	waits := c.pending.step > 0
	if waits {
		last = issued + 1
		if c.pending.step == c.limit || !c.ahead {
			last = issued
		}
	}
	some := last > issued
	next := round{first: issued + 1, last: last, drain: some && last == c.intervals.end}
	next.check = some && (last == check || c.pacer != nil)
	if some && c.planner != nil {
		// while norms are in flight, the round is one launch, which keeps the level of the norms
		to, norms := end, end == c.limit
		if !c.options.checks() && check < end {
			to, norms = check, true
		}
		next.plan = c.planner.plan(planRequest{
			after: issued, to: to, pace: pace, final: to == c.limit, one: waits, checked: c.checked,
			norms: norms,
		})
		next.last = next.plan.last
		next.check, next.drain = len(next.plan.checks) > 0, next.last == c.intervals.end
	} else if far := c.farthest(issued, pace, end); !waits && far > check {
		next.last, next.early, next.check, next.drain = far, true, true, far == c.intervals.end
	}
	c.begin(next)
}

// farthest returns the last step of a round with early norms: a step whose norms are needed, approximately at
// the pace, and at most end.
func (c *controller) farthest(issued, pace, end int64) int64 {
	every := c.options.CheckEvery
	if c.maxEarly == 0 || every > pace {
		return issued
	}
	far := min(c.checked.after(issued+pace-1), c.checked.after(issued)+(c.maxEarly-1)*every)
	if far <= end {
		return far
	}
	if end < c.limit {
		end = c.checked.after(end) - every
	}
	return end
}

// judgeEarly takes the norms within a round. If they may have ended the steps, and so left the fields as
// before the round, it plans the steps up to there again, with norms that decide whether the run continues.
func (c *controller) judgeEarly() (again bool, err error) {
	ended, next := c.early[0].ended, c.nextCheck(c.round.first-1)
	for n := range c.early[0].norms {
		step := next + int64(n)*c.checked.every
		if int64(n)+1 == ended {
			c.begin(round{first: c.round.first, last: step, check: true})
			return true, nil
		}
		for rank := range c.collected[0] {
			c.collected[0][rank].norms[0] = c.early[rank].norms[n]
		}
		if ends, _ := c.judge(0, step); ends {
			return false, fmt.Errorf("scheme: the norms of step %d end the run, but the devices continued", step)
		}
	}
	return false, nil
}

// nextCheck returns the first step after n whose norms are needed.
func (c *controller) nextCheck(n int64) int64 {
	if c.step.paced() && c.pacer == nil {
		return min(c.limit, n+1)
	}
	if !c.options.checks() {
		if n < c.looks.step {
			return min(c.limit, c.looks.step)
		}
		return c.limit
	}
	return min(c.limit, c.checked.after(n))
}

// judge takes the norms of a step at a norm check, and reports whether the run ends with it. With Step.Pace it
// also sets the length of the next step.
func (c *controller) judge(check int, step int64) (ends bool, err error) {
	if c.step.paced() {
		clock := &c.run.clock
		if clock.level, clock.now = c.run.done+step, clock.now+clock.length; c.pacer != nil {
			state := c.pacer.paced()
			clock.now, clock.length = state.Now, state.Length
		}
	}
	all := c.addUp(check, step)
	listed := c.checked.have(step) || !c.step.paced() && (step < c.limit || !c.cancel && c.options.part.ends())
	change := all.MaxChange
	if c.options.Norm == L2Norm {
		change = root(all.SumChange2.Value(), all.MaxChange, c.terms)
	}
	paced, err := c.pace()
	stopped := &c.result.Stopped
	switch {
	case !finite(all) && !c.options.anything:
		*stopped = StoppedDiverged
	case listed && c.options.Tolerance > 0 && len(c.result.Norms) > 0 && change <= c.options.Tolerance:
		*stopped = StoppedTolerance
	case paced != "":
		*stopped = paced
	case step < c.limit:
	case c.cancel:
		*stopped = StoppedInterrupted
	default:
		*stopped = StoppedSteps
	}
	ends = *stopped != ""
	if c.options.History && listed {
		c.result.History = append(c.result.History, c.result.Check.clone())
	}
	if ends {
		err = nil
	}
	return ends, err
}

// pace sets the length of the step after the newest level from the reductions of a step. It returns why the run ends
// here, or "" if it does not.
func (c *controller) pace() (ends Stopped, err error) {
	r := c.run
	if r.place.FirstDevice().IsDry() || !c.step.paced() {
		return "", nil
	}
	defer streams.Caught(&err, "Step.Pace of step", c.step.Name)
	last := &c.step.Stages[len(c.step.Stages)-1]
	reduced := c.result.Reduced[len(c.result.Reduced)-len(last.Point.Reductions):]
	length, err := c.step.pace()(r.clock.now, reduced)
	switch {
	case c.options.anything && (err != nil || !(length > 0) || math.IsInf(length, 0)):
		return "", nil // with the length before
	case err != nil:
		return "", fmt.Errorf("scheme: Step.Pace at time %v: %w", r.clock.now, err)
	case math.IsNaN(length):
		return StoppedDiverged, nil
	case length < 0 || math.IsInf(length, 0):
		return "", fmt.Errorf("scheme: Step.Pace must return a finite length of at least 0, got %v", length)
	case length == 0:
		return StoppedTime, nil
	}
	r.clock.length = length
	return "", nil
}

// addUp sets the result's norms and reductions to those of a step, over all subdomains, and returns the norms
// over all variables.
func (c *controller) addUp(check int, step int64) (all reduce.Norms) {
	parts := c.collected[check]
	if c.agreement != nil {
		parts = c.agreement.taken[check]
	}
	copy(c.sum.norms, parts[0].norms)
	copy(c.sum.reduced, parts[0].reduced)
	for _, part := range parts[1:] {
		c.sum.add(part)
	}
	r := &c.result
	r.Steps, r.Norms, r.Reduced = step-c.run.from, r.Norms[:0], r.Reduced[:0]
	r.Step = r.Steps
	if r.Time, r.Length = c.run.time(step), c.run.moment(step).Length; c.step.paced() {
		r.Time = c.run.clock.now
	}
	for v, sum := range c.sum.norms {
		all.Add(sum)
		components := float64(max(1, c.step.Measured[v].Spec.Components))
		change, value := sum.Largest()
		r.Norms = append(r.Norms, Norms{
			MaxChange: change,
			L2Change:  root(sum.SumChange2.Value(), sum.MaxChange, components*float64(c.points)),
			Max:       value,
			L2:        root(sum.Sum2.Value()/float64(c.points), sum.Max, components),
		})
	}
	for _, value := range c.sum.reduced {
		r.Reduced = append(r.Reduced, value.Value())
	}
	return all
}

// root returns the root of a sum of squares, or of their mean, of numbers with the given largest magnitude.
// If float64 cannot represent the squares, it returns the upper bound of the root for the number of terms.
func root(squares, largest, terms float64) float64 {
	if !beyondSquares(largest) || math.IsNaN(squares) {
		return math.Sqrt(squares)
	}
	return largest * math.Sqrt(terms)
}

// beyondSquares reports whether float64 cannot represent the sum of squares of numbers with the given largest
// magnitude. Otherwise the sums of as many squares as fit in memory are finite, and underflow of small ones
// is negligible.
func beyondSquares(largest float64) bool {
	return 0 < largest && largest < 0x1p-480 || largest > 0x1p480
}

// finite reports whether all points are finite: a NaN propagates to the sums, and an infinity to the largest
// value. Squares of large values may overflow.
func finite(n reduce.Norms) bool {
	s := n.Sum2.Value() + n.SumChange2.Value()
	return !math.IsNaN(s) && !math.IsInf(n.Max, 0) && !math.IsInf(n.MaxChange, 0)
}
