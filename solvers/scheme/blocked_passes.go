package scheme

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Blocked is the scheme that runs several steps of a linear stencil in one pass over memory of a GPU (temporal
// blocking). Where that is not faster, on CPU devices, and for other point functions it sweeps. It takes steps of one
// stage that computes the next level of variables from one level.
//
// Between two exchanges are the steps of a group, see Step.Group: with neighbors and an exchange after each step it
// only sweeps. Norms are taken by the pass that runs their step, or by a sweep of it alone.
const Blocked Scheme = "blocked"

type blocked struct {
	*run
	options    Options
	parts      []*blockedPart
	tune       tuner
	from       thresholds
	neighbours bool      // see hasNeighbours
	measures   bool      // something is taken of steps
	allStore   bool      // passes of all subdomains store ghosts of neighbors
	costs      passCosts // by which passes are chosen, the same in all processes
	holds      [2]int64  // by slot the step whose level its fields hold, -1 for none, once the round is queued
	cuts       map[cutKey][]int
	round      blockedRound
}

// thresholds are the least durations of exchanges that are overlapped, and that passes store.
type thresholds struct{ overlap, stores time.Duration }

// tuner measures what passes over a box cost, compared with a sweep of it.
type tuner func(
	p *temporal.Passes, sweep *streams.Kernel, from, to kernels.Array, box domain.Box, sides temporal.Sides,
	of temporal.More, budget time.Duration,
) error

// blockedPart is what one worker drives. Where all that is taken of a step is taken by the launch that runs it,
// totals is another stream, on which it is joined after the event measured: the next pass need not wait.
type blockedPart struct {
	*subdomain
	stream, totals *streams.Stream
	measured       *streams.Event
	made           *temporal.Passes // without norms; nil where all steps are sweeps
	sides          temporal.Sides   // of the subdomain
	walls          temporal.Walls
	tables         *boundary.Tables // of walls that move; nil where none does
	costs          passCosts
	passes         map[pass]Launch
	stores         map[pass]Launch // passes that end groups and store ghosts of neighbors too; nil where none does
	stored         bool            // the last pass of the run was a whole group, and did so
	overlap        *overlap        // nil where exchanges follow passes

	sweeps map[pass]measuredSweep // of depth 1
	norms  map[pass][]normPass    // by of how many last steps less one
	parts  [2]*reduce.NormParts   // of norms, by the slot that is written
	found  [2][]found             // by number of the round and look
}

// overlap is what a subdomain needs to exchange ghosts while the last pass of a group computes its interior. The
// boundary region comes first, by passes of its own, and its messages leave on another stream.
type overlap struct {
	messages  *streams.Stream
	swept     *streams.Event // the boundary region is
	exchanged *streams.Event
	boundary  map[pass][]Launch // of passes that end a group
	interior  map[pass]Launch
}

// pass is how many steps a pass runs, how many its group still has after it, and the slot that it reads. It writes the
// other slot: a level may be in the fields where sweeps put the next one. 1 is a sweep.
type pass struct{ depth, left, slot int }

// measuredSweep is a sweep that replaces a pass of one step, and what is taken of the step.
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

// blockedRound is the passes of a round.
type blockedRound struct {
	slot   int // that the first reads
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

// passName is the name of a launch in traces.
func passName(depth int) string { return fmt.Sprintf("pass of %d", depth) }

// passCosts are the durations of passes in sweeps, by their depth: infinite where there are none.
type passCosts struct {
	Plain    [deepestPass + 1]float64
	Measured float64 // a sweep that takes norms
	Wait     float64 // of the device, until the host has seen norms and queued the next pass

	// By of how many last steps they take norms; not of depth 1.
	Norms [temporal.MaxNorms + 1][deepestPass + 1]float64
}

// deepestPass is the most steps of a pass.
const deepestPass = 32

// newPassCosts returns those of sweeps alone.
func newPassCosts() (c passCosts) {
	for d := range c.Plain {
		c.Plain[d] = math.Inf(1)
		for n := range c.Norms {
			c.Norms[n][d] = math.Inf(1)
		}
	}
	c.Plain[1], c.Measured = 1, 1
	return c
}

// deepest returns the depth of the deepest passes.
func (c *passCosts) deepest() (depth int) {
	for d := range c.Plain {
		if !math.IsInf(c.Plain[d], 1) {
			depth = d
		}
		for n := range c.Norms {
			if !math.IsInf(c.Norms[n][d], 1) {
				depth = d
			}
		}
	}
	return depth
}

// join takes the greater of all costs: a subdomain that waits for others is as slow as the slowest.
func (c *passCosts) join(o *passCosts) {
	for d := range c.Plain {
		c.Plain[d] = max(c.Plain[d], o.Plain[d])
		for n := range c.Norms {
			c.Norms[n][d] = max(c.Norms[n][d], o.Norms[n][d])
		}
	}
	c.Measured, c.Wait = max(c.Measured, o.Measured), max(c.Wait, o.Wait)
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

// variable is the first of those that are stepped, the only one of a linear stencil.
func (b *blocked) variable() *Variable { return b.stage().Writes[0].Variable }

// linear returns the stencil of a stage that is one, of a variable of one component.
func (st *Stage) linear() (s stencil.Stencil, ok bool) {
	s, ok = st.Point.Linear()
	return s, ok && st.Writes[0].Variable.Spec.Components <= 1
}

// slot returns the slot of fields in which other schemes have a level, the same for all variables that are stepped.
func (b *blocked) slot(level int64) int { return b.variable().slot(level) }

// slotPhase returns a phase of steps whose level is in a slot.
func (b *blocked) slotPhase(slot int) int { return (slot - b.slot(0)) & 1 }

// slotOf returns the slot that holds the level of a step.
func (b *blocked) slotOf(step int64) int {
	if b.holds[1] == step {
		return 1
	}
	return 0
}

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

// arrays returns what a pass reads and writes that reads the fields of a slot.
func (b *blocked) arrays(rank, slot int) sweep.Arrays { return b.stage().arrays(rank, int64(slot)+1) }

// fields returns what a pass of a linear stencil reads and writes.
func (b *blocked) fields(p *blockedPart, slot int) (from, to kernels.Array) {
	return b.variable().levels[slot].Array(p.rank, 0), b.variable().levels[1-slot].Array(p.rank, 0)
}

// box returns the points of the last level of a pass.
func (b *blocked) box(p *blockedPart, key pass) domain.Box {
	return b.place.Grown(p.rank, farther(domain.Radius{}, b.step.reach(), key.left))
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
			for slot := range 2 {
				if err := do(pass{depth, left, slot}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// findPasses finds the passes of a subdomain, and makes room for the values of walls that move. It finds none where
// there are none of the stencil, or the point function is not linear: all steps are sweeps then.
func (b *blocked) findPasses(p *blockedPart) error {
	s, ok := b.stage().linear()
	if !ok {
		return nil
	}
	real, _ := b.variable().real()
	from, _ := b.fields(p, b.slot(b.done))
	made, err := temporal.New(b.compiler, p.device, s, real, from.Layout, b.passOptions(p.rank))
	if errors.Is(err, temporal.ErrImpossible) {
		return nil
	}
	if err != nil {
		return err
	}
	if p.sides, err = b.sides(p.rank); err != nil {
		return err
	}
	p.made = made
	return b.addTables(p, len(b.possible(made.Costs()))-1)
}

// newPass prepares a pass over a box of the subdomain.
func (b *blocked) newPass(p *blockedPart, name string, key pass, box domain.Box, of temporal.More) (Launch, error) {
	from, to := b.fields(p, key.slot)
	k, _, err := p.made.Pass(name, from, to, box, p.sides.Of(box, b.place.Subdomains[p.rank].Box), key.depth, of)
	if err != nil {
		return nil, err
	}
	b.run.resources.Add(k)
	return Kernel(k), nil
}

// newSweep prepares a sweep of boxes that reads the fields of a slot.
func (b *blocked) newSweep(p *blockedPart, name string, slot int, boxes ...domain.Box) (*sweep.Launch, Launch, error) {
	l, err := p.stages[0][0].sweeper.Sweep(name, b.arrays(p.rank, slot), boxes...)
	if err != nil {
		return nil, nil, err
	}
	b.run.resources.Add(l)
	return l, b.stage().launch(l, b.step.Length), nil
}

// passOptions returns what the passes of a subdomain do that take no norms.
func (b *blocked) passOptions(rank int) temporal.Options {
	o := temporal.Options{Sums: b.step.Sums}
	for _, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbour(rank, side); inside {
			continue
		}
		if c := b.variable().Boundary.At(side); c.Kind == boundary.Dirichlet && c.Profile != nil {
			o.Moving = true
		}
	}
	return o
}

// addTables makes room for the values of walls that move, at all levels of passes of a depth between the first and the
// last.
func (b *blocked) addTables(p *blockedPart, deepest int) (err error) {
	if p.tables, err = b.ghosts[b.variable()][0].NewTables(p.rank, deepest-1); err != nil || p.tables == nil {
		return err
	}
	b.run.resources.Add(p.tables)
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if box, values, ok := p.tables.At(side); ok {
			p.walls[i] = temporal.Wall{Box: box, Values: values}
		}
	}
	return nil
}

// sides returns what lies behind the sides of a subdomain. A kind of boundary that passes do not know is an error.
func (b *blocked) sides(rank int) (sides temporal.Sides, err error) {
	var reach domain.Radius
	for _, a := range b.step.reads(b.variable()) {
		reach = deeper(reach, a.footprint().Radius())
	}
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbour(rank, side); inside {
			continue
		}
		switch c := b.variable().Boundary.At(side); c.Kind {
		case boundary.Neumann:
			sides[i] = temporal.Mirror
		case boundary.Repeat:
			sides[i] = temporal.Repeat
		case boundary.Given:
			sides[i] = temporal.Fixed
		case boundary.Dirichlet:
			if sides[i] = temporal.Fixed; c.Odd && at(reach, side) > 1 {
				sides[i] = temporal.Odd
			}
		default:
			return sides, fmt.Errorf(
				"scheme: %w: %s has no passes behind boundaries of kind %q",
				ErrUnsuited,
				Blocked,
				c.Kind,
			)
		}
	}
	return sides, nil
}

// unblocked returns an error for steps that the scheme does not take.
func unblocked(x *Runner) error {
	if len(x.step.Stages) != 1 {
		return fmt.Errorf("runs steps of one stage, not of %d", len(x.step.Stages))
	}
	st := &x.step.Stages[0]
	if st.changes() {
		return fmt.Errorf("runs many steps at once, and what stage %q queues changes from step to step", st.title())
	}
	_, linear := st.linear()
	for _, a := range slices.Concat(st.Reads, st.Writes) {
		if !linear && !a.Variable.Boundary.Steady() {
			return fmt.Errorf("takes only linear stencils between walls that change with time, unlike stage %q",
				st.title())
		}
	}
	for _, w := range st.Writes {
		name := w.Variable.Spec.Name
		if err := unblockedWrite(st, w.Variable); err != nil {
			return err
		}
		for _, side := range domain.Faces(x.place.Grid.Dims) {
			if !x.place.Grid.Periodic[side.Axis()] && w.Variable.Boundary.At(side).Kind == boundary.Custom {
				return fmt.Errorf("runs steps between boundaries that halox sets, and one of %q has a user kernel",
					name)
			}
		}
	}
	for _, r := range st.Reads {
		if v := r.Variable; v.Levels() > 1 && !x.step.writes(v) {
			return fmt.Errorf("reads the same at each level, and %q, which no stage writes, has %d levels read in turn",
				v.Spec.Name, v.Levels())
		}
	}
	return nil
}

// unblockedWrite returns an error for a variable that the scheme does not step.
func unblockedWrite(st *Stage, v *Variable) error {
	switch name := v.Spec.Name; {
	case v.Spec.Stagger != [3]bool{}:
		return fmt.Errorf("runs steps of points of the grid, and %q is staggered", name)
	case v.Levels() == 1:
		return fmt.Errorf("runs steps from one level to the next, and %q has one level, which is updated in place",
			name)
	case v.Levels() > 2:
		return fmt.Errorf("runs steps from one level to the next of two, and %q has %d levels", name, v.Levels())
	}
	read := false
	for _, r := range st.Reads {
		if r.Variable != v {
			continue
		}
		if read = true; r.Level != 0 {
			return fmt.Errorf("runs steps from one level to the next, and stage %q reads level %+d of %q",
				st.title(), r.Level, v.Spec.Name)
		}
	}
	if !read {
		return fmt.Errorf("runs steps from one level to the next, and stage %q writes %q without reading it",
			st.title(), v.Spec.Name)
	}
	return nil
}
