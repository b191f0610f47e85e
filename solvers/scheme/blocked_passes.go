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

// blocked is what the workers of a run share.
type blocked struct {
	*run
	options   Options
	parts     []*blockedPart
	limits    blockedLimits
	connected bool      // see hasNeighbours
	measures  bool      // something is taken of steps
	allStore  bool      // passes of all subdomains store ghosts of neighbors
	costs     passCosts // by which passes are chosen, the same in all processes
	holds     [2]int64  // by slot the step whose level its fields hold, -1 for none, once the round is queued
	cuts      map[cutKey][]int
	round     blockedRound
}

// blockedLimits are how long passes are tuned, not at all for 0, and the least durations of exchanges that are
// overlapped, and that passes store.
type blockedLimits struct{ tuning, overlap, stores time.Duration }

// blockedPart drives one subdomain. Where all that is taken of a step is taken by the launch that runs it,
// norms is another stream, on which it is joined after the event measured: the next pass need not wait.
type blockedPart struct {
	*blocked
	*subdomain
	stream, norms *streams.Stream
	measured      *streams.Event
	made          *temporal.Passes // without norms; nil where all steps are sweeps
	sides         temporal.Sides   // of the subdomain
	walls         temporal.Walls
	tables        *boundary.Tables // of walls that move; nil where none does
	costs         passCosts
	passes        map[pass]Launch
	stores        map[pass]Launch // passes that end groups and store ghosts of neighbors too; nil where none does
	stored        bool            // the last pass of the run was a whole group, and did so
	overlap       *overlap        // nil where exchanges follow passes

	withNorms map[normPass]measuredPass
	normParts [2]*reduce.NormParts // by the slot that is written
	found     [2][][]total         // by number of the round and norm check
}

// overlap is what a subdomain needs to exchange ghosts while the last pass of a group computes its interior. The
// boundary region comes first, by separate passes, and its messages leave on another stream.
type overlap struct {
	messages  *streams.Stream
	swept     *streams.Event // the boundary region is
	exchanged *streams.Event
	ends      map[pass][]Launch // of passes that end a group: the boundary region, and last the interior
}

// pass is how many steps a pass runs, how many its group still has after it, and the slot that it reads. It writes the
// other slot: a level may be in the fields where sweeps put the next one. 1 is a sweep.
type pass struct{ depth, left, slot int }

// normPass is a pass that takes the norms of so many last steps.
type normPass struct {
	pass
	norms int
}

// measuredPass is a launch that takes norms, by how many steps before the last. Those of the last are queued.
type measuredPass struct {
	launch Launch
	totals [][]total
}

// passTotal is the norms of a step of a pass, so many before the last.
type passTotal struct {
	*reduce.NormReduction
	before int
}

func (p passTotal) addTo(s *taken) { s.norms[0] = p.Results()[p.before] }

// blockedRound is the passes of a round.
type blockedRound struct {
	slot   int // that the first reads
	depths []int
	checks []int64 // steps whose norms the last one takes
	number int64   // of rounds with checks
}

// cutKey is all that a division into passes depends on.
type cutKey struct {
	steps, least int
	check, norms int64 // how far the first norm check is, and the end with norms, 0 for beyond all
	end          [2]float64
}

// passName is the name of a launch in traces.
func passName(depth int) string { return fmt.Sprintf("pass of %d", depth) }

// passCosts are the durations of passes in sweeps: infinite where there are none.
type passCosts struct {
	// by the number of last steps whose norms they take, and by depth
	By   [temporal.MaxNorms + 1][deepestPass + 1]float64
	Wait float64 // of the device, until the host has seen norms and queued the next pass
}

// deepestPass is the most steps of a pass.
const deepestPass = 32

// newPassCosts returns those of sweeps alone.
func newPassCosts() (c passCosts) {
	for norms := range c.By {
		for d := range c.By[norms] {
			c.By[norms][d] = math.Inf(1)
		}
	}
	c.By[0][1], c.By[1][1] = 1, 1
	return c
}

