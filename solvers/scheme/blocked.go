package scheme

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

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

func newBlocked(r *run, o Options) (scheme, error) {
	return newBlockedBy(r, o, (*linearPasses).tune, besideFrom)
}

func newBlockedBy(r *run, o Options, tune tuner, besideFrom time.Duration) (scheme, error) {
	b := &blocked{
		run: r, options: o, tune: tune, besideFrom: besideFrom, neighbours: hasNeighbours(r.Runner), measures: r.step.measures(),
		cuts: map[cutKey][]int{}, holds: [2]int64{-1, -1},
	}
	b.holds[b.slot(b.done)] = 0
	for _, x := range b.groupExchanges() {
		x.SetLimit(b.patience())
	}
	err := b.addParts()
	if agreed := b.agreeCosts(err == nil); err != nil || agreed != nil {
		return b, cmp.Or(err, agreed)
	}
	for _, p := range b.parts {
		if err := b.addStores(p); err != nil {
			return b, err
		}
	}
	b.allStore = !slices.ContainsFunc(b.parts, func(p *blockedPart) bool { return p.stores == nil })
	return b, nil
}

// addParts makes all subdomains of the process ready.
func (b *blocked) addParts() error {
	if err := b.makeCredits(); err != nil {
		return err
	}
	for _, rank := range b.local {
		if err := b.addPart(b.subdomains[rank]); err != nil {
			return unsuitable(err)
		}
	}
	return nil
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
	p := &blockedPart{subdomain: d, passes: map[pass]Launch{}}
	d.totals = nil
	var err error
	if p.stream, err = b.newStream(d.device, streams.Normal, "steps"); err != nil {
		return err
	}
	p.totals = p.stream
	passes, err := newPasses(b, p)
	if err != nil {
		return err
	}
	p.made = passes
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
	p.costs = newPassCosts()
	if passes != nil {
		if err := b.tune(passes, alone, b.arrays(d.rank, slot), b.place.Subdomains[d.rank].Box); err != nil {
			return err
		}
		copy(p.costs.Plain[:], b.possible(passes.passes.Costs()))
		if err := b.eachPass(p.costs.Plain[:], func(key pass) error { return b.addPass(p, passes, key) }); err != nil {
			return err
		}
	}
	if err := b.addBeside(p, passes); err != nil {
		return err
	}
	b.parts = append(b.parts, p)
	if !b.measures {
		return nil
	}
	return b.addNorms(p, alone)
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
func (b *blocked) addPass(p *blockedPart, passes *linearPasses, key pass) (err error) {
	p.passes[key], err = passes.pass(passName(key.depth), b.arrays(p.rank, key.slot), b.box(p, key), key.depth, 0)
	return err
}

func (b *blocked) workers() [][]int { return alone(b.local) }
func (b *blocked) assistants()      {}
func (b *blocked) stop(int, int64)  {}

// maxQueued is that of sweeps, times the depth of passes.
func (b *blocked) maxQueued() int64 { return maxSteps * int64(b.costs.deepest()) }

func (b *blocked) queues(rank int) (steps, norms *streams.Stream) {
	p := b.parts[b.workerOf(rank)]
	return p.stream, p.totals
}

// steps makes those of the round that divide has planned.
func (b *blocked) steps(worker int, first, _ int64, _ bool) error {
	p, n, key := b.parts[worker], first-1, pass{slot: b.round.slot}
	for i, depth := range b.round.depths {
		var looks []int64
		if i == len(b.round.depths)-1 {
			looks = b.round.looks
		}
		key.depth, key.left = depth, b.left(n+int64(depth))
		if err := b.pass(p, key, n, looks); err != nil {
			return err
		}
		n, key.slot = n+int64(depth), 1-key.slot
	}
	return nil
}

// pass makes the steps of one pass, after step n, with the norms of some.
func (b *blocked) pass(p *blockedPart, key pass, n int64, looks []int64) error {
	last := n + int64(key.depth)
	p.stream.BeginStep(n + 1)
	if err := b.completeAll(p, key.slot); err != nil {
		return err
	}
	if err := p.tables.Queue(p.stream, b.done+n+1, key.depth-1, b.step.Length); err != nil {
		return err
	}
	takesNorms := len(looks) > 0 && b.measures
	stored := p.stored && n > 0
	p.stored = false
	if !takesNorms && b.sends(0, last) {
		if l, ok := p.stores[key]; ok {
			p.stored = key.depth == b.step.group()
			return b.storeGroup(p, l, key.slot, n, last, stored && p.stored)
		}
		if p.beside != nil {
			return b.endGroup(p, key, n)
		}
	}
	if takesNorms {
		if err := b.launchWithNorms(p, key, n+1, looks); err != nil {
			return err
		}
	} else if err := b.launch(p.stream, p.passes[key], n+1); err != nil {
		return err
	}
	if err := b.refreshAll(p, 1-key.slot, last); err != nil {
		return err
	}
	return b.send(p, p.stream, last, 1-key.slot)
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

// finish copies the level of a step to the field where other schemes leave it: an even number of passes made an odd number of steps, or the other
// way round.
func (b *blocked) finish(worker int, step int64) error {
	p, to, from := b.parts[worker], b.slot(b.done+step), b.slotOf(step)
	if from == to {
		return nil
	}
	for _, w := range b.stage().Writes {
		arrays, _ := w.Variable.Spec.Arrays()
		for c := range arrays {
			f := w.Variable.levels
			if err := p.stream.CopyAs(streams.OtherWork, f[to].Array(p.rank, c).Data, f[from].Array(p.rank, c).Data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *blocked) sync(worker int) error {
	p := b.parts[worker]
	all := []*streams.Stream{p.stream, p.totals}
	if p.beside != nil {
		all = append(all, p.beside.messages)
	}
	for _, s := range all {
		if err := s.Sync(b.patience()); err != nil {
			return err
		}
	}
	for _, x := range b.groupExchanges() {
		if err := x.Err(); err != nil {
			return err
		}
	}
	return nil
}
