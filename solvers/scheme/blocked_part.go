package scheme

import (
	"fmt"
	"math"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Blocked is the scheme that makes several steps of a linear stencil in one pass over memory (temporal blocking). Steps of another point function
// that computes a step by itself, from one level of variables to the next, are sweeps. Between two exchanges lie the steps of a
// group, see Step.Group: with neighbours and an exchange after each step there is nothing to join. Norms are taken by the pass within
// which their step lies, or by a sweep of it alone.
const Blocked Scheme = "blocked"

type blocked struct {
	*run
	options    Options
	parts      []*blockedPart
	tune       tuner
	besideFrom time.Duration // how long an exchange takes that goes on beside the interior; 0 for any
	neighbours bool          // see hasNeighbours
	measures   bool          // something is taken of steps
	allStore   bool          // passes of all subdomains store ghosts of neighbours
	costs      passCosts     // by which passes are chosen, the same in all processes
	holds      [2]int64      // by field the step whose level it holds, -1 for none, once the round is queued
	cuts       map[cutKey][]int
	round      blockedRound
}

// linearPasses are those of a linear stencil.
type linearPasses struct {
	passes *temporal.Passes
	run    *run
	part   *blockedPart
	sides  temporal.Sides
	norms  *temporal.More // what those that take norms are given to be tuned; nil for others
}

// tuner finds out what passes over a box cost, beside a sweep of it.
type tuner func(p *linearPasses, sweep *streams.Kernel, arrays sweep.Arrays, box domain.Box) error

// blockedPart is what one worker drives. Where all that is taken of a step is taken by the launch that makes it, totals is another stream,
// on which it is joined behind the event measured: the next pass need not wait.
type blockedPart struct {
	*subdomain
	stream, totals *streams.Stream
	measured       *streams.Event
	costs          passCosts
	passes         map[pass]Launch
	sweeps         map[pass]measuredSweep // of depth 1
	norms          map[pass][]normPass    // by depth, left and slot, then by of how many last steps less one
	parts          [2]*reduce.NormParts   // of norms, by the field that is written
	found          [2][]found             // by number of the round and look
	tables         *boundary.Tables       // of walls that move; nil where none does
	walls          temporal.Walls
	made           *linearPasses   // without norms; nil where all steps are sweeps
	stores         map[pass]Launch // passes that end groups and store ghosts of neighbours too; nil where none does
	stored         bool            // the last pass of the run was a whole group, and did so
	beside         *beside         // nil where exchanges follow passes
}

// beside is what a subdomain needs to exchange ghosts while the last pass of a group computes its interior. The boundary region comes first, by
// passes of its own, and its messages leave on another stream.
type beside struct {
	messages  *streams.Stream
	swept     *streams.Event // the boundary region is
	exchanged *streams.Event
	boundary  map[pass][]Launch // of passes that end a group
	interior  map[pass]Launch
}

// pass is how many steps a pass makes, how many its group still has after it, and the field that it reads. It writes the other one:
// a level may lie in the field where sweeps put the next one. 1 is a sweep.
type pass struct{ depth, left, slot int }

// blockedRound is the passes of a round.
type blockedRound struct {
	slot   int // the fields that the first reads
	depths []int
	looks  []int64 // whose norms the last one takes
	number int64   // of rounds with looks
}

// cutKey is all that a division into passes depends on.
type cutKey struct {
	steps, least int
	look, norms  int64 // how far the first look is, and the end with norms, 0 for beyond all
	end          [2]float64
}

// measuredSweep is a sweep of what a pass of one step makes, and what is taken of the step.
type measuredSweep struct {
	launch Launch
	totals []total
}

// normPass is a pass that takes norms, and what joins them. There is none where the kernel is nil.
type normPass struct {
	kernel *streams.Kernel
	join   *reduce.NormReduction
}

// found is what was taken at a look: by a sweep, or of the last step but so many of a pass.
type found struct {
	totals []total
	join   *reduce.NormReduction // nil for a sweep
	before int
}

// deepest is the most steps after an exchange; 1 where nothing is exchanged, and no ghosts are swept.
func (b *blocked) deepest() int {
	if b.neighbours {
		return b.step.group()
	}
	return 1
}

// stage is the only one.
func (b *blocked) stage() *Stage { return &b.step.Stages[0] }

// linear returns the stencil of a stage that is one, of a variable of one component.
func (st *Stage) linear() (s stencil.Stencil, ok bool) {
	s, ok = st.Point.Linear()
	return s, ok && st.Writes[0].Variable.Spec.Components <= 1
}

// slot returns the fields in which a level lies under other schemes, of all variables that are stepped alike.
func (b *blocked) slot(level int64) int { return b.variable().slot(level) }

// slotPhase returns a phase of steps whose level lies in a field.
func (b *blocked) slotPhase(slot int) int { return (slot - b.slot(0)) & 1 }

// slotOf returns the field that holds the level of a step.
func (b *blocked) slotOf(step int64) int {
	if b.holds[1] == step {
		return 1
	}
	return 0
}

// arrays returns what a pass reads and writes that reads the fields of a slot.
func (b *blocked) arrays(rank, slot int) sweep.Arrays { return b.stage().arrays(rank, int64(slot)+1) }

// box returns the points of the last level of a pass.
func (b *blocked) box(p *blockedPart, key pass) domain.Box {
	return b.place.Grown(p.rank, farther(domain.Radius{}, b.step.reach(), key.left))
}

// passName is that of a launch, for traces.
func passName(depth int) string { return fmt.Sprintf("pass of %d", depth) }

// variable is the first of those that are stepped, the only one of a linear stencil.
func (b *blocked) variable() *Variable { return b.stage().Writes[0].Variable }

// left returns how many steps of its group follow a step, 0 where nothing is exchanged.
func (b *blocked) left(n int64) int {
	if !b.neighbours {
		return 0
	}
	return int(b.groupEnd(n) - n)
}

// groupEnd returns the last step of the group of a step.
func (b *blocked) groupEnd(n int64) int64 {
	k := int64(b.step.group())
	return (b.done+n+k-1)/k*k - b.done
}

// possible returns the costs of passes that a group has room for.
func (b *blocked) possible(cost []float64) []float64 {
	if b.neighbours {
		return cost[:min(len(cost), b.step.group()+1)]
	}
	return cost
}

// eachPass calls do for all passes of finite costs that runs may need.
func (b *blocked) eachPass(cost []float64, do func(key pass) error) error {
	for depth := 2; depth < len(cost); depth++ {
		if math.IsInf(cost[depth], 1) {
			continue
		}
		for left := range max(1, b.deepest()-depth+1) {
			for now := range 2 {
				if err := do(pass{depth, left, now}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
