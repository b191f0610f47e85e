package sweep

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// FusedStages are the stages of time steps that devices make together, each with one kernel a
// device. All ranks queue the same stages in the same order, each by one thread.
type FusedStages struct {
	group  *stageGroup
	waits  [][]int64         // by rank and neighbour: the count at which the stage queued next may begin
	begun  [][]int64         // and by how much it has grown since, see StageRank.Continued
	stages [][][]*FusedStage // by phase, stage and rank
}

// FusedStage is a stage of one phase on one device, made ready.
type FusedStage struct {
	all       *FusedStages
	rank      int
	continued bool
	plain     *fusedLaunch // nil where there is nothing to sweep
	measured  *fusedLaunch // the same, which takes norms and reductions; nil where there are none
	totals    *Totals
	adds      []int64 // by neighbour: how many of its blocks count for this one in the stage
}

// fusedLaunch is a launch, and where in its argument the counts to wait for lie.
type fusedLaunch struct {
	*Launch
	expected []*int64 // by neighbour
}

// Stage returns a stage of a phase on a rank.
func (f *FusedStages) Stage(phase, stage, rank int) *FusedStage { return f.stages[phase][stage][rank] }

// Queue queues the stage behind those queued before, with norms and reductions if they are wanted and
// it has some. It returns an error also if a wait of the device timed out before.
func (s *FusedStage) Queue(at *streams.Stream, m Moment, parameters any, measured bool) error {
	if err := s.Err(); err != nil {
		return err
	}
	l := s.plain
	if measured && s.measured != nil {
		l = s.measured
	}
	waits, begun := s.all.waits[s.rank], s.all.begun[s.rank]
	if l != nil {
		for neighbour, expected := range l.expected {
			*expected = waits[neighbour]
		}
	}
	for neighbour, n := range s.adds {
		if begun[neighbour] += n; !s.continued {
			waits[neighbour] += begun[neighbour]
			begun[neighbour] = 0
		}
	}
	if l == nil {
		return nil
	}
	l.SetMoment(m)
	if parameters != nil {
		if err := l.SetParameters(parameters); err != nil {
			return err
		}
	}
	return at.Launch(l.Kernel)
}

// Totals returns what a measured stage takes, nil if that is nothing.
func (s *FusedStage) Totals() *Totals { return s.totals }

// Err returns an error if a wait of the device for another timed out.
func (s *FusedStage) Err() error { return s.all.group.flags.Err(s.rank, "a stage") }

// Close frees what is held. Nothing queued may still use it. Closing twice is no error.
func (f *FusedStages) Close() error {
	if f.group == nil {
		return nil
	}
	return f.group.resources.Close()
}

// NewFusedStages makes the stages of all phases ready: ranks by phase and stage, on different devices
// that reach each other. limit is how long a device waits for another. The ghosts are those of the
// first step's beginning when that is queued.
func NewFusedStages(ranks [][][]StageRank, limit time.Duration) (f *FusedStages, err error) {
	f = &FusedStages{}
	defer func() {
		if err != nil {
			f, err = nil, errors.Join(err, f.Close())
		}
	}()
	if f.group, err = newStageGroup(ranks, limit); err != nil {
		return f, err
	}
	if err := f.group.onGPUs(); err != nil {
		return f, err
	}
	for rank := range f.group.devices {
		f.waits = append(f.waits, make([]int64, len(f.group.flags.Neighbours(rank))))
		f.begun = append(f.begun, make([]int64, len(f.group.flags.Neighbours(rank))))
	}
	for _, stages := range f.group.ranks {
		var made [][]*FusedStage
		for _, stage := range stages {
			one, err := f.newStage(stage)
			if err != nil {
				return f, err
			}
			made = append(made, one)
		}
		f.stages = append(f.stages, made)
	}
	return f, nil
}

