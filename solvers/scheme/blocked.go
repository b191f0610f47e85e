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
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

func blockedScheme() *definition {
	return &definition{
		name: Blocked, needs: Needs{Swept: true, Groups: true, Processes: true}, unfit: unblocked, make: newBlocked,
	}
}

// hasNeighbours reports whether any subdomain has a neighbor, possibly itself.
func hasNeighbours(r *Runner) bool {
	for _, sub := range r.place.Subdomains {
		for _, side := range domain.Faces(r.place.Grid.Dims) {
			if _, ok := r.place.Neighbor(sub.Rank, side); ok {
				return true
			}
		}
	}
	return false
}

func newBlocked(r *run, o Options) ([]worker, error) {
	return newBlockedWithin(r, o, blockedLimits{tuneBudget, overlapThreshold, storesThreshold})
}

func newBlockedWithin(r *run, o Options, limits blockedLimits) (all []worker, err error) {
	b := &blocked{run: r, options: o, limits: limits}
	if err := b.prepare(); err != nil {
		return nil, err
	}
	for _, p := range b.parts {
		all = append(all, p)
	}
	return all, nil
}

// prepare makes all launches.
func (b *blocked) prepare() error {
	b.connected, b.measures = hasNeighbours(b.Runner), b.step.measures()
	b.cuts = map[cutKey][]int{}
	for _, x := range b.groupExchanges() {
		x.SetLimit(b.patience())
	}
	err := b.addParts()
	if agreed := b.agreeCosts(err == nil); err != nil || agreed != nil {
		return cmp.Or(err, agreed)
	}
	for _, p := range b.parts {
		if err := p.addStores(); err != nil {
			return err
		}
	}
	b.allStore = !slices.ContainsFunc(b.parts, func(p *blockedPart) bool { return p.stores == nil })
	return nil
}

// addParts prepares all subdomains of the process. Steps that package temporal does not support are unsuited,
// so that auto tries other schemes.
func (b *blocked) addParts() error {
	if err := b.makeCredits(); err != nil {
		return err
	}
	for _, rank := range b.local {
		p := &blockedPart{blocked: b, subdomain: b.subdomains[rank], passes: map[pass]Launch{}, costs: newPassCosts()}
		err := p.prepare()
		if errors.Is(err, temporal.ErrImpossible) {
			return fmt.Errorf("scheme: %w: %s: %w", ErrUnsuited, Blocked, err)
		}
		if err != nil {
			return err
		}
		b.parts = append(b.parts, p)
	}
	return nil
}

// prepare prepares the sweeps and passes of a subdomain.
func (b *blockedPart) prepare() (err error) {
	b.subdomain.totals = nil
	if b.stream, err = b.newStream(b.device, streams.Normal, "steps"); err != nil {
		return err
	}
	b.norms = b.stream
	if err := b.findPasses(); err != nil {
		return err
	}
	var sweeps *streams.Kernel // sweeps the subdomain
	for slot := range 2 {
		for left := range b.deepest() {
			key := pass{1, left, slot}
			made, l, err := b.newSweep("sweep", slot, b.box(key))
			if err != nil {
				return err
			}
			if b.passes[key] = l; left == 0 && slot == b.slot(b.done) {
				sweeps = made.Kernel
			}
		}
	}
	if b.made != nil {
		if err := b.addPasses(sweeps); err != nil {
			return err
		}
	}
	if err := b.addOverlap(); err != nil || !b.measures {
		return err
	}
	return b.addNorms(sweeps)
}

// addPasses tunes and prepares the passes without norms.
func (b *blockedPart) addPasses(sweeps *streams.Kernel) error {
	of := temporal.More{Faces: b.walls}
	if err := b.tune(b.made, sweeps, of); err != nil {
		return err
	}
	copy(b.costs.By[0][:], b.possible(b.made.Costs()))
	return b.eachPass(b.costs.By[0][:], func(key pass) (err error) {
		b.passes[key], err = b.newPass(passName(key.depth), key, b.box(key), of)
		return err
	})
}

// maxQueued is the limit of sweeps times the depth of passes.
func (b *blocked) maxQueued() int64 { return maxSteps * int64(b.costs.deepest()) }

func (b *blockedPart) queues() []queue { return []queue{{b.rank, b.stream, b.norms}} }

// steps runs the steps of the round that plan has chosen.
func (b *blockedPart) steps(first, _ int64, _ bool) error {
	n, key := first-1, pass{slot: b.round.slot}
	for i, depth := range b.round.depths {
		var checks []int64
		if i == len(b.round.depths)-1 {
			checks = b.round.checks
		}
		key.depth, key.left = depth, b.left(n+int64(depth))
		if err := b.pass(key, n, checks); err != nil {
			return err
		}
		n, key.slot = n+int64(depth), 1-key.slot
	}
	return nil
}

// pass runs the steps of one pass, after step n, with the norms of the steps checks.
func (b *blockedPart) pass(key pass, n int64, checks []int64) error {
	last := n + int64(key.depth)
	b.stream.BeginStep(n + 1)
	if err := b.completeAll(key.slot); err != nil {
		return err
	}
	if err := b.tables.Queue(b.stream, b.done+n+1, key.depth-1, b.step.Length); err != nil {
		return err
	}
	takesNorms := len(checks) > 0 && b.measures
	stored := b.stored && n > 0
	b.stored = false
	if !takesNorms && b.sends(0, last) {
		if l, ok := b.stores[key]; ok {
			b.stored = key.depth == b.step.group()
			return b.storeGroup(l, key.slot, n, last, stored && b.stored)
		}
		if b.overlap != nil {
			return b.endGroup(key, n)
		}
	}
	if takesNorms {
		if err := b.launchWithNorms(key, n+1, checks); err != nil {
			return err
		}
	} else if err := b.launch(b.stream, b.passes[key], n+1); err != nil {
		return err
	}
	if err := b.refreshAll(1-key.slot, last); err != nil {
		return err
	}
	return b.send(b.stream, last, 1-key.slot)
}

