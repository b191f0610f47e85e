package scheme

import (
	"errors"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

// addNormPasses makes the passes of a subdomain ready that take norms. sweep makes one step there, and is what their times are compared with. The
// memory that they take does not depend on what was tuned, so that a dry run counts it to the byte.
func (b *blocked) addNormPasses(p *blockedPart, sweep *streams.Kernel) error {
	p.norms = normPasses{cost: []float64{0, 1}, passes: map[pass]normPass{}, cuts: map[int][]int{}}
	for phase := range b.period {
		l := &latest{p.whole[phase]}
		p.norms.latest = append(p.norms.latest, l)
		p.totals = append(p.totals, []total{l})
	}
	stencil, ok := b.stage().linear()
	if !ok || len(b.step.Measured) != 1 || len(b.step.Reductions()) > 0 {
		return nil
	}
	real, _ := b.variable().real()
	slot, sides := b.slot(b.done), b.sides(p.rank, b.variable())
	from, to := b.fields(p, slot)
	passes, err := temporal.New(b.compiler, p.device, stencil, real, from.Layout, b.options(p.rank, 1))
	if errors.Is(err, temporal.ErrImpossible) {
		return nil
	}
	if err != nil {
		return err
	}
	reducer, err := reduce.NewNormReducer(b.compiler, p.device, real, b.step.Sums)
	if err != nil {
		return err
	}
	most := int64(0)
	for left := range b.deepest() {
		most = max(most, passes.Parts(b.box(p, pass{left: left}), sides))
	}
	if most == 0 {
		return nil
	}
	for i := range p.norms.parts {
		if p.norms.parts[i], err = reducer.Parts(most); err != nil {
			return err
		}
		b.run.resources.Add(p.norms.parts[i])
	}
	if err := passes.Tune(sweep, from, to, b.place.Subdomains[p.rank].Box, sides, b.more(p, slot), tuneBudget); err != nil {
		return err
	}
	p.norms.cost = b.possible(passes.Costs())
	return b.eachPass(p.norms.cost, func(key pass) error { return b.addNormPass(p, passes, sides, key) })
}

// fields returns what a pass of a linear stencil reads and writes.
func (b *blocked) fields(p *blockedPart, slot int) (from, to kernels.Array) {
	return b.variable().levels[slot].Array(p.rank, 0), b.variable().levels[1-slot].Array(p.rank, 0)
}

// addNormPass makes a pass with norms ready, and the launch that joins the norms of its thread blocks.
func (b *blocked) addNormPass(p *blockedPart, passes *temporal.Passes, sides temporal.Sides, key pass) error {
	from, to := b.fields(p, key.slot)
	parts := p.norms.parts[1-key.slot]
	k, count, err := passes.Pass(passName(key.depth), from, to, b.box(p, key), sides, key.depth, b.more(p, key.slot))
	if err != nil {
		return err
	}
	b.run.resources.Add(k)
	join, err := parts.Join(count)
	if err != nil {
		return err
	}
	b.run.resources.Add(join)
	p.norms.passes[key] = normPass{k, normTotal{join, 0}}
	return nil
}

// more returns what a pass with norms is given that reads the fields of a slot.
func (b *blocked) more(p *blockedPart, slot int) temporal.More {
	return temporal.More{Box: b.place.Subdomains[p.rank].Box, Parts: []streams.Span{p.norms.parts[1-slot].Span()}, Walls: p.walls}
}

// launchLast queues a pass or a sweep that ends with step n, and its norms.
func (b *blocked) launchLast(p *blockedPart, key pass, n int64) error {
	l := p.norms.latest[b.phase(n)]
	if key.depth == 1 {
		l.of = p.whole[b.phase(n)]
		if err := b.launch(p.stream, p.sweeps(b.run, 0, n, true).whole, n); err != nil {
			return err
		}
	} else {
		one := p.norms.passes[key]
		l.of = []total{one.total}
		if err := p.stream.Launch(one.kernel); err != nil {
			return err
		}
	}
	return b.queueTotals(p.subdomain, p.stream, n)
}
