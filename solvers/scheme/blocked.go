package scheme

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

// Blocked is the scheme that makes several steps in one pass over memory (temporal blocking): of one linear stencil. Between two exchanges lie the steps of a group, see Step.Group: with neighbours and an exchange after
// each step there is nothing to join. Norms of a step are taken by the pass, or the sweep, that ends with it.
const Blocked Scheme = "blocked"

func blockedScheme() *definition {
	return &definition{
		name: Blocked, needs: Needs{Swept: true, Groups: true, Processes: true},
		assistants: none, unfit: unblocked, make: newBlocked,
	}
}

// unblocked returns an error for steps that no passes make.
func unblocked(x *Runner) error {
	if len(x.step.Stages) != 1 {
		return fmt.Errorf("makes steps of one stage, not of %d", len(x.step.Stages))
	}
	st := &x.step.Stages[0]
	if _, ok := st.Point.Linear(); !ok {
		return fmt.Errorf("makes steps of a linear stencil, and stage %q is another point function", st.Name)
	}
	if st.changes() {
		return fmt.Errorf("makes many steps at once, and what stage %q queues changes from step to step", st.Name)
	}
	v := st.Writes[0].Variable
	if len(st.Reads) != 1 || len(st.Writes) != 1 || v != st.Reads[0].Variable || st.Reads[0].Level != 0 || v.Levels() != 2 || v.Spec.Components > 1 || v.Spec.Stagger != [3]bool{} {
		return fmt.Errorf("makes steps from one level of a variable to the next, of two levels and one component, and stage %q makes others", st.Name)
	}
	for _, side := range domain.Faces(x.place.Grid.Dims) {
		if x.place.Grid.Periodic[side.Axis()] {
			continue
		}
		if v.Boundary.At(side).Kind == boundary.Custom {
			return fmt.Errorf("a boundary of %q has a kernel of its own", v.Spec.Name)
		}
	}
	return nil
}

// hasNeighbours reports whether any subdomain has one, which may be itself.
func hasNeighbours(x *Runner) bool {
	for _, sub := range x.place.Subdomains {
		for _, side := range domain.Faces(x.place.Grid.Dims) {
			if _, ok := x.place.Neighbour(sub.Rank, side); ok {
				return true
			}
		}
	}
	return false
}

func newBlocked(r *run, _ Options) (scheme, error) {
	b := &blocked{run: r, neighbours: hasNeighbours(r.Runner)}
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	b.stencil, _ = r.step.Stages[0].Point.Linear()
	for _, rank := range r.local {
		if err := b.addPart(r.subdomains[rank]); err != nil {
			if errors.Is(err, temporal.ErrImpossible) {
				return nil, fmt.Errorf("scheme: %w: %s: %w", ErrUnsuited, Blocked, err)
			}
			return nil, err
		}
	}
	return b, nil
}

// addPart makes the passes of a subdomain.
func (b *blocked) addPart(d *subdomain) error {
	p := &blockedPart{subdomain: d, passes: map[pass]*streams.Kernel{}, cuts: map[int][]int{}}
	d.totals = nil
	var err error
	if p.stream, err = b.newStream(d.device, streams.Normal, "steps"); err != nil {
		return err
	}
	real, _ := b.variable().real()
	passes, err := temporal.New(b.compiler, d.device, b.stencil, real, b.variable().levels[0].Array(d.rank, 0).Layout, b.options(d.rank, 0))
	if err != nil {
		return err
	}
	if err := b.addTables(p, len(b.possible(passes.Costs()))-1); err != nil {
		return err
	}
	sides, slot := b.sides(d.rank), b.variable().slot(b.done)
	for now := range 2 {
		for left := range b.deepest() {
			if err := b.addSweep(p, pass{1, left, now}); err != nil {
				return err
			}
		}
	}
	from, to := b.fields(p, slot)
	if err := passes.Tune(p.passes[pass{1, 0, slot}], from, to, b.place.Subdomains[d.rank].Box, sides, temporal.More{Walls: p.walls}, tuneBudget); err != nil {
		return err
	}
	p.cost = b.possible(passes.Costs())
	if err := b.eachPass(p.cost, func(key pass) error { return b.addPass(p, passes, sides, key) }); err != nil {
		return err
	}
	b.parts = append(b.parts, p)
	return b.addNormPasses(p, sides)
}

// addSweep makes a pass of one step ready.
func (b *blocked) addSweep(p *blockedPart, key pass) error {
	from, to := b.fields(p, key.slot)
	l, err := p.stages[0][0].sweeper.Sweep("sweep", sweep.Arrays{{from}, {to}}, b.box(p, key))
	if err != nil {
		return err
	}
	b.run.resources.Add(l)
	p.passes[key] = l.Kernel
	return nil
}