// completeAll fills the edges and corners of the ghosts that a pass reads, once those of neighbors have arrived.
func (b *blockedPart) completeAll(slot int) error {
	for _, a := range b.stage().Reads {
		g, at := b.ghosts[a.Variable], 0
		switch {
		case g == nil:
			continue
		case b.step.writes(a.Variable):
			at = slot
		case !a.around():
			continue
		}
		if err := g[at].Complete(b.rank, b.stream); err != nil {
			return err
		}
	}
	return nil
}

// finish copies the level of a step to the slot where other schemes store it, if an even number of passes ran
// an odd number of steps or vice versa.
func (b *blockedPart) finish(step int64) error {
	to, from := b.slot(b.done+step), b.slotOf(step)
	if from == to {
		return nil
	}
	for _, w := range b.stage().Writes {
		arrays, _ := w.Variable.Spec.Arrays()
		for c := range arrays {
			f := w.Variable.levels
			after, before := f[to].Array(b.rank, c).Data, f[from].Array(b.rank, c).Data
			if err := b.stream.CopyAs(streams.OtherWork, after, before); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *blockedPart) sync() error {
	if err := b.syncAll(b.stream, b.norms); err != nil {
		return err
	}
	if b.overlap != nil {
		if err := b.syncAll(b.overlap.messages); err != nil {
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

// plan plans a round: passes up to the first one with norms.
func (b *blocked) plan(a planRequest) passPlan {
	if a.after == b.from { // where other schemes store it
		b.holds = [2]int64{-1, -1}
		b.holds[b.slot(b.done+a.after)] = a.after
	}
	d := passPlan{from: a.after, last: a.after, checks: b.round.checks[:0]}
	b.round.slot = b.slotOf(a.after)
	slot, depths := b.round.slot, b.cut(a)
	for i, depth := range depths {
		slot = 1 - slot
		d.from, d.last = d.last, d.last+int64(depth)
		b.holds[slot] = d.last
		for n := a.nextCheck(d.from); n <= d.last; n = a.nextCheck(n) {
			d.checks = append(d.checks, n)
		}
		if b.round.depths = depths[:i+1]; a.one || len(d.checks) > 0 || d.last-a.after >= a.pace {
			break
		}
	}
	if b.round.checks = d.checks; len(d.checks) > 0 {
		b.round.number++
	}
	return d
}

// horizon is the approximate number of steps that are divided into passes at once.
const horizon = 64

// cut divides the requested steps into passes, up to the end of their group or approximately the horizon.
// Results are cached by everything that they depend on.
func (b *blocked) cut(a planRequest) []int {
	end := a.to
	if b.connected {
		end = min(end, b.groupEnd(a.after+1))
	}
	k := cutKey{steps: int(min(end-a.after, math.MaxInt32))}
	if most := max(horizon, 3*b.costs.deepest()); k.steps > most {
		k.steps, k.least = most, most-b.costs.deepest()+1
	} else {
		k.least = k.steps
	}
	far := a.after + int64(k.steps)
	if first := a.nextCheck(a.after); first <= far {
		k.check = first - a.after
	}
	if a.norms && a.to <= far {
		k.norms = a.to - a.after
	}
	if a.final && far == a.to { // a level in the other field is copied
		k.end[(b.slotOf(a.after)-b.slot(b.done+a.to)+1)&1] = copyCost
	}
	depths, ok := b.cuts[k]
	if !ok {
		if len(b.cuts) == maxCuts {
			clear(b.cuts)
		}
		cost := func(after, depth int) float64 { return b.costOf(a, a.after+int64(after), depth) }
		depths = temporal.Cut(k.steps, k.least, b.costs.deepest(), cost, k.end)
		b.cuts[k] = depths
	}
	return depths
}

const (
	copyCost = 1   // of a field, relative to a sweep
	maxCuts  = 512 // cached results
)

// costOf returns the cost of a pass after a step, with the norms requested for its steps.
func (b *blocked) costOf(a planRequest, after int64, depth int) float64 {
	last := after + int64(depth)
	check := a.nextCheck(after)
	switch norms := last - check + 1; {
	case check > last || !b.measures:
		return b.costs.By[0][depth]
	case norms > maxChecks:
		return math.Inf(1)
	case norms > 1:
		return b.costs.By[norms][depth] + b.costs.Wait
	default:
		return b.costs.By[1][depth]
	}
}

// agreeCosts determines the costs of all subdomains together, so that all divide their steps alike. All
// processes call it, including those that could not prepare their part and report that later.
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
		mine, _ = binary.Append(nil, binary.LittleEndian, &b.costs) // cannot fail: only numbers
	}
	all, err := mpi.Gather(context.Background(), b.place.Processes, "scheme: agree on what passes cost", mine)
	if err != nil {
		return err
	}
	for rank, other := range all {
		if len(other) == 0 {
			continue
		}
		var c passCosts
		if err := binary.Read(bytes.NewReader(other), binary.LittleEndian, &c); err != nil {
			return fmt.Errorf("scheme: pass costs of %s: %w", b.place.Processes.Name(rank), err)
		}
		b.costs.join(&c)
	}
	return nil
}
