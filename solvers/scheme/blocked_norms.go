package scheme

import (
	"errors"
	"math"

	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

// normPasses are the passes of a subdomain that take the norms of their last step. Where there are none a step of which norms are taken is a sweep.
type normPasses struct {
	cost   []float64 // by depth, that of a sweep among them
	passes map[pass]normPass
	parts  [2]*reduce.NormParts // by the field that is written
	cuts   map[int][]int
	latest []*latest // by phase
}

// normPass is a pass, and what joins its norms.
type normPass struct {
	kernel *streams.Kernel
	total  normTotal
}

// latest is what is taken of the step of a phase that was made last, by a sweep or by a pass.
type latest struct{ of []total }

func (l *latest) Queue(s *streams.Stream) error {
	for _, t := range l.of {
		if err := t.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

func (l *latest) addTo(s *taken) {
	for _, t := range l.of {
		t.addTo(s)
	}
}

// addNormPasses makes those of a subdomain ready. What they take of memory does not depend on what was tuned.
func (b *blocked) addNormPasses(p *blockedPart, sides temporal.Sides) error {
	p.norms = normPasses{cost: []float64{0, 1}, passes: map[pass]normPass{}, cuts: map[int][]int{}}
	for phase := range b.period {
		l := &latest{p.whole[phase]}
		p.norms.latest = append(p.norms.latest, l)
		p.totals = append(p.totals, []total{l})
	}
	if len(b.step.Measured) != 1 || len(b.step.Reductions()) > 0 {
		return nil
	}
	real, _ := b.variable().real()
	slot := b.variable().slot(b.done)
	from, to := b.fields(p, slot)
	passes, err := temporal.NewWith(b.compiler, p.device, b.stencil, real, from.Layout, b.options(p.rank, 1))
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
	if err := passes.TuneWith(p.passes[pass{1, 0, slot}], from, to, b.place.Subdomains[p.rank].Box, sides, b.more(p, slot), tuneBudget); err != nil {
		return err
	}
	p.norms.cost = b.possible(passes.Costs())
	return b.eachPass(p.norms.cost, func(key pass) error { return b.addNormPass(p, passes, sides, key) })
}

// addNormPass makes one of them ready.
func (b *blocked) addNormPass(p *blockedPart, passes *temporal.Passes, sides temporal.Sides, key pass) error {
	from, to := b.fields(p, key.slot)
	parts := p.norms.parts[1-key.slot]
	k, count, err := passes.PassWith(passName(key.depth), from, to, b.box(p, key), sides, key.depth, b.more(p, key.slot))
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

// more is what passes with norms are given that read a field.
func (b *blocked) more(p *blockedPart, slot int) temporal.More {
	return temporal.More{Box: b.place.Subdomains[p.rank].Box, Parts: []streams.Span{p.norms.parts[1-slot].Span()}, Walls: p.walls}
}

// possible returns the costs of passes that a group has room for.
func (b *blocked) possible(cost []float64) []float64 {
	if b.neighbours {
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
			for now := range 2 {
				if err := do(pass{depth, left, now}); err != nil {
					return err
				}
			}
		}
	}
	return nil
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
