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

// FusedStages are stages of time steps that devices run together, each with one kernel per device. All ranks must
// queue the same stages in the same order, each by one thread.
type FusedStages struct {
	group  *stageGroup
	waits  [][]int64         // by rank and neighbor: the count at which the next queued stage may begin
	begun  [][]int64         // its increase since then, see StageRank.Continued
	stages [][][]*FusedStage // by phase, stage and rank
}

// FusedStage is a prepared stage of one phase on one device.
type FusedStage struct {
	all       *FusedStages
	rank      int
	continued bool
	plain     *fusedLaunch // nil if there is nothing to sweep
	measured  *fusedLaunch // the same with norms and reductions; nil if there are none
	totals    *Totals
	adds      []int64 // by neighbor: number of its blocks that count for this rank in the stage
}

// fusedLaunch is a launch, and the location of the expected counts in its argument.
type fusedLaunch struct {
	*Launch
	expected []*int64 // by neighbor
}

// Stage returns a stage of a phase on a rank.
func (f *FusedStages) Stage(phase, stage, rank int) *FusedStage { return f.stages[phase][stage][rank] }

// Queue queues the stage after those queued before, with norms and reductions if measured is set and it has any.
// give sets the parameters of the step, unless it is nil. It returns an error if an earlier wait of the device timed
// out.
func (s *FusedStage) Queue(at *streams.Stream, m Moment, give Give, measured bool) error {
	if err := s.Err(); err != nil {
		return err
	}
	l := s.plain
	if measured && s.measured != nil {
		l = s.measured
	}
	waits, begun := s.all.waits[s.rank], s.all.begun[s.rank]
	if l != nil {
		for neighbor, expected := range l.expected {
			*expected = waits[neighbor]
		}
	}
	for neighbor, n := range s.adds {
		if begun[neighbor] += n; !s.continued {
			waits[neighbor] += begun[neighbor]
			begun[neighbor] = 0
		}
	}
	if l == nil {
		return nil
	}
	if err := l.Set(m, give); err != nil {
		return err
	}
	return at.Launch(l.Kernel)
}

// Totals returns the totals of a measured stage, or nil if there are none.
func (s *FusedStage) Totals() *Totals { return s.totals }

// Err returns an error if a wait of the device for another timed out.
func (s *FusedStage) Err() error { return s.all.group.flags.Err(s.rank, "a stage") }

// Close frees all resources. No queued work may still use them. Closing twice is allowed.
func (f *FusedStages) Close() error {
	if f.group == nil {
		return nil
	}
	return f.group.resources.Close()
}

// NewFusedStages prepares the stages of all phases: ranks by phase and stage, on different devices that reach each
// other. limit is how long a device waits for another. When the first step is queued, the ghosts must be those of
// its start.
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
		f.waits = append(f.waits, make([]int64, len(f.group.flags.Neighbors(rank))))
		f.begun = append(f.begun, make([]int64, len(f.group.flags.Neighbors(rank))))
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

// newStage prepares a stage of one phase on all ranks.
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
		for _, other := range f.group.flags.Neighbors(rank) {
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

// stageWords is the count of numbers in struct Stage of point_step.cu without the arrays, the places of the
// interior, the targets and the frame.
const stageWords = 2 + partNumbers + 2 + 3 + boundaryWords + maxNeighbors*3

// stageBytes is the size of struct Stage.
func (n *plan) stageBytes(classes, room int) int {
	return 8*(n.arrays+2*classes+stageWords+classes) + targetsBytes(room, len(n.writes)) + n.givenBytes()
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

// onGPU prepares the launches of a stage.
func (f *FusedStage) onGPU(r StageRank, slabs []slab) error {
	targets, err := newTargets(r, slabs, &f.all.group.resources)
	if err != nil {
		return err
	}
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

// maxStageBlocks returns the largest number of blocks of a measured stage for any shape of sweeps, so that its
// memory is known before tuning.
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

// maxEvery is the largest number of layers of blocks from one of slabs to the next. Each has about a hundred
// blocks, half the resident blocks of a large GPU.
const maxEvery = 3

// planStage chooses the grid: that of the interior's sweeps, and for the slabs some layers of blocks among its
// first.
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

// program returns the program of a stage.
func (r StageRank) program(k *stagePlan) kernels.Program {
	s := r.Sweeper
	plain, measured := s.form.boundsOfStages(k.single)
	options := fmt.Sprintf("#define STAGE_BYTES %d\n",
		s.plan.stageBytes(len(k.strides), k.room)) + plain.source("FUSED") + measured.source("FUSED_MEASURED")
	return withTargets(s.plan.programOf("point_step.cu", s.plan.source(k.classes, s.form, options, k.options)))
}

// launch prepares a launch of a stage.
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
	var neighbors, frame int
	spec.Argument, neighbors, frame = f.argument(s.plan, k)
	l, err := s.launch(spec, frame)
	if err != nil {
		return nil, err
	}
	g.resources.Add(l)
	made := &fusedLaunch{Launch: l}
	for at := range g.flags.Neighbors(f.rank) {
		made.expected = append(made.expected, (*int64)(unsafe.Pointer(&l.Argument()[neighbors+at*24+16])))
	}
	return made, nil
}

// argument returns struct Stage of point_step.cu, and the offsets of its neighbors and its frame.
func (f *FusedStage) argument(n *plan, k *stagePlan) (bytes []byte, neighbors, frame int) {
	g := f.all.group
	var w words
	w.putArrays(k.arrays, k.strides)
	w.put(int64(k.totals), int64(k.layers))
	w.putPart(k.parts[0], k.strides)
	w.put(k.slabLayers, k.every, int64(len(g.flags.Neighbors(f.rank))))
	w.put(g.limit.Nanoseconds(), int64(g.flags.Report(f.rank).Address()))
	w.putTargets(k.targets, k.room, len(n.writes))
	w.putBoundary(k.slabs, k.core)
	neighbors = len(w)
	w.putNeighbors(g, f.rank, make([]int64, len(g.flags.Neighbors(f.rank))))
	return append(w, n.given()...), neighbors, len(w)
}
