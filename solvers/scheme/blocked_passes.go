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

// Blocked is the scheme that runs several steps of a linear stencil in one pass over memory of a GPU
// (temporal blocking). If that is not faster, on CPU devices, and for other point functions it sweeps. It
// supports steps of one stage that computes the next level of variables from one level.
//
// A group is the steps between two exchanges, see Step.Group: with neighbors and an exchange after each step
// it only sweeps. Norms are taken by the pass that runs their step, or by a sweep of that step alone.
const Blocked Scheme = "blocked"

// blocked is shared by the workers of a run.
type blocked struct {
	*run
	options   Options
	parts     []*blockedPart
	limits    blockedLimits
	connected bool      // see hasNeighbours
	measures  bool      // norms or reductions are taken
	allStore  bool      // passes of all subdomains store ghosts of neighbors
	costs     passCosts // costs by which passes are chosen, equal in all processes
	holds     [2]int64  // by slot: the step whose level its fields have, -1 for none, after the queued round
	cuts      map[cutKey][]int
	round     blockedRound
}

// blockedLimits are the time for tuning passes (0: no tuning), and the minimum durations of exchanges that
// are overlapped, and that passes store.
type blockedLimits struct{ tuning, overlap, stores time.Duration }

// blockedPart drives one subdomain. If the launch that runs a step takes all its norms and reductions, norms
// is another stream, on which they are joined after the event measured: the next pass does not wait.
type blockedPart struct {
	*blocked
	*subdomain
	stream, norms *streams.Stream
	measured      *streams.Event
	made          *temporal.Passes // without norms; nil if all steps are sweeps
	sides         temporal.Sides   // of the subdomain
	walls         temporal.Faces
	tables        *boundary.Tables // of time-dependent faces; nil if there are none
	costs         passCosts
	passes        map[pass]Launch
	stores        map[pass]Launch // passes that end groups and store ghosts of neighbors; nil if there are none
	stored        bool            // the last pass of the run was a whole group, and stored ghosts
	overlap       *overlap        // nil if exchanges follow passes

	withNorms map[normPass]measuredPass
	normParts [2]*reduce.NormParts // by written slot
	found     [2][][]total         // by number of the round and norm check
}

// overlap is what a subdomain needs to exchange ghosts while the last pass of a group computes its interior.
// The boundary region comes first, by separate passes, and its messages are sent on another stream.
type overlap struct {
	messages  *streams.Stream
	swept     *streams.Event // the boundary region has been swept
	exchanged *streams.Event
	ends      map[pass][]Launch // passes that end a group: the boundary region, then the interior
}

// pass is the number of steps of a pass, the number of steps that its group still has after it, and the slot
// that it reads. It writes the other slot: a level may be in the fields where sweeps put the next one. Depth
// 1 is a sweep.
type pass struct{ depth, left, slot int }

// normPass is a pass that takes the norms of a number of last steps.
type normPass struct {
	pass
	norms int
}

// measuredPass is a launch that takes norms, by number of steps before the last. Those of the last are
// queued.
type measuredPass struct {
	launch Launch
	totals [][]total
}

// passTotal is the norms of a step of a pass, a number of steps before the last.
type passTotal struct {
	*reduce.NormReduction
	before int
}

func (p passTotal) addTo(s *taken) { s.norms[0] = p.Results()[p.before] }

// blockedRound is the passes of a round.
type blockedRound struct {
	slot   int // read by the first pass
	depths []int
	checks []int64 // steps whose norms the last pass takes
	number int64   // of rounds with checks
}

// cutKey is everything that a division into passes depends on.
type cutKey struct {
	steps, least int
	check, norms int64 // distances to the first norm check, and to the end with norms; 0: beyond all steps
	end          [2]float64
}

// passName is the name of a launch in traces.
func passName(depth int) string { return fmt.Sprintf("pass of %d", depth) }

// passCosts are the durations of passes in sweeps: infinite for passes that do not exist.
type passCosts struct {
	// by the number of last steps whose norms they take, and by depth
	By   [temporal.MaxNorms + 1][deepestPass + 1]float64
	Wait float64 // idle time of the device until the host has read norms and queued the next pass
}

// deepestPass is the maximum number of steps of a pass.
const deepestPass = 32

// newPassCosts returns the costs of sweeps only.
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

// join takes the maximum of all costs: a subdomain that waits for others is as slow as the slowest.
func (p *passCosts) join(o *passCosts) {
	for norms := range p.By {
		for d := range p.By[norms] {
			p.By[norms][d] = max(p.By[norms][d], o.By[norms][d])
		}
	}
	p.Wait = max(p.Wait, o.Wait)
}

// deepest is the maximum number of steps after an exchange; 1 without exchanges, since no ghosts are swept.
func (b *blocked) deepest() int {
	if b.connected {
		return b.step.group()
	}
	return 1
}

// stage is the only stage.
func (b *blocked) stage() *Stage { return &b.step.Stages[0] }

// variable is the first variable that is stepped, the only one of a linear stencil.
func (b *blocked) variable() *Variable { return b.stage().Writes[0].Variable }

// linear returns the stencil of a stage that is a linear stencil of a variable with one component.
func (st *Stage) linear() (s stencil.Stencil, ok bool) {
	s, ok = st.Point.Linear()
	return s, ok && st.Writes[0].Variable.Spec.Components <= 1
}

// slot returns the slot in which other schemes store a level, equal for all variables that are stepped.
func (b *blocked) slot(level int64) int { return b.variable().slot(level) }

// slotPhase returns a phase of steps whose level is in a slot.
func (b *blocked) slotPhase(slot int) int { return (slot - b.slot(0)) & 1 }

