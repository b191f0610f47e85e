package scheme

import (
	"errors"
	"math"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/kernels/sweep"
	"github.com/halox/halox/kernels/temporal"
	"github.com/halox/halox/streams"
)

// addNorms prepares the sweeps and the passes of a subdomain that take norms. The given kernel sweeps the
// subdomain. Their memory does not depend on tuning, so that a dry run counts it exactly.
func (b *blockedPart) addNorms(sweeps *streams.Kernel) error {
	b.withNorms = map[normPass]measuredPass{}
	ghosts := b.ghostsLeft()
	bySweeps := true // sweeps take all norms and reductions
	for slot := range 2 {
		for left := range b.deepest() {
			k, all, err := b.addMeasured(pass{1, left, slot}, ghosts[left])
			if err != nil {
				return err
			}
			if bySweeps = bySweeps && all; k != nil && left == 0 && slot == b.slot(b.done) {
				sweeps = k
			}
		}
	}
	if bySweeps {
		if err := b.newEvents(b.device, &b.measured); err != nil {
			return err
		}
		var err error
		if b.norms, err = b.newStream(b.device, streams.Urgent, "norms"); err != nil {
			return err
		}
	}
	return b.addNormPasses(sweeps)
}

// ghostsLeft returns the ghosts of neighbors that a sweep computes, by the number of steps of its group that
// follow.
func (b *blockedPart) ghostsLeft() [][]domain.Box {
	all := make([][]domain.Box, b.deepest())
	for phase := range b.period {
		left := (b.step.group() - phase%b.step.group()) % b.step.group()
		if boxes := b.stages[phase][0].boxes; left < len(all) && boxes.grown {
			all[left] = boxes.ghosts
		}
	}
	return all
}

// addMeasured prepares a sweep that takes norms and reductions over owned points. It returns the kernel of
// owned points, nil if that takes none of them, and whether it takes all.
func (b *blockedPart) addMeasured(key pass, ghosts []domain.Box) (owned *streams.Kernel, all bool, err error) {
	launch := b.passes[key]
	var swept []*sweep.Totals
	if _, ok := b.step.pointTotal(b.stage()); ok {
		portion := sweep.Portion{Name: "sweep", Boxes: []domain.Box{b.owned()}}
		launches, totals, err := b.stages[0][0].sweeper.Measure(b.arrays(key.slot), portion)
		if err != nil {
			return nil, false, err
		}
		b.run.resources.Add(totals)
		owned, swept = launches[0].Kernel, []*sweep.Totals{totals}
		launch = b.stage().launch(launches[0], b.Runner)
		if len(ghosts) > 0 {
			_, more, err := b.newSweep("sweep ghosts", key.slot, ghosts...)
			if err != nil {
				return nil, false, err
			}
			launch = inTurn(more, launch)
		}
	}
	totals, all, err := b.totalsOf(b.Runner, &b.run.resources, b.slotPhase(1-key.slot),
		func(int) []*sweep.Totals { return swept })
	b.withNorms[normPass{key, 1}] = measuredPass{launch, [][]total{totals}}
	return owned, all, err
}

// wantedNorms returns the maximum number of steps of passes that take the norms of their last steps, 0 if
// none are needed. The first of these steps is a check, so the pass has fewer steps before it than there are
// between two checks. If checks are farther apart than the steps of a pass, passes end with them. If they are
// so rare that a sweep for each costs only one or two percent, no such passes are compiled, which would take
// seconds.
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

// addNormPasses prepares the passes of a linear stencil that take norms, if there are passes.
func (b *blockedPart) addNormPasses(sweeps *streams.Kernel) error {
	if b.made == nil || len(b.step.Measured) != 1 || len(b.step.Reductions()) > 0 || b.deepest() == 1 && b.connected {
		return nil
	}
	s, _ := b.stage().linear()
	real, _ := b.variable().real()
	from, _ := b.fields(b.slot(b.done))
	var made [temporal.MaxNorms + 1]*temporal.Passes // by number of last steps with norms; nil if there are none
	most, parts := 0, int64(0)                       // steps, and parts of the norms of a step
	for norms := 1; norms <= temporal.MaxNorms; norms++ {
		o := b.passOptions()
		if o.Norms, o.Deepest = norms, b.wantedNorms(norms); o.Deepest == 0 {
			continue
		}
		passes, err := temporal.New(b.compiler, b.device, s, real, from.Layout, o)
		if errors.Is(err, temporal.ErrImpossible) {
			continue
		}
		if err != nil {
			return err
		}
		made[norms], most = passes, norms
		for left := range b.deepest() {
			parts = max(parts, passes.Parts(b.box(pass{left: left}), b.sides))
		}
	}
	if parts == 0 {
		return nil
	}
	reducer, err := reduce.NewNormReducer(b.compiler, b.device, real, b.step.Sums)
	if err != nil {
		return err
	}
	for i := range b.normParts {
		if b.normParts[i], err = reducer.Parts(most, parts); err != nil {
			return err
		}
		b.run.resources.Add(b.normParts[i])
	}
	for norms, passes := range made {
		if passes == nil {
			continue
		}
		if err := b.addPassesWith(passes, norms, sweeps); err != nil {
			return err
		}
	}
	return nil
}

