package sweep

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// stageWords are the numbers of struct Stage of point_step.cu but for the arrays, the interior's
// places and the frame.
const stageWords = 2 + partNumbers + 5 + 2 + 2 + maxSlabs*9 + maxPeers*3

// stageBytes is the size of struct Stage.
func (n *plan) stageBytes(classes int) int {
	return 8*(n.arrays+2*classes+stageWords+classes) + n.frameBytes()
}

// stagePlan is the geometry of a fused stage on a GPU, and the rest of its argument.
type stagePlan struct {
	launchPlan
	single                  bool
	slabBlocks              int64
	slabLayers, every       int64
	slabs                   []slab
	targets, ranges, report uint64
}

// onGPU makes the launches of a stage ready.
func (f *FusedStage) onGPU(r StageRank, slabs []slab) error {
	k, err := planStage(r, slabs)
	if err != nil {
		return err
	}
	if err := f.addTargets(r, slabs, &k); err != nil {
		return err
	}
	k.report = f.group.reports[f.rank].Address()
	if f.plain, err = f.launch(r, &k, "fused"); err != nil || r.Sweeper.plan.totals() == 0 {
		return err
	}
	f.totals = &Totals{plan: r.Sweeper.plan}
	f.group.resources.Add(f.totals)
	if err := f.totals.allocate(r.Sweeper.device, k.blocks()); err != nil {
		return err
	}
	k.totals = f.totals.slot(0).Address()
	if f.measured, err = f.launch(r, &k, "fused"+withMeasured, f.totals.device.All()); err != nil {
		return err
	}
	if _, err := r.Sweeper.functions(k.classes); err != nil {
		return err
	}
	return f.totals.joinSlots(r.Sweeper.device, r.Sweeper.programs, k.blocks())
}

// maxEvery is how many layers of blocks there are, at most, from one of slabs to the next. Each has
// some hundred blocks, half of what a large GPU holds.
const maxEvery = 3

// planStage chooses the grid: that of the interior's sweeps, and for the slabs some layers of blocks
// among its first.
func planStage(r StageRank, slabs []slab) (k stagePlan, err error) {
	s, n := r.Sweeper, r.Sweeper.plan
	k.arrays = slices.Concat(r.Arrays...)
	k.classes, k.strides = classesOf(k.arrays)
	k.slabs = slabs
	for _, one := range slabs {
		k.slabBlocks += one.blocks
	}
	shape := s.shape
	if !r.Interior.Empty() && !n.grouped(k.arrays, r.Interior) {
		shape = s.form.single(shape)
	}
	if shape.Single && s.form.layered {
		return k, fmt.Errorf("sweep: a fused stage of arrays that are not aligned")
	}
	k.single, k.block = shape.Single, [3]int{shape.Block[0], shape.Block[1], 1}
	k.grid, k.layers = [3]int{int(max(1, k.slabBlocks)), 1, 0}, shape.Layers
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
	k.grid[0] = max(k.grid[0], ceil(int(k.slabBlocks), k.grid[1]*maxBlocks/2))
	layers := ceil(int(k.slabBlocks), k.grid[0]*k.grid[1])
	k.slabLayers, k.every = int64(layers), 1
	if layers > 1 {
		k.every = int64(min(maxEvery, 1+k.grid[2]/(layers-1)))
	}
	if k.grid[2] += layers; n.point.Dims == 2 {
		high := ceil(k.grid[2], maxBlocks)
		k.grid[1], k.grid[2] = ceil(k.grid[2], high), high
	}
	if !ok || k.grid[1] > maxBlocks || k.grid[2] > maxBlocks {
		return k, fmt.Errorf("sweep: a stage of %v points is too large for one launch", r.Interior.Size())
	}
	return k, nil
}

// addTargets puts where points of slabs go into device memory: for each slab and written array in turn.
func (f *FusedStage) addTargets(r StageRank, slabs []slab, k *stagePlan) error {
	var targets words
	var ranges []int64
	for _, one := range slabs {
		for w := range r.Sweeper.plan.writes {
			for _, s := range r.Stores {
				if r.Sweeper.plan.written(s.Access, s.Component) == w && !s.Send.Intersect(one.box).Empty() {
					targets.putTarget(s)
				}
			}
			ranges = append(ranges, int64(len(targets)/targetBytes))
		}
	}
	if len(slabs) == 0 {
		ranges = []int64{0}
	}
	if len(targets) == 0 {
		targets = make([]byte, targetBytes)
	}
	for _, table := range []struct {
		bytes []byte
		to    *uint64
	}{{targets, &k.targets}, {bytesOf(ranges), &k.ranges}} {
		m, err := kernels.Upload(r.Sweeper.device, table.bytes)
		if err != nil {
			return err
		}
		f.group.resources.Add(m)
		*table.to = m.Address()
	}
	return nil
}