// deepest returns the depth of the deepest passes.
func (p *passCosts) deepest() (depth int) {
	for _, costs := range p.By {
		for d, cost := range costs {
			if !math.IsInf(cost, 1) {
				depth = max(depth, d)
			}
		}
	}
	return depth
}

// join takes the greater of all costs: a subdomain that waits for others is as slow as the slowest.
func (p *passCosts) join(o *passCosts) {
	for norms := range p.By {
		for d := range p.By[norms] {
			p.By[norms][d] = max(p.By[norms][d], o.By[norms][d])
		}
	}
	p.Wait = max(p.Wait, o.Wait)
}

// deepest is the most steps after an exchange; 1 where nothing is exchanged, and no ghosts are swept.
func (b *blocked) deepest() int {
	if b.connected {
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
	if !b.connected {
		return 0
	}
	return int(b.groupEnd(n) - n)
}

// groupEnd returns the last step of the group of a step.
func (b *blocked) groupEnd(n int64) int64 {
	k := int64(b.step.group())
	return (b.done+n+k-1)/k*k - b.done
}

// owned returns the points of the subdomain.
func (b *blockedPart) owned() domain.Box { return b.place.Subdomains[b.rank].Box }

// arrays returns what a pass reads and writes that reads the fields of a slot.
func (b *blockedPart) arrays(slot int) sweep.Arrays { return b.stage().arrays(b.rank, int64(slot)+1) }

// fields returns what a pass of a linear stencil reads and writes.
func (b *blockedPart) fields(slot int) (from, to kernels.Array) {
	return b.variable().levels[slot].Array(b.rank, 0), b.variable().levels[1-slot].Array(b.rank, 0)
}

// box returns the points of the last level of a pass.
func (b *blockedPart) box(key pass) domain.Box {
	return b.place.Grown(b.rank, farther(domain.Radius{}, b.step.reach(), key.left))
}

// possible returns the costs of passes that a group has room for.
func (b *blocked) possible(cost []float64) []float64 {
	if b.connected {
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
func (b *blockedPart) findPasses() error {
	s, ok := b.stage().linear()
	if !ok {
		return nil
	}
	real, _ := b.variable().real()
	from, _ := b.fields(b.slot(b.done))
	made, err := temporal.New(b.compiler, b.device, s, real, from.Layout, b.passOptions())
	if errors.Is(err, temporal.ErrImpossible) {
		return nil
	}
	if err != nil {
		return err
	}
	if b.sides, err = b.passSides(); err != nil {
		return err
	}
	b.made = made
	return b.addTables(len(b.possible(made.Costs())) - 1)
}

// tune measures what passes over a box cost, compared with a sweep of it.
func (b *blockedPart) tune(passes *temporal.Passes, sweep *streams.Kernel, of temporal.More) error {
	if b.limits.tuning == 0 {
		return nil
	}
	from, to := b.fields(b.slot(b.done))
	return passes.Tune(sweep, from, to, b.owned(), b.sides, of, b.limits.tuning)
}

// newPass prepares a pass over a box of the subdomain.
func (b *blockedPart) newPass(name string, key pass, box domain.Box, of temporal.More) (Launch, error) {
	from, to := b.fields(key.slot)
	k, _, err := b.made.Pass(name, from, to, box, b.sides.Of(box, b.owned()), key.depth, of)
	if err != nil {
		return nil, err
	}
	b.run.resources.Add(k)
	return Kernel(k), nil
}

// newSweep prepares a sweep of boxes that reads the fields of a slot.
func (b *blockedPart) newSweep(name string, slot int, boxes ...domain.Box) (*sweep.Launch, Launch, error) {
	l, err := b.stages[0][0].sweeper.Sweep(name, b.arrays(slot), boxes...)
	if err != nil {
		return nil, nil, err
	}
	b.run.resources.Add(l)
	return l, b.stage().launch(l, b.step.Length), nil
}

// passOptions returns what the passes of a subdomain do that take no norms.
func (b *blockedPart) passOptions() temporal.Options {
	o := temporal.Options{Sums: b.step.Sums}
	for _, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbour(b.rank, side); inside {
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
func (b *blockedPart) addTables(deepest int) (err error) {
	if b.tables, err = b.ghosts[b.variable()][0].NewTables(b.rank, deepest-1); err != nil || b.tables == nil {
		return err
	}
	b.run.resources.Add(b.tables)
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if box, values, ok := b.tables.At(side); ok {
			b.walls[i] = temporal.Wall{Box: box, Values: values}
		}
	}
	return nil
}

// passSides returns what lies behind the sides of the subdomain. A kind of boundary that passes do not know is an
// error.
func (b *blockedPart) passSides() (sides temporal.Sides, err error) {
	reach := b.step.readRadius(b.variable())
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbour(b.rank, side); inside {
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
			return sides, fmt.Errorf("scheme: %w: %s has no passes behind boundaries of kind %q",
				ErrUnsuited, Blocked, c.Kind)
		}
	}
	return sides, nil
}

// unblocked returns an error for steps that the scheme does not take.
func unblocked(r *Runner) error {
	if len(r.step.Stages) != 1 {
		return fmt.Errorf("runs steps of one stage, not of %d", len(r.step.Stages))
	}
	st := &r.step.Stages[0]
	if len(st.Writes) == 0 {
		return fmt.Errorf("runs many steps at once, and stage %q writes nothing", st.title())
	}
	if st.changes() {
		return fmt.Errorf("runs many steps at once, and what stage %q queues changes from step to step", st.title())
	}
	_, linear := st.linear()
	for a := range st.accesses {
		if !linear && !a.Variable.Boundary.Steady() {
			return fmt.Errorf("takes only linear stencils between walls that change with time, unlike stage %q",
				st.title())
		}
	}
	for _, w := range st.Writes {
		if err := unblockedWrite(r, st, w.Variable); err != nil {
			return err
		}
	}
	for _, a := range st.Reads {
		if v := a.Variable; v.Levels() > 1 && !r.step.writes(v) {
			return fmt.Errorf("reads the same at each level, and %q, which no stage writes, has %d levels read in turn",
				v.Spec.Name, v.Levels())
		}
	}
	return nil
}

// unblockedWrite returns an error for a variable that the scheme does not step.
func unblockedWrite(r *Runner, st *Stage, v *Variable) error {
	name := v.Spec.Name
	switch {
	case v.Spec.Stagger != [3]bool{}:
		return fmt.Errorf("runs steps of points of the grid, and %q is staggered", name)
	case v.Levels() == 1:
		return fmt.Errorf("runs steps from one level to the next, and %q has one level, which is updated in place",
			name)
	case v.Levels() > 2:
		return fmt.Errorf("runs steps from one level to the next of two, and %q has %d levels", name, v.Levels())
	}
	reads := slices.DeleteFunc(slices.Clone(st.Reads), func(a Access) bool { return a.Variable != v })
	if len(reads) == 0 {
		return fmt.Errorf("runs steps from one level to the next, and stage %q writes %q without reading it",
			st.title(), name)
	}
	for _, a := range reads {
		if a.Level != 0 {
			return fmt.Errorf("runs steps from one level to the next, and stage %q reads level %+d of %q",
				st.title(), a.Level, name)
		}
	}
	for _, side := range domain.Faces(r.place.Grid.Dims) {
		if !r.place.Grid.Periodic[side.Axis()] && v.Boundary.At(side).Kind == boundary.Custom {
			return fmt.Errorf("runs steps between boundaries that halox sets, and one of %q has a user kernel", name)
		}
	}
	return nil
}
