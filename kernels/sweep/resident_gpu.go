package sweep

import (
	"fmt"
	"slices"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// maxArgument is how large the argument of a launch may be.
const maxArgument = 4096

// onGPU makes the launches of a rank ready.
func (r *ResidentRank) onGPU(slabs [][][]slab) error {
	g := r.group
	p := residentPlan{threads: g.residentThreads(r.rank)}
	for stage := range slabs {
		p.blocks = max(p.blocks, residentBlocks(g.devices[r.rank], int(blocksOf(slabs[stage][r.rank]))))
	}
	for stage := range slabs {
		s, err := r.planStage(stage, slabs[stage][r.rank], &p)
		if err != nil {
			return err
		}
		p.stages = append(p.stages, s)
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
	p.before = table.Address()
	return r.launches(&p, before[len(slabs)*maxNeighbours:])
}

// planStage chooses how the interior of a stage is cut into tiles, and makes its tables.
func (r *ResidentRank) planStage(stage int, slabs []slab, p *residentPlan) (s residentStagePlan, err error) {
	g := r.group
	first := g.ranks[0][stage][r.rank]
	s = residentStagePlan{plan: first.Sweeper.plan, form: first.Sweeper.form, slabs: slabs}
	for _, phase := range g.ranks {
		one := phase[stage][r.rank]
		arrays := slices.Concat(one.Arrays...)
		c, strides := classesOf(arrays)
		if len(s.arrays) > 0 && (!slices.Equal(c, s.classes) || !slices.Equal(strides, s.strides)) {
			return s, fmt.Errorf("sweep: arrays of one access with different strides in different phases")
		}
		shape, err := one.shape(arrays)
		if err != nil {
			return s, err
		}
		s.classes, s.strides = c, strides
		s.single, s.reflects = s.single || shape.Single, s.reflects || one.reflects()
		t, err := newTargets(one, slabs, &g.resources)
		if err != nil {
			return s, err
		}
		s.arrays, s.targets = append(s.arrays, arrays), append(s.targets, t)
	}
	s.cut(first.Interior, p.threads, p.blocks-blocksOf(slabs))
	return s, nil
}

// launches makes both launches ready; all is the blocks of each neighbour that finish stages of a step.
func (r *ResidentRank) launches(p *residentPlan, all []int64) (err error) {
	g := r.group
	r.totals = make([]*Totals, len(p.stages))
	measures := false
	for i := range p.stages {
		s := &p.stages[i]
		if s.plan.totals() == 0 {
			continue
		}
		measures = true
		t := &Totals{plan: s.plan}
		g.resources.Add(t)
		if err := t.allocate(g.devices[r.rank], p.blocks); err != nil {
			return err
		}
		sweeper := g.ranks[0][i][r.rank].Sweeper
		if _, err := sweeper.functions(s.classes); err != nil {
			return err
		}
		if err := t.joinSlots(g.devices[r.rank], sweeper.programs, p.blocks); err != nil {
			return err
		}
		r.totals[i], s.totals = t, t.slot(0).Address()
	}
	program, bytes := p.program(measures)
	if bytes > maxArgument {
		return fmt.Errorf("sweep: resident steps of %d stages, whose argument would have %d bytes; %d are possible", len(p.stages), bytes, maxArgument)
	}
	if r.plain, err = r.kernel(p, program, "steps", all); err != nil || !measures {
		return err
	}
	r.measured, err = r.kernel(p, program, "steps"+withMeasured, all)
	return err
}

// kernel makes one launch ready.
func (r *ResidentRank) kernel(p *residentPlan, program kernels.Program, name string, all []int64) (*streams.Kernel, error) {
	g := r.group
	sweeper := g.ranks[0][0][r.rank].Sweeper
	found, err := sweeper.compiler.LoadSteps(g.devices[r.rank], program, name)
	if err != nil {
		return nil, sweeper.plan.explain(err)
	}
	block := blockOf(p.threads)
	spec := streams.KernelSpec{
		Name: "resident", Work: streams.Sweep, Function: found[0], Grid: [3]int{int(p.blocks), 1, 1}, Block: [3]int{block[0], block[1], 1},
		Uses:    []streams.Span{g.flags.Memory(r.rank).All(), g.flags.Report(r.rank).All()},
		Reaches: g.reaches(r.rank), Argument: r.argument(p, all), Cooperative: true,
	}
	for i, s := range p.stages {
		for phase, arrays := range s.arrays {
			spec.Uses = append(spec.Uses, spansOf(arrays)...)
			spec.Reaches = append(spec.Reaches, g.ranks[phase][i][r.rank].reaches(r.rank)...)
		}
		if r.totals[i] != nil {
			spec.Uses = append(spec.Uses, r.totals[i].device.All())
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
	w.put(int64(g.flags.Report(r.rank).Address()), int64(g.flags.OwnLine(r.rank, 0).Address()), int64(p.before))
	w.putNeighbours(g, r.rank, all)
	for _, s := range p.stages {
		w.putBoundary(s.slabs)
	}
	for _, s := range p.stages {
		for _, arrays := range s.arrays {
			w.putArrays(arrays, s.strides)
		}
		for _, t := range s.targets {
			w.putTargets(t)
		}
		w.put(int64(s.totals), s.layers, s.tiles[0], s.tiles[1], s.tiles[2])
		w.putPart(s.part, s.strides)
		w = append(w, s.plan.frame()...)
	}
	return w
}