// targetBytes is the size of struct Target of point_step.cu.
const targetBytes = 9 * 8

// putTarget puts struct Target.
func (w *words) putTarget(s Store) {
	for a := range 3 {
		w.put(int64(s.Send.Lo[a]))
	}
	for a := range 3 {
		w.put(int64(s.Send.Hi[a]))
	}
	l := s.Array.Layout
	w.put(int64(s.Array.Data.Address()) + l.Offset(s.Ghost.Lo.Sub(s.Send.Lo))*int64(l.ElementSize))
	w.put(l.Pitch, l.Plane)
}

func bytesOf(numbers []int64) []byte {
	var w words
	w.put(numbers...)
	return w
}

// program is what is compiled for a stage.
func (r StageRank) program(k *stagePlan) kernels.Program {
	s := r.Sweeper
	single := 0
	if k.single {
		single = 1
	}
	options := fmt.Sprintf("#define ALL_READ_ONLY false\n#define STAGE_BYTES %d\n#define FUSED_SINGLE %d\n#define FUSED_LAYERS %d\n#define FUSED_BLOCKS %d\n#define FUSED_MEASURED_BLOCKS %d\n",
		s.plan.stageBytes(len(k.strides)), single, k.layers, s.form.fusedBlocks(s.form.bounds), s.form.fusedBlocks(s.form.measured))
	return kernels.PointProgram("point_step.cu", options+s.plan.source(k.classes, s.form))
}

// fusedBlocks returns how many blocks of a fused stage a multiprocessor shall have registers for: as
// many threads as sweeps with such bounds have, and enough for what threads know of slabs.
func (f form) fusedBlocks(b launchBounds) int {
	const all, fewest = 65536, 64 // registers, and those of a thread
	return max(1, min(b.threads*b.blocks, all/fewest)/f.bounds.threads)
}

// launch makes a launch of a stage ready.
func (f *FusedStage) launch(r StageRank, k *stagePlan, kernel string, uses ...streams.Span) (*fusedLaunch, error) {
	s, g := r.Sweeper, f.group
	found, err := s.compiler.Load(s.device, r.program(k), kernel)
	if err != nil {
		return nil, s.plan.explain(err)
	}
	spec := streams.KernelSpec{
		Name: "fused", Work: streams.Sweep, Function: found[0], Grid: k.grid, Block: k.block,
		Uses: append(append(spansOf(k.arrays), g.counts[f.rank].All(), g.reports[f.rank].All()), uses...),
	}
	for _, st := range r.Stores {
		if st.To != f.rank {
			spec.Reaches = append(spec.Reaches, st.Array.Data)
		}
	}
	for _, other := range g.peers[f.rank] {
		spec.Reaches = append(spec.Reaches, g.line(other, f.rank))
	}
	var peers, frame int
	spec.Argument, peers, frame = f.argument(s.plan, k)
	l, err := s.launch(spec, frame)
	if err != nil {
		return nil, err
	}
	g.resources.Add(l)
	made := &fusedLaunch{Launch: l}
	for at := range g.peers[f.rank] {
		made.expected = append(made.expected, (*int64)(unsafe.Pointer(&l.Argument()[peers+at*24+16])))
	}
	return made, nil
}

// argument returns struct Stage of point_step.cu, and where its peers and its frame begin.
func (f *FusedStage) argument(n *plan, k *stagePlan) (bytes []byte, peers, frame int) {
	g := f.group
	var w words
	for _, a := range k.arrays {
		w.put(origin(a))
	}
	for _, s := range k.strides {
		w.put(s.pitch, s.plane)
	}
	w.put(int64(k.totals), int64(k.layers))
	w.putPart(k.parts[0], k.strides)
	w.put(k.slabBlocks, int64(len(k.slabs)), int64(len(g.peers[f.rank])), k.slabLayers, k.every)
	w.put(g.limit.Nanoseconds(), int64(k.report), int64(k.targets), int64(k.ranges))
	first := int64(0)
	for i := range maxSlabs {
		var s slab
		if i < len(k.slabs) {
			s = k.slabs[i]
		}
		size := s.box.Size()
		bits := int64(0)
		for _, other := range s.peers {
			bits |= 1 << slices.Index(g.peers[f.rank], other)
		}
		w.put(int64(s.box.Lo[0]), int64(s.box.Lo[1]), int64(s.box.Lo[2]), int64(size[0]), int64(size[1]), int64(size[2]), first, s.blocks, bits)
		first += s.blocks
	}
	peers = len(w)
	for i := range maxPeers {
		if i >= len(g.peers[f.rank]) {
			w.put(0, 0, 0)
			continue
		}
		other := g.peers[f.rank][i]
		w.put(int64(g.line(f.rank, other).Address()), int64(g.line(other, f.rank).Address()), 0)
	}
	return append(w, n.frame()...), peers, len(w)
}