// addPassesWith prepares the passes that take the norms of a number of last steps.
func (b *blockedPart) addPassesWith(passes *temporal.Passes, norms int, sweeps *streams.Kernel) error {
	if err := b.tune(passes, sweeps, b.more(b.slot(b.done), norms)); err != nil {
		return err
	}
	measured := 1.0
	if t, sweepTime := passes.SweepTime(), b.made.SweepTime(); t > 0 && sweepTime > 0 {
		measured = float64(t) / float64(sweepTime)
		b.costs.Wait = float64(b.checkTime()) / float64(sweepTime)
	}
	b.costs.By[1][1] = max(b.costs.By[1][1], measured)
	for depth, cost := range b.possible(passes.Costs()) {
		if depth > 1 {
			b.costs.By[norms][depth] = measured * cost
		}
	}
	return b.eachPass(b.costs.By[norms][:], func(key pass) error { return b.addNormPass(passes, norms, key) })
}

// checkTime estimates how long a device is idle until the host has received the norms at the end of a pass
// and queued the next, with or without an agreement of processes in between.
func (b *blocked) checkTime() time.Duration {
	if !b.place.Processes.IsAlone() {
		return 100 * time.Microsecond
	}
	return 25 * time.Microsecond
}

// addNormPass prepares a pass with norms, and the launch that joins the norms of its thread blocks.
func (b *blockedPart) addNormPass(passes *temporal.Passes, norms int, key pass) error {
	from, to := b.fields(key.slot)
	k, count, err := passes.Pass(passName(key.depth), from, to, b.box(key), b.sides, key.depth, b.more(key.slot, norms))
	if err != nil {
		return err
	}
	b.run.resources.Add(k)
	join, err := b.normParts[1-key.slot].Join(norms, count)
	if err != nil {
		return err
	}
	b.run.resources.Add(join)
	made := measuredPass{launch: Kernel(k)}
	for before := range norms {
		made.totals = append(made.totals, []total{passTotal{join, before}})
	}
	b.withNorms[normPass{key, norms}] = made
	return nil
}

// more returns the options of a pass that reads the fields of a slot and takes the norms of a number of last
// steps.
func (b *blockedPart) more(slot, norms int) temporal.More {
	m := temporal.More{Box: b.owned(), Faces: b.walls}
	for n := range norms {
		m.Parts = append(m.Parts, b.normParts[1-slot].Span(n))
	}
	return m
}

// launchWithNorms queues a pass or a sweep whose first step is n, with the norms of the steps checks.
func (b *blockedPart) launchWithNorms(key pass, n int64, checks []int64) error {
	last := n + int64(key.depth) - 1
	one := b.withNorms[normPass{key, int(last-checks[0]) + 1}]
	found := &b.found[b.round.number%2]
	*found = (*found)[:0]
	for _, step := range checks {
		*found = append(*found, one.totals[last-step])
	}
	if err := b.launch(b.stream, one.launch, n); err != nil {
		return err
	}
	// the memory of totals is not written again until the host has read them: at the earliest by the round
	// after the next
	if b.norms != b.stream {
		b.norms.BeginStep(last)
		if err := errors.Join(b.stream.Record(b.measured), b.norms.Wait(b.measured)); err != nil {
			return err
		}
	}
	for _, t := range one.totals[0] {
		if err := t.Queue(b.norms); err != nil {
			return err
		}
	}
	return nil
}

func (b *blockedPart) take(c normCheck, to *taken) {
	if !b.measures {
		return
	}
	for _, t := range b.found[c.number%2][c.place] {
		t.addTo(to)
	}
}