// slotOf returns the slot with the level of a step.
func (b *blocked) slotOf(step int64) int {
	if b.holds[1] == step {
		return 1
	}
	return 0
}

// left returns the number of steps of its group after a step, 0 without exchanges.
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

// arrays returns the arrays of a pass that reads the fields of a slot.
func (b *blockedPart) arrays(slot int) sweep.Arrays { return b.stage().arrays(b.rank, int64(slot)+1) }

// fields returns the arrays that a pass of a linear stencil reads and writes.
func (b *blockedPart) fields(slot int) (from, to kernels.Array) {
	return b.variable().levels[slot].Array(b.rank, 0), b.variable().levels[1-slot].Array(b.rank, 0)
}

// box returns the points of the last level of a pass.
func (b *blockedPart) box(key pass) domain.Box {
	return b.place.Grown(b.rank, farther(domain.Radius{}, b.step.reach(), key.left))
}

// possible returns the costs of passes that fit in a group.
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
// there are none of the stencil or behind a boundary, or the point function is not linear: all steps are sweeps then.
func (b *blockedPart) findPasses() error {
	s, linear := b.stage().linear()
	sides, known := b.passSides()
	if !linear || !known {
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
	b.made, b.sides = made, sides
	return b.addTables(len(b.possible(made.Costs())) - 1)
}

// tune measures the costs of passes over a box, relative to a sweep of it.
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
	return l, b.stage().launch(l, b.Runner), nil
}

// passOptions returns the options of passes without norms.
func (b *blockedPart) passOptions() temporal.Options {
	o := temporal.Options{Sums: b.step.Sums}
	for _, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbor(b.rank, side); inside {
			continue
		}
		if c := b.variable().Boundary.At(side); c.Kind == boundary.Dirichlet && c.Profile != nil {
			o.Moving = true
		}
	}
	return o
}

// addTables allocates the values of time-dependent faces, at all levels of the first to the last depth of
// passes.
func (b *blockedPart) addTables(deepest int) (err error) {
	if b.tables, err = b.ghosts[b.variable()][0].NewTables(b.rank, deepest-1); err != nil || b.tables == nil {
		return err
	}
	b.run.resources.Add(b.tables)
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if box, values, ok := b.tables.At(side); ok {
			b.walls[i] = temporal.Face{Box: box, Values: values}
		}
	}
	return nil
}

// passSides returns what lies behind the sides of the subdomain. ok is false for a boundary that passes do not know.
func (b *blockedPart) passSides() (sides temporal.Sides, ok bool) {
	reach := b.step.readRadius(b.variable())
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbor(b.rank, side); inside {
			continue
		}
		c := b.variable().Boundary.At(side)
		if c.Affine() {
			return sides, false
		}
		switch c.Kind {
		case boundary.Neumann:
			sides[i] = temporal.Mirror
		case boundary.Outflow:
			sides[i] = temporal.Repeat
		case boundary.Given:
			sides[i] = temporal.Fixed
		case boundary.Dirichlet:
			if sides[i] = temporal.Fixed; c.Odd && at(reach, side) > 1 {
				sides[i] = temporal.Odd
			}
		default:
			return sides, false
		}
	}
	return sides, true
}

// unblocked returns an error for steps that the scheme does not support.
func unblocked(r *Runner) error {
	if len(r.step.Stages) != 1 {
		return fmt.Errorf("runs steps of one stage, got %d", len(r.step.Stages))
	}
	st := &r.step.Stages[0]
	if len(st.Writes) == 0 {
		return fmt.Errorf("runs several steps at once: stage %q must write a variable", st.title())
	}
	if st.Time != 0 && st.Time != 1 {
		return fmt.Errorf("runs steps of one stage: Stage.Time must be 1, or 0 for 1, got %v", st.Time)
	}
	_, linear := st.linear()
	for a := range st.accesses {
		if !linear && !a.Variable.Boundary.Steady() {
			return fmt.Errorf("needs a linear stencil for time-dependent boundary values, unlike stage %q", st.title())
		}
	}
	for _, w := range st.Writes {
		if err := unblockedWrite(r, st, w.Variable); err != nil {
			return err
		}
	}
	for _, a := range st.Reads {
		if v := a.Variable; v.Levels() > 1 && !r.step.writes(v) {
			return fmt.Errorf(
				"reads the same fields in each step: %q, which no stage writes, must have one level, got %d",
				v.Spec.Name, v.Levels())
		}
	}
	return nil
}

// unblockedWrite returns an error for a variable that the scheme cannot step.
func unblockedWrite(r *Runner, st *Stage, v *Variable) error {
	name := v.Spec.Name
	switch {
	case slices.Contains(v.Spec.Stagger, true):
		return fmt.Errorf("does not support staggered variables such as %q", name)
	case v.Levels() == 1:
		return fmt.Errorf("runs steps from one level to the next: %q must have two levels, got one", name)
	case v.Levels() > 2:
		return fmt.Errorf("needs variables of two levels, got %d for %q", v.Levels(), name)
	}
	reads := slices.DeleteFunc(slices.Clone(st.Reads), func(a Access) bool { return a.Variable != v })
	if len(reads) == 0 {
		return fmt.Errorf("runs steps from level to level: stage %q must read %q, which it writes", st.title(), name)
	}
	for _, a := range reads {
		if a.Level != 0 {
			return fmt.Errorf("runs steps from one level to the next: stage %q must read level 0 of %q, got %+d",
				st.title(), name, a.Level)
		}
	}
	for _, side := range domain.Faces(r.place.Grid.Dims) {
		if !r.place.Grid.Periodic[side.Axis()] && v.Boundary.At(side).Kind == boundary.Custom {
			return fmt.Errorf("does not support user kernels at boundaries, as %q has", name)
		}
	}
	return nil
}
