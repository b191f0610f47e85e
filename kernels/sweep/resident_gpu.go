package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/streams"
)

// onGPU makes the launches of a rank ready.
func (r *ResidentRank) onGPU(slabs [][][]slab) error {
	g := r.group
	p := residentPlan{threads: g.residentThreads(r.rank, false)}
	p.blocks = int64(g.devices[r.rank].Cores)
	for stage := range slabs {
		needed := blocksOf(slabs[stage][r.rank])
		if !g.ranks[0][stage][r.rank].Interior.Empty() {
			needed++
		}
		p.blocks = max(p.blocks, needed)
	}
	for stage := range slabs {
		s, err := r.planStage(stage, slabs[stage][r.rank])
		if err != nil {
			return err
		}
		p.stages = append(p.stages, s)
	}
	if err := r.placeTargets(&p); err != nil {
		return err
	}
	measures, err := r.takeTotals(&p)
	if err != nil {
		return err
	}
	var before []int64
	for _, some := range g.blocksBefore(r.rank, slabs) {
		before = append(before, append(some, make([]int64, maxNeighbours-len(some))...)...)
	}
	table, err := streams.Upload(g.devices[r.rank], before)
	if err != nil {
		return err
	}
	g.resources.Add(table)
	p.before = table.All()
	all := before[len(slabs)*maxNeighbours:]
	if r.plain, err = r.kernel(&p, all); err != nil || !measures {
		return err
	}
	p.measured, p.threads = true, g.residentThreads(r.rank, true)
	r.measured, err = r.kernel(&p, all)
	return err
}

// planStage makes the tables of a stage.
func (r *ResidentRank) planStage(stage int, slabs []slab) (s residentStagePlan, err error) {
	g := r.group
	first := g.ranks[0][stage][r.rank]
	s = residentStagePlan{plan: first.Sweeper.plan, form: first.Sweeper.form, slabs: slabs, interior: first.Interior, core: first.core}
	s.single = s.form.scarce() // whatever the shape of sweeps: threadsFor counts on it
	for _, phase := range g.ranks {
		one := phase[stage][r.rank]
		arrays := slices.Concat(one.Arrays...)
		c, strides := classesOf(arrays)
		if len(s.arrays) > 0 && (!slices.Equal(c, s.classes) || !slices.Equal(strides, s.strides)) {
			return s, fmt.Errorf("%w: arrays of one access with different strides in different phases", ErrImpossible)
		}
		shape, err := one.shape(arrays)
		if err != nil {
			return s, err
		}
		s.classes, s.strides = c, strides
		s.single = s.single || shape.Single
		s.to.reflects, s.to.inner = s.to.reflects || one.reflects(), one.storesInside()
		s.arrays, s.targets = append(s.arrays, arrays), append(s.targets, newTargets(one, slabs))
	}
	return s, nil
}

// placeTargets has the targets of all stages in the argument of launches, where that has room, else in
// device memory.
func (r *ResidentRank) placeTargets(p *residentPlan) error {
	room := true
	for i := range p.stages {
		s := &p.stages[i]
		for phase := range s.targets {
			here := s.targets[phase].room()
			s.to.room, room = max(s.to.room, here), room && here > 0
		}
	}
	if _, bytes := p.program(); room && bytes <= maxArgument {
		return nil
	}
	for i := range p.stages {
		s := &p.stages[i]
		s.to.room = 0
		for phase := range s.targets {
			if err := s.targets[phase].upload(r.group.devices[r.rank], &r.group.resources); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeTotals makes the totals of all stages. It reports whether there are some.
func (r *ResidentRank) takeTotals(p *residentPlan) (measures bool, err error) {
	g := r.group
	for phase := range g.ranks {
		totals := make([]*Totals, len(p.stages))
		for i := range p.stages {
			s := &p.stages[i]
			if s.plan.totals() == 0 {
				s.totals = append(s.totals, 0)
				continue
			}
			measures = true
			if totals[i], err = g.newTotals(g.devices[r.rank], g.ranks[phase][i][r.rank].Sweeper, p.blocks, p.blocks); err != nil {
				return false, err
			}
			s.totals = append(s.totals, totals[i].slot(0).Address())
		}
		r.totals = append(r.totals, totals)
	}
	return measures, nil
}

// kernel makes one launch ready; all is the blocks of each neighbour that finish stages of a step.
func (r *ResidentRank) kernel(p *residentPlan, all []int64) (*streams.Kernel, error) {
	g := r.group
	for i := range p.stages {
		s := &p.stages[i]
		s.prefetch = prefetchFor(s.plan, p.threads, p.measured)
		s.cut(s.interior, p.threads, p.blocks-blocksOf(s.slabs))
		if terms := s.warpTerms(p.blocks - blocksOf(s.slabs)); p.measured && terms > maxWarpTerms {
			return nil, fmt.Errorf("%w: resident steps of %v points, of which a warp would measure %d; %d are possible", ErrImpossible, s.interior.Size(), terms, maxWarpTerms)
		}
	}
	program, bytes := p.program()
	if bytes > maxArgument {
		return nil, fmt.Errorf("%w: resident steps of %d stages, whose argument would have %d bytes; %d are possible", ErrImpossible, len(p.stages), bytes, maxArgument)
	}
	sweeper := g.ranks[0][0][r.rank].Sweeper
	function, err := sweeper.load(g.devices[r.rank], program, "steps")
	if err != nil {
		return nil, err
	}
	block := blockOf(p.threads)
	spec := streams.KernelSpec{
		Name: "resident", Work: streams.Sweep, Function: function, Grid: [3]int{int(p.blocks), 1, 1}, Block: [3]int{block[0], block[1], 1},
		Uses:    []streams.Span{g.flags.Memory(r.rank).All(), g.flags.Report(r.rank).All(), p.before},
		Reaches: g.reaches(r.rank), Argument: r.argument(p, all), Cooperative: true,
	}
	for i, s := range p.stages {
		for phase, arrays := range s.arrays {
			spec.Uses = append(append(spec.Uses, spansOf(arrays)...), s.targets[phase].uses()...)
			spec.Reaches = append(spec.Reaches, g.ranks[phase][i][r.rank].reaches(r.rank)...)
		}
		for phase := range g.ranks {
			if t := r.totals[phase][i]; t != nil {
				spec.Uses = append(spec.Uses, t.device.All())
			}
		}
	}
	k, err := g.devices[r.rank].NewKernel(spec)
	if err == nil {
		g.resources.Add(k)
	}
	return k, err
}

// argument returns struct Steps of point_steps.cu.
func (r *ResidentRank) argument(p *residentPlan, all []int64) (w words) {
	g := r.group
	w.put(make([]int64, spanBytes/8)...)
	w.put(int64(len(g.flags.Neighbours(r.rank))), g.limit.Nanoseconds())
	w.put(int64(g.flags.Report(r.rank).Address()), int64(g.flags.OwnLine(r.rank, 0).Address()), int64(p.before.Address()))
	w.putNeighbours(g, r.rank, all)
	for _, s := range p.stages {
		w.putBoundary(s.slabs, s.core)
	}
	for _, s := range p.stages {
		for _, arrays := range s.arrays {
			w.putArrays(arrays, s.strides)
		}
		for _, t := range s.targets {
			w.putTargets(t, s.to.room, len(s.plan.writes))
		}
		for _, t := range s.totals {
			w.put(int64(t))
		}
		w.put(s.layers, s.tiles[0], s.tiles[1], s.tiles[2])
		w.putPart(s.part, s.strides)
		w = append(w, s.plan.frame()...)
	}
	return w
}
