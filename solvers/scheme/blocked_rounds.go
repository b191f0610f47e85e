package scheme

import (
	"math"

	"github.com/halox/halox/kernels/temporal"
)

// mostLooks is the most steps of a launch whose norms are taken.
const mostLooks = temporal.MostNorms

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

// cut divides the steps that are asked for, up to the end of their group or about as far as the horizon. The result is kept by all that it depends on.
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