// addPass makes a pass of several steps ready.
func (b *blocked) addPass(p *blockedPart, passes *temporal.Passes, sides temporal.Sides, key pass) error {
	from, to := b.fields(p, key.slot)
	k, _, err := passes.Pass(passName(key.depth), from, to, b.box(p, key), sides, key.depth, temporal.More{Walls: p.walls})
	if err != nil {
		return err
	}
	b.run.resources.Add(k)
	p.passes[key] = k
	return nil
}

// sides returns what lies behind the sides of a subdomain.
func (b *blocked) sides(rank int) (sides temporal.Sides) {
	v, reach := b.variable(), b.step.reach()
	for i, side := range domain.Faces(b.place.Grid.Dims) {
		if _, inside := b.place.Neighbour(rank, side); inside {
			continue
		}
		c := v.Boundary.At(side)
		switch {
		case c.Kind == boundary.Neumann:
			sides[i] = temporal.Mirror
		case c.Kind == boundary.Repeat:
			sides[i] = temporal.Repeat
		case c.Kind == boundary.Dirichlet && c.Odd && at(reach, side) > 1:
			sides[i] = temporal.Odd
		default:
			sides[i] = temporal.Fixed
		}
	}
	return sides
}

func (b *blocked) workers() [][]int { return alone(b.local) }
func (b *blocked) assistants()      {}
func (b *blocked) stop(int, int64)  {}

// maxQueued is that of sweeps, times the depth of passes.
func (b *blocked) maxQueued() int64 {
	deepest := 1
	for _, p := range b.parts {
		deepest = max(deepest, len(p.cost)-1)
	}
	return maxSteps * int64(deepest)
}

func (b *blocked) queues(rank int) (steps, norms *streams.Stream) {
	s := b.parts[b.workerOf(rank)].stream
	return s, s
}

func (b *blocked) steps(worker int, first, last int64, norms bool) error {
	p := b.parts[worker]
	for n := first; n <= last; {
		end := last
		if b.neighbours {
			end = min(end, b.groupEnd(n))
		}
		if err := b.passesTo(p, n, end, norms && end == last); err != nil {
			return err
		}
		n = end + 1
	}
	return nil
}

// groupEnd returns the last step of the group of a step.
func (b *blocked) groupEnd(n int64) int64 {
	k := int64(b.step.group())
	return (b.done+n+k-1)/k*k - b.done
}

// passesTo makes steps of one group, with norms of the last.
func (b *blocked) passesTo(p *blockedPart, first, last int64, norms bool) error {
	key := pass{slot: b.variable().slot(b.done + first - 1)}
	if b.neighbours {
		key.left = int(b.groupEnd(last) - first + 1)
	}
	n := first
	for _, key.depth = range p.cut(int(last-first+1), norms) {
		key.left = max(0, key.left-key.depth)
		p.stream.BeginStep(n)
		ghosts := b.ghosts[b.variable()]
		if err := ghosts[key.slot].Complete(p.rank, p.stream); err != nil {
			return err
		}
		if err := p.tables.Queue(p.stream, b.done+n, key.depth-1, b.step.Length); err != nil {
			return err
		}
		n += int64(key.depth)
		var err error
		if norms && n > last {
			err = b.launchLast(p, key, last)
		} else {
			err = p.stream.Launch(p.passes[key])
		}
		if err != nil {
			return err
		}
		key.slot = 1 - key.slot
		if err := ghosts[key.slot].Refresh(p.rank, p.stream, b.done+n-1, b.time(n-1)); err != nil {
			return err
		}
	}
	return b.send(p, last)
}

// cut returns the depths of the passes for so many steps, the last with norms. Those of the last few numbers are remembered.
func (p *blockedPart) cut(steps int, norms bool) []int {
	cuts := p.cuts
	if norms {
		cuts = p.norms.cuts
	}
	depths, ok := cuts[steps]
	if !ok {
		if len(cuts) == 64 {
			clear(cuts)
		}
		if norms {
			depths = temporal.CutLast(steps, p.cost, p.norms.cost)
		} else {
			depths = temporal.Cut(steps, p.cost)
		}
		cuts[steps] = depths
	}
	return depths
}

// send exchanges the ghosts of neighbours after a step that ends a group.
func (b *blocked) send(p *blockedPart, n int64) error {
	if !b.sends(0, n) || b.plans[0] == nil {
		return nil
	}
	if err := b.giveCredit(p.subdomain, p.stream, 0, n); err != nil {
		return err
	}
	for _, i := range p.out[0] {
		if err := b.takeCredit(p.stream, 0, i, n); err != nil {
			return err
		}
		if err := b.exchange(0, n).Transfer(i).Send(p.stream); err != nil {
			return err
		}
	}
	for _, i := range p.in[0] {
		if err := b.exchange(0, n).Transfer(i).Receive(b.run.workers, p.stream); err != nil {
			return err
		}
	}
	return nil
}

func (b *blocked) sync(worker int) error { return b.parts[worker].stream.Sync(b.patience()) }
