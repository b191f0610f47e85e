package scheme

import (
	"errors"
	"math"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// addNorms prepares the sweeps and the passes of a subdomain that take norms. The kernel alone sweeps the subdomain.
// The memory that they take does not depend on what was tuned, so that a dry run counts it to the byte.
func (b *blocked) addNorms(p *blockedPart, alone *streams.Kernel) error {
	p.sweeps, p.norms = map[pass]measuredSweep{}, map[pass][]normPass{}
	ghosts := b.ghostsLeft(p)
	bySweeps := true // all that is taken of steps
	for slot := range 2 {
		for left := range b.deepest() {
			k, all, err := b.addMeasured(p, pass{1, left, slot}, ghosts[left])
			if err != nil {
				return err
			}
			if bySweeps = bySweeps && all; k != nil && left == 0 && slot == b.slot(b.done) {
				alone = k
			}
		}
	}
	if bySweeps {
		if err := b.newEvents(p.device, &p.measured); err != nil {
			return err
		}
		var err error
		if p.totals, err = b.newStream(p.device, streams.Urgent, "norms"); err != nil {
			return err
		}
	}
	return b.addNormPasses(p, alone)
}

// ghostsLeft returns the ghosts of neighbors that a sweep computes, by how many steps of its group follow.
func (b *blocked) ghostsLeft(p *blockedPart) [][]domain.Box {
	all := make([][]domain.Box, b.deepest())
	for phase := range b.period {
		if left := (b.step.group() - phase%b.step.group()) % b.step.group(); left < len(all) &&
			p.stages[phase][0].boxes.grown {
			all[left] = p.stages[phase][0].boxes.ghosts
		}
	}
	return all
}

// addMeasured prepares a sweep of which norms and reductions are taken, over owned points alone. It returns the
// kernel of owned points, nil if that takes none of them, and whether it takes all.
func (b *blocked) addMeasured(
	p *blockedPart,
	key pass,
	ghosts []domain.Box,
) (owned *streams.Kernel, all bool, err error) {
	s, at := measuredSweep{launch: p.passes[key]}, b.arrays(p.rank, key.slot)
	t, ok := b.step.pointTotal(b.stage())
	if ok {
		sweeper := p.stages[0][0].sweeper
		launches, totals, err := sweeper.Measure(
			at,
			sweep.Portion{Name: "sweep", Boxes: []domain.Box{b.place.Subdomains[p.rank].Box}},
		)
		if err != nil {
			return nil, false, err
		}
		b.run.resources.Add(totals)
		owned, t.parts = launches[0].Kernel, []*sweep.Totals{totals}
		s.launch, s.totals = b.stage().launch(launches[0], b.step.Length), []total{t}
		if len(ghosts) > 0 {
			_, more, err := b.newSweep(p, "sweep ghosts", key.slot, ghosts...)
			if err != nil {
				return nil, false, err
			}
			s.launch = inTurn(more, s.launch)
		}
	}
	for v := range b.step.Measured {
		if _, taken := t.variables[v]; taken {
			continue
		}
		one, err := p.measureFields(b.Runner, v, int64(b.slotPhase(1-key.slot)), &b.run.resources)
		if err != nil {
			return nil, false, err
		}
		s.totals = append(s.totals, one)
	}
	p.sweeps[key] = s
	return owned, len(t.variables) == len(b.step.Measured), nil
}

// wantedNorms returns the most steps of passes that take the norms of their last steps, 0 where none are wanted. The
// first of these steps is a check, so before it the pass has fewer steps than are between two checks. Where checks
// are farther apart than a pass takes norms, passes end with them. Where they are so rare that a sweep for each costs
// a hundredth or two, no passes are compiled for them, which takes seconds.
func (b *blocked) wantedNorms(norms int) (deepest int) {
	const rare = 100
	every := int(min(b.options.CheckEvery, math.MaxInt32))
	switch often := every > 0 && every < temporal.MaxNorms; {
	case every == 0 || every >= rare:
		return 0
	case often && norms+every > 2:
		return norms + every - 1
	case !often && norms == 1:
		return deepestPass
	}
	return 0
}

// normPasses are passes of a linear stencil that take norms, by of how many last steps.
type normPasses struct {
	of    [temporal.MaxNorms + 1]*temporal.Passes // nil where there are none
	most  int                                     // steps
	parts int64                                   // of the norms of a step, at most
}

// newNormPasses returns those of a subdomain.
func (b *blocked) newNormPasses(p *blockedPart, s stencil.Stencil) (made normPasses, err error) {
	real, _ := b.variable().real()
	from, _ := b.fields(p, b.slot(b.done))
	for norms := 1; norms <= temporal.MaxNorms; norms++ {
		o := b.passOptions(p.rank)
		if o.Norms, o.Deepest = norms, b.wantedNorms(norms); o.Deepest == 0 {
			continue
		}
		passes, err := temporal.New(b.compiler, p.device, s, real, from.Layout, o)
		if errors.Is(err, temporal.ErrImpossible) {
			continue
		}
		if err != nil {
			return made, err
		}
		made.of[norms], made.most = passes, norms
		for left := range b.deepest() {
			made.parts = max(made.parts, passes.Parts(b.box(p, pass{left: left}), p.sides))
		}
	}
	return made, nil
}

// addNormPasses prepares the passes that take norms, where there are passes.
func (b *blocked) addNormPasses(p *blockedPart, alone *streams.Kernel) error {
	s, _ := b.stage().linear()
	if p.made == nil || len(b.step.Measured) != 1 || len(b.step.Reductions()) > 0 || b.deepest() == 1 && b.neighbours {
		return nil
	}
	made, err := b.newNormPasses(p, s)
	if err != nil || made.parts == 0 {
		return err
	}
	real, _ := b.variable().real()
	reducer, err := reduce.NewNormReducer(b.compiler, p.device, real, b.step.Sums)
	if err != nil {
		return err
	}
	for i := range p.parts {
		if p.parts[i], err = reducer.Parts(made.most, made.parts); err != nil {
			return err
		}
		b.run.resources.Add(p.parts[i])
	}
	for norms, passes := range made.of {
		if passes == nil {
			continue
		}
		if err := b.addPassesWith(p, passes, norms, alone); err != nil {
			return err
		}
	}
	return nil
}

// addPassesWith prepares the passes that take the norms of so many last steps.
func (b *blocked) addPassesWith(p *blockedPart, passes *temporal.Passes, norms int, alone *streams.Kernel) error {
	slot := b.slot(b.done)
	from, to := b.fields(p, slot)
	more := b.more(p, slot, norms)
	if err := b.tune(passes, alone, from, to, more.Box, p.sides, more, tuneBudget); err != nil {
		return err
	}
	measured := 1.0
	if t, sweepTime := passes.SweepTime(), p.made.SweepTime(); t > 0 && sweepTime > 0 {
		measured = float64(t) / float64(sweepTime)
		p.costs.Wait = float64(b.lookTime()) / float64(sweepTime)
	}
	p.costs.Measured = max(p.costs.Measured, measured)
	for depth, cost := range b.possible(passes.Costs()) {
		if depth > 1 {
			p.costs.Norms[norms][depth] = measured * cost
		}
	}
	return b.eachPass(p.costs.Norms[norms][:], func(key pass) error { return b.addNormPass(p, passes, norms, key) })
}

// lookTime is about how long a device has nothing to do until the host has seen the end of a pass and queued the next,
// agreeTime that where processes agree in between.
const (
	lookTime  = 25 * time.Microsecond
	agreeTime = 100 * time.Microsecond
)

// lookTime estimates how long a look at norms keeps a device waiting before the next pass.
func (b *blocked) lookTime() time.Duration {
	if !b.place.Processes.IsAlone() {
		return agreeTime
	}
	return lookTime
}

// addNormPass prepares a pass with norms, and the launch that joins the norms of its thread blocks.
func (b *blocked) addNormPass(p *blockedPart, passes *temporal.Passes, norms int, key pass) error {
	from, to := b.fields(p, key.slot)
	more := b.more(p, key.slot, norms)
	k, count, err := passes.Pass(passName(key.depth), from, to, b.box(p, key), p.sides, key.depth, more)
	if err != nil {
		return err
	}
	b.run.resources.Add(k)
	join, err := p.parts[1-key.slot].Join(norms, count)
	if err != nil {
		return err
	}
	b.run.resources.Add(join)
	if p.norms[key] == nil {
		p.norms[key] = make([]normPass, temporal.MaxNorms)
	}
	p.norms[key][norms-1] = normPass{k, join}
	return nil
}

// more returns what a pass is given that reads the fields of a slot and takes the norms of so many last steps.
func (b *blocked) more(p *blockedPart, slot, norms int) temporal.More {
	m := temporal.More{Box: b.place.Subdomains[p.rank].Box, Walls: p.walls}
	for n := range norms {
		m.Parts = append(m.Parts, p.parts[1-slot].Span(n))
	}
	return m
}

// launchWithNorms queues a pass or a sweep whose first step is n, with the norms of the steps looks.
func (b *blocked) launchWithNorms(p *blockedPart, key pass, n int64, looks []int64) error {
	last := n + int64(key.depth) - 1
	to := &p.found[b.round.number%2]
	*to = (*to)[:0]
	if key.depth == 1 {
		s := p.sweeps[key]
		*to = append(*to, found{totals: s.totals})
		if err := b.launch(p.stream, s.launch, n); err != nil {
			return err
		}
		return p.queueTotals(last, s.totals...)
	}
	one := p.norms[key][last-looks[0]]
	for _, look := range looks {
		*to = append(*to, found{join: one.join, before: int(last - look)})
	}
	if err := p.stream.Launch(one.kernel); err != nil {
		return err
	}
	s, err := p.totalsStream(last)
	if err != nil {
		return err
	}
	return one.join.Queue(s)
}

// queueTotals queues what joins totals of a step that was queued.
func (p *blockedPart) queueTotals(n int64, totals ...total) error {
	s, err := p.totalsStream(n)
	if err != nil {
		return err
	}
	for _, t := range totals {
		if err := t.Queue(s); err != nil {
			return err
		}
	}
	return nil
}

// totalsStream returns the stream on which totals of a queued step are joined. Their memory is not written again
// until the host has looked at them: by the round after the next at the earliest.
func (p *blockedPart) totalsStream(n int64) (*streams.Stream, error) {
	if p.totals != p.stream {
		p.totals.BeginStep(n)
		if err := errors.Join(p.stream.Record(p.measured), p.totals.Wait(p.measured)); err != nil {
			return nil, err
		}
	}
	return p.totals, nil
}

func (b *blocked) take(worker int, l look, to *taken) {
	if !b.measures {
		return
	}
	f := &b.parts[worker].found[l.number%2][l.place]
	for _, t := range f.totals {
		t.addTo(to)
	}
	if f.join != nil {
		to.norms[0] = f.join.Results()[f.before]
	}
}