// newStage makes a stage of one phase ready on all ranks.
func (f *FusedStages) newStage(stage []StageRank) (all []*FusedStage, err error) {
	slabs := make([][]slab, len(stage))
	for rank, r := range stage {
		slabs[rank] = f.group.slabsOf(rank, r)
		if err := r.share(slabs[rank]); err != nil {
			return nil, err
		}
	}
	for rank, r := range stage {
		s := &FusedStage{all: f, rank: rank, continued: r.Continued}
		for _, other := range f.group.flags.Neighbours(rank) {
			s.adds = append(s.adds, finishing(slabs[other], f.group.flags.Place(rank, other)))
		}
		all = append(all, s)
		if len(slabs[rank]) == 0 && r.Interior.Empty() {
			continue
		}
		if err := s.onGPU(r, slabs[rank]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// stageWords are the numbers of struct Stage of point_step.cu without the arrays, the interior's
// places, the targets and the frame.
const stageWords = 2 + partNumbers + 2 + 3 + boundaryWords + maxNeighbours*3

// stageBytes is the size of struct Stage.
func (n *plan) stageBytes(classes, room int) int {
	return 8*(n.arrays+2*classes+stageWords+classes) + targetsBytes(room, len(n.writes)) + n.frameBytes()
}

// stagePlan is the geometry of a fused stage on a GPU, and the rest of its argument.
type stagePlan struct {
	launchPlan
	single            bool
	options           string // of the program
	slabLayers, every int64
	slabs             []slab
	core              domain.Box
	targets           targets
	room              int // see targets
}

// onGPU makes the launches of a stage ready.
func (f *FusedStage) onGPU(r StageRank, slabs []slab) error {
	targets := newTargets(r, slabs)
	room := targets.room()
	c, _ := classesOf(slices.Concat(r.Arrays...))
	if room == 0 || r.Sweeper.plan.stageBytes(c.count(), room) > maxArgument {
		room = 0
		if err := targets.upload(r.Sweeper.device, &f.all.group.resources); err != nil {
			return err
		}
	}
	k, err := planStage(r, slabs, room, false)
	if err != nil {
		return err
	}
	k.targets = targets
	if f.plain, err = f.launch(r, &k, "fused"); err != nil || r.Sweeper.plan.totals() == 0 {
		return err
	}
	if k, err = planStage(r, slabs, room, true); err != nil {
		return err
	}
	most := maxStageBlocks(r, slabs, room)
	if f.totals, err = f.all.group.newTotals(r.Sweeper.device, r.Sweeper, k.blocks(), most); err != nil {
		return err
	}
	k.targets, k.totals = targets, f.totals.slot(0).Address()
	f.measured, err = f.launch(r, &k, "fused"+withMeasured, f.totals.device.All())
	return err
}

// maxStageBlocks returns how many blocks a stage that measures has at most, whatever the shape of sweeps: so the
// memory that it takes is known before that was tuned.
func maxStageBlocks(r StageRank, slabs []slab, room int) (most int64) {
	for _, shape := range r.Sweeper.form.shapes {
		one, some := r.swept(shape), slices.Clone(slabs)
		if one.share(some) != nil {
			continue
		}
		if k, err := planStage(one, some, room, true); err == nil {
			most = max(most, k.blocks())
		}
	}
	return most
}

// maxEvery is how many layers of blocks there are, at most, from one of slabs to the next. Each has
// some hundred blocks, half of what a large GPU holds.
const maxEvery = 3

// planStage chooses the grid: that of the interior's sweeps, and for the slabs some layers of blocks
// among its first.
func planStage(r StageRank, slabs []slab, room int, measured bool) (k stagePlan, err error) {
	s, n := r.Sweeper, r.Sweeper.plan
	k.arrays = slices.Concat(r.Arrays...)
	k.classes, k.strides = classesOf(k.arrays)
	k.slabs, k.core = slabs, r.core
	slabBlocks := int(blocksOf(slabs))
	shape, err := r.fusedShape(k.arrays)
	if err != nil {
		return k, err
	}
	k.single = shape.Single
	k.options, k.room = stageOptions(s.form, shape, 1, 1, r.storing(room)), room
	if measured { // the threads of a stage are those of all stages
		shape.Layers = s.form.measuredLayers(shape.Layers)
	}
	k.block = [3]int{shape.Block[0], shape.Block[1], 1}
	k.grid, k.layers = [3]int{max(1, slabBlocks), 1, 0}, shape.Layers
	ok := true
	if size := r.Interior.Size(); !r.Interior.Empty() {
		if n.point.Dims == 3 && s.form.way == streaming {
			shape.Layers = max(shape.Layers, ceil(size[2], maxBlocks/2))
		}
		ok = k.large(n, s.form, r.Interior, shape)
	}
	if n.point.Dims == 2 {
		k.grid[2] *= k.grid[1] // bands of rows
		k.grid[1] = 1
	}
	k.grid[0] = max(k.grid[0], ceil(slabBlocks, k.grid[1]*maxBlocks/2))
	layers := ceil(slabBlocks, k.grid[0]*k.grid[1])
	k.slabLayers, k.every = int64(layers), 1
	if layers > 1 {
		k.every = int64(min(maxEvery, 1+k.grid[2]/(layers-1)))
	}
	if k.grid[2] += layers; n.point.Dims == 2 {
		high := ceil(k.grid[2], maxBlocks)
		k.grid[1], k.grid[2] = ceil(k.grid[2], high), high
	}
	if !ok || k.grid[1] > maxBlocks || k.grid[2] > maxBlocks {
		return k, fmt.Errorf("%w: a stage of %v points is too large for one launch", ErrImpossible, r.Interior.Size())
	}
	return k, nil
}

// program is what is compiled for a stage.
func (r StageRank) program(k *stagePlan) kernels.Program {
	s := r.Sweeper
	plain, measured := s.form.boundsOfStages(k.single)
	options := fmt.Sprintf("#define STAGE_BYTES %d\n",
		s.plan.stageBytes(len(k.strides), k.room)) + plain.source("FUSED") + measured.source("FUSED_MEASURED")
	return withTargets(s.plan.programOf("point_step.cu", s.plan.source(k.classes, s.form, options, k.options)))
}

// launch makes a launch of a stage ready.
func (f *FusedStage) launch(r StageRank, k *stagePlan, kernel string, uses ...streams.Span) (*fusedLaunch, error) {
	s, g := r.Sweeper, f.all.group
	function, err := s.load(s.device, r.program(k), kernel)
	if err != nil {
		return nil, err
	}
	spec := streams.KernelSpec{
		Name: "fused", Work: streams.Sweep, Function: function, Grid: k.grid, Block: k.block,
		Uses: append(
			append(spansOf(k.arrays), g.flags.Memory(f.rank).All(), g.flags.Report(f.rank).All()),
			append(k.targets.uses(), uses...)...),
		Reaches: append(r.reaches(f.rank), g.reaches(f.rank)...),
	}
	var neighbours, frame int
	spec.Argument, neighbours, frame = f.argument(s.plan, k)
	l, err := s.launch(spec, frame)
	if err != nil {
		return nil, err
	}
	g.resources.Add(l)
	made := &fusedLaunch{Launch: l}
	for at := range g.flags.Neighbours(f.rank) {
		made.expected = append(made.expected, (*int64)(unsafe.Pointer(&l.Argument()[neighbours+at*24+16])))
	}
	return made, nil
}

// argument returns struct Stage of point_step.cu, and where its neighbours and its frame begin.
func (f *FusedStage) argument(n *plan, k *stagePlan) (bytes []byte, neighbours, frame int) {
	g := f.all.group
	var w words
	w.putArrays(k.arrays, k.strides)
	w.put(int64(k.totals), int64(k.layers))
	w.putPart(k.parts[0], k.strides)
	w.put(k.slabLayers, k.every, int64(len(g.flags.Neighbours(f.rank))))
	w.put(g.limit.Nanoseconds(), int64(g.flags.Report(f.rank).Address()))
	w.putTargets(k.targets, k.room, len(n.writes))
	w.putBoundary(k.slabs, k.core)
	neighbours = len(w)
	w.putNeighbours(g, f.rank, make([]int64, len(g.flags.Neighbours(f.rank))))
	return append(w, n.frame()...), neighbours, len(w)
}
