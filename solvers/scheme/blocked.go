package scheme

import (
	"errors"
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo/boundary"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

// Blocked is the scheme that makes several steps in one pass over memory (temporal blocking): of a linear stencil or another point function
// that computes a step by itself, from one level of variables to the next, behind walls that do not move. Between two exchanges lie the steps of a group, see Step.Group: with neighbours and an exchange after
// each step there is nothing to join. A step of which norms are taken is a sweep.
const Blocked Scheme = "blocked"

func blockedScheme() *definition {
	return &definition{
		name: Blocked, needs: Needs{Swept: true, Steady: true, Groups: true, Processes: true},
		assistants: none, unfit: unblocked, make: newBlocked,
	}
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

type blocked struct {
	*run
	parts      []*blockedPart
	tune       tuner
	neighbours bool // see hasNeighbours
}

// blockedPart is what one worker drives.
type blockedPart struct {
	*subdomain
	stream *streams.Stream
	cost   []float64 // of passes, see temporal.Cut
	cuts   map[int][]int
	passes map[pass]Launch
}

// pass is how many steps a pass makes, how many its group still has after it, and the field that it reads. It writes the other one:
// between the passes of a group a level may lie in the field where sweeps put the next one. 1 is a sweep.
type pass struct{ depth, left, slot int }

func newBlocked(r *run, _ Options) (scheme, error) { return newBlockedBy(r, passMaker.tune) }

// tuner finds out what passes over a box cost, beside a sweep of it.
type tuner func(p passMaker, sweep *streams.Kernel, arrays sweep.Arrays, box domain.Box) error

func newBlockedBy(r *run, tune tuner) (scheme, error) {
	b := &blocked{run: r, tune: tune, neighbours: hasNeighbours(r.Runner)}
	if err := r.makeCredits(); err != nil {
		return nil, err
	}
	for _, rank := range r.local {
		if err := b.addPart(r.subdomains[rank]); err != nil {
			return nil, unsuitable(err)
		}
	}
	return b, nil
}

// unsuitable has the error of what has no passes tell that the scheme does not suit the step.
func unsuitable(err error) error {
	if errors.Is(err, temporal.ErrImpossible) {
		return fmt.Errorf("scheme: %w: %s: %w", ErrUnsuited, Blocked, err)
	}
	return err
}

// addPart makes the passes of a subdomain.
func (b *blocked) addPart(d *subdomain) error {
	p := &blockedPart{subdomain: d, passes: map[pass]Launch{}, cuts: map[int][]int{}}
	d.totals = d.whole
	var err error
	if p.stream, err = b.newStream(d.device, streams.Normal, "steps"); err != nil {
		return err
	}
	passes, err := newPasses(b.run, d, func(v *Variable) temporal.Sides { return b.sides(d.rank, v) })
	if err != nil {
		return err
	}
	slot := b.slot(b.done)
	var alone *streams.Kernel // a sweep of the subdomain
	for now := range 2 {
		for left := range b.deepest() {
			l, err := b.addSweep(p, pass{1, left, now})
			if err != nil {
				return err
			}
			if left == 0 && now == slot {
				alone = l.Kernel
			}
		}
	}
	if err := b.tune(passes, alone, b.arrays(d.rank, slot), b.place.Subdomains[d.rank].Box); err != nil {
		return err
	}
	p.cost = passes.costs()
	if b.neighbours {
		p.cost = p.cost[:min(len(p.cost), b.step.group()+1)]
	}
	for depth := 2; depth < len(p.cost); depth++ {
		if math.IsInf(p.cost[depth], 1) {
			continue
		}
		for left := range max(1, b.deepest()-depth+1) {
			for now := range 2 {
				if err := b.addPass(p, passes, pass{depth, left, now}); err != nil {
					return err
				}
			}
		}
	}
	b.parts = append(b.parts, p)
	return nil
}

// deepest is the most steps after an exchange; 1 where nothing is exchanged, and no ghosts are swept.
func (b *blocked) deepest() int {
	if b.neighbours {
		return b.step.group()
	}
	return 1
}

// arrays returns what a pass reads and writes that reads the fields of a slot.
func (b *blocked) arrays(rank, slot int) sweep.Arrays { return b.stage().arrays(rank, int64(slot)+1) }

// box returns the points of the last level of a pass.
func (b *blocked) box(p *blockedPart, key pass) domain.Box {
	return b.place.Grown(p.rank, farther(domain.Radius{}, b.step.reach(), key.left))
}

// addSweep makes a pass of one step ready.
func (b *blocked) addSweep(p *blockedPart, key pass) (*sweep.Launch, error) {
	l, err := p.stages[0][0].sweeper.Sweep("sweep", b.arrays(p.rank, key.slot), b.box(p, key))
	if err != nil {
		return nil, err
	}
	b.run.resources.Add(l)
	p.passes[key] = b.stage().launch(l, b.step.Length)
	return l, nil
}

// addPass makes a pass of several steps ready.
func (b *blocked) addPass(p *blockedPart, passes passMaker, key pass) (err error) {
	p.passes[key], err = passes.pass(fmt.Sprintf("pass of %d", key.depth), b.arrays(p.rank, key.slot), b.box(p, key), key.depth)
	return err
}

// stage is the only one.
func (b *blocked) stage() *Stage { return &b.step.Stages[0] }

// slot returns the fields that hold a level, of all variables that are stepped alike.
func (b *blocked) slot(level int64) int { return b.stage().Writes[0].Variable.slot(level) }

// sides returns what lies behind the sides of a subdomain, of a variable.
func (b *blocked) sides(rank int, v *Variable) (sides temporal.Sides) {
	var reach domain.Radius
	for _, a := range b.step.reads(v) {
		reach = deeper(reach, a.footprint().Radius())
	}
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
		if norms && end == last {
			if err := b.passesTo(p, n, end-1); err != nil {
				return err
			}
			if err := b.measure(p, end); err != nil {
				return err
			}
		} else if err := b.passesTo(p, n, end); err != nil {
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

// passesTo makes steps of one group.
func (b *blocked) passesTo(p *blockedPart, first, last int64) error {
	if last < first {
		return nil
	}
	key := pass{slot: b.slot(b.done + first - 1)}
	if b.neighbours {
		key.left = int(b.groupEnd(last) - first + 1)
	}
	n := first
	for _, key.depth = range p.cut(int(last - first + 1)) {
		key.left = max(0, key.left-key.depth)
		p.stream.BeginStep(n)
		if err := b.eachGhosts(key.slot, func(g *boundary.Ghosts) error { return g.Complete(p.rank, p.stream) }); err != nil {
			return err
		}
		if err := b.launch(p.stream, p.passes[key], n); err != nil {
			return err
		}
		n += int64(key.depth)
		key.slot = 1 - key.slot
		if err := b.eachGhosts(key.slot, func(g *boundary.Ghosts) error { return g.Mirror(p.rank, p.stream) }); err != nil {
			return err
		}
	}
	return b.send(p, last)
}

// eachGhosts calls do for the ghosts of the fields of a slot, of all variables that are stepped and have some.
func (b *blocked) eachGhosts(slot int, do func(g *boundary.Ghosts) error) error {
	for _, w := range b.stage().Writes {
		if all := b.ghosts[w.Variable]; all != nil {
			if err := do(all[slot]); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut returns the depths of the passes for so many steps. Those of the last few numbers are remembered.
func (p *blockedPart) cut(steps int) []int {
	depths, ok := p.cuts[steps]
	if !ok {
		if len(p.cuts) == 64 {
			clear(p.cuts)
		}
		depths = temporal.Cut(steps, p.cost)
		p.cuts[steps] = depths
	}
	return depths
}

// measure makes one step by a sweep that takes norms.
func (b *blocked) measure(p *blockedPart, n int64) error {
	p.stream.BeginStep(n)
	if err := b.complete(p.subdomain, p.stream, 0, n); err != nil {
		return err
	}
	if err := b.launch(p.stream, p.sweeps(b.run, 0, n, true).whole, n); err != nil {
		return err
	}
	if err := b.queueTotals(p.subdomain, p.stream, n); err != nil {
		return err
	}
	if err := b.refresh(p.subdomain, p.stream, 0, n); err != nil {
		return err
	}
	return b.send(p, n)
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
