package scheme

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

func blockedScheme() *definition {
	return &definition{
		name: Blocked, needs: Needs{Swept: true, Groups: true, Processes: true},
		assistants: none, unfit: unblocked, make: newBlocked,
	}
}

// hasNeighbours reports whether any subdomain has a neighbor, which may be itself.
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
	b := &blocked{
		run:     r,
		options: o,
		tune:    (*temporal.Passes).Tune,
		from:    thresholds{overlapThreshold, storesThreshold},
	}
	return b, b.prepare()
}

// prepare makes all launches.
func (b *blocked) prepare() error {
	b.neighbours, b.measures = hasNeighbours(b.Runner), b.step.measures()
	b.cuts, b.holds = map[cutKey][]int{}, [2]int64{-1, -1}
	b.holds[b.slot(b.done)] = 0
	for _, x := range b.groupExchanges() {
		x.SetLimit(b.patience())
	}
	err := b.addParts()
	if agreed := b.agreeCosts(err == nil); err != nil || agreed != nil {
		return cmp.Or(err, agreed)
	}
	for _, p := range b.parts {
		if err := b.addStores(p); err != nil {
			return err
		}
	}
	b.allStore = !slices.ContainsFunc(b.parts, func(p *blockedPart) bool { return p.stores == nil })
	return nil
}

// addParts prepares all subdomains of the process.
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

// unsuitable turns temporal.ErrImpossible into ErrUnsuited, so that auto goes on to other schemes.
func unsuitable(err error) error {
	if errors.Is(err, temporal.ErrImpossible) {
		return fmt.Errorf("scheme: %w: %s: %w", ErrUnsuited, Blocked, err)
	}
	return err
}

// addPart prepares the sweeps and passes of a subdomain.
func (b *blocked) addPart(d *subdomain) error {
	p := &blockedPart{subdomain: d, passes: map[pass]Launch{}}
	d.totals = nil
	var err error
	if p.stream, err = b.newStream(d.device, streams.Normal, "steps"); err != nil {
		return err
	}
	p.totals = p.stream
	if err := b.findPasses(p); err != nil {
		return err
	}
	slot := b.slot(b.done)
	var alone *streams.Kernel // a sweep of the subdomain
	for from := range 2 {
		for left := range b.deepest() {
			key := pass{1, left, from}
			made, l, err := b.newSweep(p, "sweep", from, b.box(p, key))
			if err != nil {
				return err
			}
			if p.passes[key] = l; left == 0 && from == slot {
				alone = made.Kernel
			}
		}
	}
	p.costs = newPassCosts()
	if p.made != nil {
		if err := b.addPasses(p, alone); err != nil {
			return err
		}
	}
	if err := b.addOverlap(p); err != nil {
		return err
	}
	b.parts = append(b.parts, p)
	if !b.measures {
		return nil
	}
	return b.addNorms(p, alone)
}

// addPasses tunes and prepares the passes without norms.
func (b *blocked) addPasses(p *blockedPart, alone *streams.Kernel) error {
	from, to := b.fields(p, b.slot(b.done))
	of := temporal.More{Walls: p.walls}
	owned := b.place.Subdomains[p.rank].Box
	if err := b.tune(p.made, alone, from, to, owned, p.sides, of, tuneBudget); err != nil {
		return err
	}
	copy(p.costs.Plain[:], b.possible(p.made.Costs()))
	return b.eachPass(p.costs.Plain[:], func(key pass) (err error) {
		p.passes[key], err = b.newPass(p, passName(key.depth), key, b.box(p, key), of)
		return err
	})
}

func (b *blocked) workers() [][]int { return alone(b.local) }
func (b *blocked) assistants()      {}
func (b *blocked) stop(int, int64)  {}

// maxQueued is that of sweeps times the depth of passes.
func (b *blocked) maxQueued() int64 { return maxSteps * int64(b.costs.deepest()) }

func (b *blocked) queues(rank int) (steps, norms *streams.Stream) {
	p := b.parts[b.workerOf(rank)]
	return p.stream, p.totals
}

// steps runs those of the round that divide has planned.
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

