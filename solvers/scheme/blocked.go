package scheme

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

// Blocked is the scheme that makes several steps in one pass over memory (temporal blocking): of a linear stencil, or of another
// point function that computes a step by itself, from one level of variables to the next. Between two exchanges lie the steps of a
// group, see Step.Group: with neighbours and an exchange after each step there is nothing to join. Norms of a step are taken by the
// pass, or the sweep, that ends with it.
const Blocked Scheme = "blocked"

func blockedScheme() *definition {
	return &definition{
		name: Blocked, needs: Needs{Swept: true, Groups: true, Processes: true},
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

func newBlocked(r *run, _ Options) (scheme, error) { return newBlockedBy(r, passMaker.tune) }

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

// unsuitable makes temporal.ErrImpossible an ErrUnsuited, so that auto goes on to other schemes.
func unsuitable(err error) error {
	if errors.Is(err, temporal.ErrImpossible) {
		return fmt.Errorf("scheme: %w: %s: %w", ErrUnsuited, Blocked, err)
	}
	return err
}

// addPart makes the passes of a subdomain.
func (b *blocked) addPart(d *subdomain) error {
	p := &blockedPart{subdomain: d, passes: map[pass]Launch{}, cuts: map[int][]int{}}
	d.totals = nil
	var err error
	if p.stream, err = b.newStream(d.device, streams.Normal, "steps"); err != nil {
		return err
	}
	passes, err := newPasses(b, p)
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
	p.cost = b.possible(passes.costs())
	if err := b.eachPass(p.cost, func(key pass) error { return b.addPass(p, passes, key) }); err != nil {
		return err
	}
	b.parts = append(b.parts, p)
	return b.addNormPasses(p, alone)
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
	p.passes[key], err = passes.pass(passName(key.depth), b.arrays(p.rank, key.slot), b.box(p, key), key.depth)
	return err
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
	key := pass{slot: b.slot(b.done + first - 1)}
	if b.neighbours {
		key.left = int(b.groupEnd(last) - first + 1)
	}
	n := first
	for _, key.depth = range p.cut(int(last-first+1), norms) {
		key.left = max(0, key.left-key.depth)
		p.stream.BeginStep(n)
		if err := b.completeAll(p, key.slot); err != nil {
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
			err = b.launch(p.stream, p.passes[key], n-int64(key.depth))
		}
		if err != nil {
			return err
		}
		key.slot = 1 - key.slot
		for _, w := range b.stage().Writes {
			if g := b.ghosts[w.Variable]; g != nil {
				if err := g[key.slot].Refresh(p.rank, p.stream, b.done+n-1, b.time(n-1)); err != nil {
					return err
				}
			}
		}
	}
	return b.send(p, last)
}

// completeAll fills the edges and corners of the ghosts that a pass reads, once those of neighbours have come.
func (b *blocked) completeAll(p *blockedPart, slot int) error {
	for _, r := range b.stage().Reads {
		g, at := b.ghosts[r.Variable], 0
		switch {
		case g == nil:
			continue
		case b.step.writes(r.Variable):
			at = slot
		case !r.around():
			continue
		}
		if err := g[at].Complete(p.rank, p.stream); err != nil {
			return err
		}
	}
	return nil
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
