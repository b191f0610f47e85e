package kernels

import (
	"fmt"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// stepArgs is struct Step of step.cu, but for the stores and neighbours at its end.
type stepArgs struct {
	field                     [2]uint64
	strides                   strides
	span                      stepSpan `cu:"inline"`
	slabBlocks, slabs, degree int64
	boundaryLayers, every     int64
	layers                    int64
	tiles                     [3]int64
	limit                     int64
	failed, arrived           uint64
	norms                     [2]uint64
	interior                  sweepPart
	slab                      [maxFaces]slabArgs
}

// slabArgs and targetArgs are structs Slab and Target of step.cu.
type (
	slabArgs struct {
		lo, size            [3]int32
		first, blocks       int64
		targets, neighbours uint64
	}
	targetArgs struct {
		lo, hi  [3]int32
		ghost   [2]uint64
		strides strides
		odd     [maxOdd]int64
	}
)

// stepLaunch is what a rank launches.
type stepLaunch struct {
	kernel     string
	grid       [3]int
	block      [2]int // threads
	arg        stepArgs
	targets    []targetArgs
	neighbours []flags.Neighbour
}

// argument returns the bytes of struct Step with room for so many stores and neighbours.
func (k *stepLaunch) argument(most int) []byte {
	bytes := argument(&k.arg)
	for i := range most {
		var t targetArgs
		if i < len(k.targets) {
			t = k.targets[i]
		}
		bytes = append(bytes, argument(&t)...)
	}
	for i := range most {
		var o flags.Neighbour
		if i < len(k.neighbours) {
			o = k.neighbours[i]
		}
		bytes = append(bytes, argument(&o)...)
	}
	return bytes
}

// onGPU makes the launch of a rank on a GPU, and where a launch makes a step another with
// norms.
func (s *Stepper) onGPU(c *Compiler, n *stepGroup, i int) error {
	plain, err := n.launch(i, s.failed, "")
	if err != nil {
		return err
	}
	if s.plain, err = s.onGPUAs(c, n, i, plain); err != nil || n.kind != FusedStep {
		return err
	}
	measured, err := n.launch(i, s.failed, withNorms)
	if err != nil {
		return err
	}
	if err := s.addNorms(c, n.real, int64(measured.grid[0])*int64(measured.grid[1])*int64(measured.grid[2])); err != nil {
		return err
	}
	for to, r := range s.norms {
		measured.arg.norms[to] = slotsOf(r.result)
	}
	s.measured, err = s.onGPUAs(c, n, i, measured)
	return err
}

// onGPUAs makes one launch of a rank.
func (s *Stepper) onGPUAs(c *Compiler, n *stepGroup, i int, k *stepLaunch) (made stepKernel, err error) {
	rank := n.ranks[i]
	found, err := c.load(rank.Device, c.injectFault(rank.Device, stepProgram(n.stencil, n.real)), k.kernel)
	if err != nil {
		return made, err
	}
	spec := streams.KernelSpec{
		Name: string(n.kind), Work: streams.Sweep, Uses: []streams.Span{n.flags.Memory(i).All(), s.failed.All()},
		Function: found[0], Grid: k.grid, Block: [3]int{k.block[0], k.block[1], 1},
		Argument: k.argument(maxStores(n.stencil)), Cooperative: n.kind != FusedStep,
	}
	for f, a := range rank.Fields {
		spec.Uses = append(spec.Uses, a.Data)
		if s.norms[f] != nil {
			spec.Uses = append(spec.Uses, s.norms[f].result.All())
		}
	}
	for _, st := range rank.Stores {
		for _, a := range n.ranks[st.To].Fields {
			spec.Reaches = append(spec.Reaches, a.Data)
		}
	}
	for at := range n.flags.Neighbours(i) {
		_, its := n.flags.Pair(i, at, 0)
		spec.Reaches = append(spec.Reaches, its)
	}
	return s.stepKernel(spec, unsafe.Offsetof(k.arg.span))
}

// stepKernel makes a launch whose argument has its span at an offset.
func (s *Stepper) stepKernel(spec streams.KernelSpec, span uintptr) (k stepKernel, err error) {
	if k.kernel, err = newKernel(s.device, spec); err != nil {
		return k, err
	}
	s.resources.Add(k.kernel)
	k.span = &streams.View[stepSpan](k.kernel.Argument()[span:][:unsafe.Sizeof(stepSpan{})])[0]
	return k, nil
}

// addNorms makes the totals of norms that so many blocks find.
func (s *Stepper) addNorms(c *Compiler, real Real, blocks int64) error {
	sums, err := c.load(s.device, normsProgram(real), "norms_sums", "norms_total")
	if err != nil {
		return err
	}
	for to := range s.norms {
		r, err := newNormReduction(s.device, 1+sumBlocks+blocks)
		if err != nil {
			return err
		}
		s.resources.Add(r)
		if err := r.launchAll(s.device, "norms", totalOfSlots([2]streams.Function(sums), r.result, blocks)); err != nil {
			return err
		}
		s.norms[to] = r
	}
	return nil
}

// launch returns what a rank launches, variant "" or withNorms; failed is where it says that
// it waited in vain.
func (n *stepGroup) launch(i int, failed *streams.Memory, variant string) (*stepLaunch, error) {
	rank := n.ranks[i]
	k := &stepLaunch{arg: stepArgs{
		strides: stridesOf(rank.Fields[0].Layout),
		limit:   n.limit.Nanoseconds(), failed: failed.Address(), arrived: n.flags.OwnLine(i, 0).Address(),
	}}
	for f, a := range rank.Fields {
		k.arg.field[f] = a.pointAddress(a.Layout.Owned.Lo)
	}
	n.addShells(&k.arg, i)
	n.addTargets(k, i)
	n.addNeighbours(k, i)
	return k, n.addInterior(k, i, variant)
}

// pointAddress returns where a GPU finds a point, which may be a ghost.
func (a Array) pointAddress(p domain.Vec) uint64 {
	return a.address() + uint64(a.Layout.Offset(p)*int64(a.Layout.ElementSize))
}

func narrow(v domain.Vec) [3]int32 { return [3]int32{int32(v[0]), int32(v[1]), int32(v[2])} }

// fromOwned returns a box counted from the first point that a rank owns.
func (n *stepGroup) fromOwned(i int, b domain.Box) domain.Box {
	lo := n.ranks[i].Fields[0].Layout.Owned.Lo
	return domain.Box{Lo: b.Lo.Sub(lo), Hi: b.Hi.Sub(lo)}
}

func (n *stepGroup) addShells(arg *stepArgs, i int) {
	bits := func(all []int) (b uint64) {
		for _, k := range all {
			b |= 1 << k
		}
		return b
	}
	slabs := n.parts[i].slabs
	arg.slabs = int64(len(slabs))
	for k, slab := range slabs {
		box := n.fromOwned(i, slab.box)
		arg.slab[k] = slabArgs{narrow(box.Lo), narrow(box.Size()), arg.slabBlocks, slab.blocks, bits(slab.stores), bits(slab.neighbours)}
		arg.slabBlocks += slab.blocks
	}
}

func (n *stepGroup) addTargets(k *stepLaunch, i int) {
	own := n.ranks[i].Fields[0].Layout
	for _, st := range n.ranks[i].Stores {
		send := n.fromOwned(i, st.Send)
		t := targetArgs{lo: narrow(send.Lo), hi: narrow(send.Hi)}
		first := st.Ghost.Lo.Sub(send.Lo) // where the first owned point would lie
		for f, a := range n.ranks[st.To].Fields {
			t.ghost[f], t.strides = a.pointAddress(first), stridesOf(a.Layout)
		}
		for j, o := range st.Odd {
			t.odd[j] = own.Offset(own.Owned.Lo.Add(o)) - own.Offset(own.Owned.Lo)
		}
		k.targets = append(k.targets, t)
	}
}

func (n *stepGroup) addNeighbours(k *stepLaunch, i int) {
	neighbours := n.flags.Neighbours(i)
	k.arg.degree = int64(len(neighbours))
	for at, other := range neighbours {
		k.neighbours = append(k.neighbours, n.flags.Counts(i, at, 0, n.expected(other, i)))
	}
}

// addInterior chooses the kernel, its grid, and how the interior is cut. It returns an error
// if that is too large for a grid.
func (n *stepGroup) addInterior(k *stepLaunch, i int, variant string) error {
	rank := n.ranks[i]
	if !rank.Interior.Empty() {
		l := rank.Fields[0].Layout
		k.arg.interior = partOf(l, rank.Interior, groupBytes/n.real.Size(), domain.RowAlignment/n.real.Size())
		k.arg.interior.first -= l.Offset(l.Owned.Lo)
	}
	if k.block = n.threads(i); n.kind == FusedStep {
		return k.fused(formOf(n.stencil, n.real), rank, variant)
	}
	k.resident(n.stencil, formOf(n.stencil, n.real).rowsPerThread, int64(rank.Device.Cores))
	return nil
}

// fused has the interior swept in the shape of the rank's sweeps, by slabs of blocks. Those of
// the boundary slabs fill some slabs of blocks before.
func (k *stepLaunch) fused(f largeForm, rank StepRank, variant string) error {
	shape, ok := rank.shape(f), true
	if variant == withNorms && !f.streams { // the blocks of slabs are those of all steps
		shape.Layers = f.measured(shape).Layers
	}
	k.grid, k.arg.layers = [3]int{int(max(1, k.arg.slabBlocks)), 1, 0}, int64(shape.Layers)
	if size := rank.Interior.Size(); !rank.Interior.Empty() {
		if f.dims == 3 {
			shape.Layers = max(shape.Layers, ceil(size[2], maxBlocks/2))
		}
		var layers int
		k.grid, layers, ok = f.grid(shape, k.arg.interior.groups, size)
		k.arg.layers = int64(layers)
	}
	k.kernel = "fused_" + f.kernel(int(k.arg.layers)) + variant
	if f.dims == 2 {
		k.grid[2] *= k.grid[1] // bands of rows
		k.grid[1] = 1
	}
	k.grid[0] = max(k.grid[0], ceil(int(k.arg.slabBlocks), k.grid[1]*maxBlocks/2))
	slabs := ceil(int(k.arg.slabBlocks), k.grid[0]*k.grid[1])
	k.arg.boundaryLayers, k.arg.every = int64(slabs), 1
	if slabs > 1 {
		k.arg.every = int64(min(maxEvery, 1+k.grid[2]/(slabs-1)))
	}
	if k.grid[2] += slabs; f.dims == 2 {
		high := ceil(k.grid[2], maxBlocks)
		k.grid[1], k.grid[2] = ceil(k.grid[2], high), high
	}
	if !ok || k.grid[1] > maxBlocks || k.grid[2] > maxBlocks {
		return fmt.Errorf("kernels: a step of %v points is too large for one launch", rank.Interior.Size())
	}
	return nil
}

// maxEvery is how many slabs there are, at most, from one of slabs to the next. Each has
// some hundred blocks, half of what a large GPU holds.
const maxEvery = 3

// resident has as many blocks as multiprocessors, which go round the tiles of the interior.
func (k *stepLaunch) resident(s stencil.Stencil, rows int, cores int64) {
	blocks := max(cores, k.arg.slabBlocks+1)
	k.kernel, k.grid = "resident", [3]int{int(blocks), 1, 1}
	best, layers, inner := int64(1<<62), int64(1), blocks-k.arg.slabBlocks
	for k.arg.layers = 1; k.arg.layers <= 16; k.arg.layers++ {
		k.cut(s.Dims, rows)
		rounds := (k.arg.tiles[0]*k.arg.tiles[1]*k.arg.tiles[2] + inner - 1) / inner
		// Two layers are loaded at once, where there are registers for them.
		if cost := rounds * ((k.arg.layers+1)/2 + int64(s.AxisRadius(s.Dims-1))); cost < best {
			best, layers = cost, k.arg.layers
		}
	}
	k.arg.layers = layers
	k.cut(s.Dims, rows)
}

// cut counts the tiles of an interior: of groups along x and rows as a block has threads,
// and of layers as a thread streams in z through, which in two dimensions are rows too.
func (k *stepLaunch) cut(dims, rows int) {
	in, x, y := k.arg.interior, int64(k.block[0]), int64(k.block[1])
	k.arg.tiles = [3]int64{ceil(in.groups, x), ceil(in.ny, y*k.arg.layers), 1}
	if dims == 3 {
		k.arg.tiles[1], k.arg.tiles[2] = ceil(in.ny, y*int64(rows)), ceil(in.nz, k.arg.layers)
	}
}