// pass runs the steps of one pass, after step n, with the norms of the steps looks.
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
		if p.overlap != nil {
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

// completeAll fills the edges and corners of the ghosts that a pass reads, once those of neighbors have arrived.
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

// finish copies the level of a step to the slot where other schemes leave it, if an even number of passes ran an odd
// number of steps, or the other way round.
func (b *blocked) finish(worker int, step int64) error {
	p, to, from := b.parts[worker], b.slot(b.done+step), b.slotOf(step)
	if from == to {
		return nil
	}
	for _, w := range b.stage().Writes {
		arrays, _ := w.Variable.Spec.Arrays()
		for c := range arrays {
			f := w.Variable.levels
			after, before := f[to].Array(p.rank, c).Data, f[from].Array(p.rank, c).Data
			if err := p.stream.CopyAs(streams.OtherWork, after, before); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *blocked) sync(worker int) error {
	p := b.parts[worker]
	all := []*streams.Stream{p.stream, p.totals}
	if p.overlap != nil {
		all = append(all, p.overlap.messages)
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

// divide plans a round: passes up to the first that takes norms.
func (b *blocked) divide(a ask) division {
	d := division{from: a.after, last: a.after, looks: b.round.looks[:0]}
	b.round.slot = b.slotOf(a.after)
	slot, depths := b.round.slot, b.cut(a)
	for i, depth := range depths {
		slot = 1 - slot
		d.from, d.last = d.last, d.last+int64(depth)
		b.holds[slot] = d.last
		for n := a.lookAfter(d.from); n <= d.last; n = a.lookAfter(n) {
			d.looks = append(d.looks, n)
		}
		if b.round.depths = depths[:i+1]; a.one || len(d.looks) > 0 || d.last-a.after >= a.pace {
			break
		}
	}
	if b.round.looks = d.looks; len(d.looks) > 0 {
		b.round.number++
	}
	return d
}

// horizon is about how many steps are divided at once, where more are to be made.
const horizon = 64

// cut divides the steps that are asked for, up to the end of their group or about as far as the horizon. The result
// is kept by all that it depends on.
func (b *blocked) cut(a ask) []int {
	end := a.to
	if b.neighbours {
		end = min(end, b.groupEnd(a.after+1))
	}
	k := cutKey{steps: int(min(end-a.after, math.MaxInt32))}
	if most := max(horizon, 3*b.costs.deepest()); k.steps > most {
		k.steps, k.least = most, most-b.costs.deepest()+1
	} else {
		k.least = k.steps
	}
	far := a.after + int64(k.steps)
	if first := a.lookAfter(a.after); first <= far {
		k.look = first - a.after
	}
	if a.norms && a.to <= far {
		k.norms = a.to - a.after
	}
	if a.final && far == a.to { // a level that lies in the other field is copied
		k.end[(b.slotOf(a.after)-b.slot(b.done+a.to)+1)&1] = copyCost
	}
	depths, ok := b.cuts[k]
	if !ok {
		if len(b.cuts) == mostCuts {
			clear(b.cuts)
		}
		depths = b.divideInto(k, a)
		b.cuts[k] = depths
	}
	return depths
}

const (
	copyCost = 1   // of a field, over a sweep
	mostCuts = 512 // that are kept
)

// divideInto finds the division.
func (b *blocked) divideInto(k cutKey, a ask) []int {
	cost := func(after, depth int) float64 { return b.costOf(a, a.after+int64(after), depth) }
	return temporal.Cut(k.steps, k.least, b.costs.deepest(), cost, k.end)
}

// costOf returns what a pass after a step costs, with the norms that are asked for of its steps.
func (b *blocked) costOf(a ask, after int64, depth int) float64 {
	last := after + int64(depth)
	look := a.lookAfter(after)
	switch norms := last - look + 1; {
	case look > last || !b.measures:
		return b.costs.Plain[depth]
	case depth == 1:
		return b.costs.Measured
	case norms > mostLooks:
		return math.Inf(1)
	case norms > 1:
		return b.costs.Norms[norms][depth] + b.costs.Wait
	default:
		return b.costs.Norms[1][depth]
	}
}

// agreeCosts finds the costs of all subdomains together: all then divide their steps alike. All processes call it,
// also one that could not make its part ready, which says so later.
func (b *blocked) agreeCosts(made bool) error {
	for i, p := range b.parts {
		if i == 0 {
			b.costs = p.costs
		}
		b.costs.join(&p.costs)
	}
	if !b.shared() {
		return nil
	}
	var mine []byte
	if made {
		mine, _ = binary.Append(nil, binary.LittleEndian, &b.costs) // which is of numbers alone
	}
	all, err := b.place.Processes.Gather(context.Background(), "scheme: agree on what passes cost", mine)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if len(other) == 0 {
			continue
		}
		var c passCosts
		if err := binary.Read(bytes.NewReader(other), binary.LittleEndian, &c); err != nil {
			return fmt.Errorf("scheme: what passes cost %s: %w", b.place.Processes.Name(rank), err)
		}
		b.costs.join(&c)
	}
	return nil
}
