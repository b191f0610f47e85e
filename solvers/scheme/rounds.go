package scheme

import (
	"fmt"
	"math"
	"time"

	"github.com/halox/halox/kernels/temporal"
)

// round is what all workers do between two barriers: queue steps first to
// last, with norms for the last one where check is set, and wait for all of them
// where drain is. With every, norms of the steps before the last that it divides are taken within the launch, see
// earlyNorms. A round without steps ends the run.
type round struct {
	first, last  int64
	every        int64
	check, drain bool
	number       int64    // of those with check
	plan         passPlan // by a passPlanner
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

// passPlanner is implemented by workers that divide steps into rounds themselves, and take norms of steps within
// launches.
type passPlanner interface {
	// plan returns the next round, for all workers. It is called between rounds, for one of them.
	plan(a planRequest) passPlan
	// take returns what was taken of the worker's subdomain at a norm check of the last round or of the one before,
	// once it is on the host.
	take(c normCheck, to *taken)
	// finish has the variables hold the level of a step, the last that was run or the one before the last launch of
	// the last round.
	finish(step int64) error
}

// planRequest is what rounds a passPlanner may make.
type planRequest struct {
	after, to int64 // the steps after one, up to another one at most
	pace      int64 // about so many, where there are more
	final     bool  // the run ends with the last of them
	one       bool  // one launch alone, as what the one before has read is still needed
	every     int64 // norms are wanted of steps that it divides; 0 for none
	norms     bool  // and of the last where it is final
}

// maxChecks is the most steps of a launch whose norms are taken.
const maxChecks = temporal.MaxNorms

// passPlan is a round that ends with step last. Norms are taken of the steps checks alone, by the last launch, which
// begins after step from.
type passPlan struct {
	from, last int64
	checks     []int64
}

// isEarly reports whether norms are taken of others than the last step of the launch: where they end the run, the
// launch is run again up to there, so they are looked at before another one is queued.
func (p passPlan) isEarly() bool { return len(p.checks) > 0 && p.checks[0] < p.last }

// nextCheck returns the first step after one whose norms are wanted, math.MaxInt64 for none.
func (p planRequest) nextCheck(n int64) int64 {
	check := int64(math.MaxInt64)
	if p.every > 0 {
		check = (n/p.every + 1) * p.every
	}
	if p.norms && n < p.to {
		check = min(check, p.to)
	}
	return check
}

// normCheck is norms of a step that workers bring to a barrier.
type normCheck struct {
	step   int64
	number int64 // of the round that has taken them
	place  int   // among the norm checks of that
}

// intervals cuts a run into intervals of steps at whose ends the devices have done all that
// was queued, so that the time between two ends is that of the steps and of nothing else.
type intervals struct {
	next  func(steps int64, took time.Duration) int64 // Options.Interval; nil for none
	begun int64                                       // the step before the interval
	end   int64                                       // its last step
	since time.Time
}

// noEnd is the end of an interval that has none.
const noEnd = math.MaxInt64

// ask ends the interval with the step that was done last, and returns how many steps the next is to have.
func (i *intervals) ask(done int64) (steps int64) {
	if i.next == nil {
		return 0
	}
	var took time.Duration
	if done > 0 {
		took = time.Since(i.since)
	}
	return i.next(done-i.begun, took)
}

// begin begins the next interval after a step. It is false where none is wanted; what is stepped after that belongs to
// none.
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

// pace chooses how many steps a round has, so that workers meet at the barrier some fifty
// times a second: rarely enough to cost nothing, often enough to be stopped.
type pace struct {
	now   int64
	limit int64 // steps that may be queued at once
	from  int64
	since time.Time
}

const roundTime = 20 * time.Millisecond

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
