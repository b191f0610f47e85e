package kernels

import (
	"slices"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// stepArgs is struct Step of step.cu.
type stepArgs struct {
	field                                [2]uint64
	strides                              strides
	span                                 stepSpan
	shellBlocks, shells, targets, degree int64
	shell                                [maxFaces]shellArgs
	target                               [maxFaces]targetArgs
	neighbour                            [maxFaces]stepNeighbour
	lo, hi                               [3]int64
	march                                int64
	tiles                                [3]int64
	limit                                int64
	failed, arrived                      uint64
}

// shellArgs, targetArgs and stepNeighbour are structs Shell, Target and Neighbour of
// step.cu.
type (
	shellArgs struct {
		lo, size            [3]int64
		first, blocks       int64
		targets, neighbours uint64
	}
	targetArgs struct {
		lo, hi  [3]int64
		ghost   [2]uint64
		strides strides
	}
	stepNeighbour struct{ myCount, itsCount, expected uint64 }
)

// onGPU makes the launch of an end on a GPU.
func (s *Stepper) onGPU(c *Compiler, n *stepNet, i int) error {
	end := n.ends[i]
	found, err := c.load(end.Device, c.disturbed(end.Device, stepProgram(n.stencil, n.real)), "fused", "resident_wide", "resident_narrow")
	if err != nil {
		return err
	}
	spec := streams.KernelSpec{Name: string(n.kind), Work: streams.Sweep, Uses: []streams.Span{n.counts[i].All(), s.failed.All()}}
	arg := &stepArgs{
		strides: stridesOf(end.Fields[0].Layout),
		limit:   n.limit.Nanoseconds(), failed: s.failed.Address(), arrived: n.line(i, len(s.others)).Address(),
	}
	for f, a := range end.Fields {
		arg.field[f] = a.pointAddress(a.Layout.Owned.Lo)
		spec.Uses = append(spec.Uses, a.Data)
	}
	n.addShells(arg, i)
	n.addTargets(arg, i, &spec)
	n.addNeighbours(arg, i, &spec)
	g := n.geometry(i, arg.shellBlocks)
	arg.lo, arg.hi, arg.march, arg.tiles = wide(g.box.Lo), wide(g.box.Hi), g.march, g.tiles
	spec.Function = found[slices.Index([]string{"fused", "wide", "narrow"}, g.kernel)]
	spec.Grid, spec.Block = [3]int{int(g.blocks), 1, 1}, [3]int{g.threads, 1, 1}
	spec.Argument = argument(arg)
	if s.kernel, err = newKernel(end.Device, spec); err != nil {
		return err
	}
	s.Add(s.kernel)
	s.span = &streams.View[stepSpan](s.kernel.Argument()[unsafe.Offsetof(arg.span):][:unsafe.Sizeof(arg.span)])[0]
	return nil
}

// pointAddress returns where a GPU finds a point, which may be a ghost.
func (a Array) pointAddress(p domain.Vec) uint64 {
	return a.address() + uint64(a.Layout.Offset(p)*int64(a.Layout.ElementSize))
}

func wide(v domain.Vec) [3]int64 { return [3]int64{int64(v[0]), int64(v[1]), int64(v[2])} }

// fromOwned returns a box counted from the first point that an end owns.
func (n *stepNet) fromOwned(i int, b domain.Box) domain.Box {
	lo := n.ends[i].Fields[0].Layout.Owned.Lo
	return domain.Box{Lo: b.Lo.Sub(lo), Hi: b.Hi.Sub(lo)}
}

func (n *stepNet) addShells(arg *stepArgs, i int) {
	bits := func(all []int) (b uint64) {
		for _, k := range all {
			b |= 1 << k
		}
		return b
	}
	shells := n.parts[i].shells
	arg.shells = int64(len(shells))
	for k, sh := range shells {
		box := n.fromOwned(i, sh.box)
		arg.shell[k] = shellArgs{wide(box.Lo), wide(box.Size()), arg.shellBlocks, sh.blocks, bits(sh.stores), bits(sh.neighbours)}
		arg.shellBlocks += sh.blocks
	}
}

func (n *stepNet) addTargets(arg *stepArgs, i int, spec *streams.KernelSpec) {
	arg.targets = int64(len(n.ends[i].Stores))
	for k, st := range n.ends[i].Stores {
		send := n.fromOwned(i, st.Send)
		t := targetArgs{lo: wide(send.Lo), hi: wide(send.Hi)}
		first := st.Ghost.Lo.Sub(send.Lo) // where the first owned point would lie
		for f, a := range n.ends[st.To].Fields {
			t.ghost[f], t.strides = a.pointAddress(first), stridesOf(a.Layout)
			spec.Reaches = append(spec.Reaches, a.Data)
		}
		arg.target[k] = t
	}
}

func (n *stepNet) addNeighbours(arg *stepArgs, i int, spec *streams.KernelSpec) {
	neighbours := n.parts[i].neighbours
	arg.degree = int64(len(neighbours))
	for at, k := range neighbours {
		its := n.line(k, n.place(i, k))
		arg.neighbour[at] = stepNeighbour{n.line(i, at).Address(), its.Address(), uint64(n.expected(k, i))}
		spec.Reaches = append(spec.Reaches, its)
	}
}

// stepGeometry is how a launch divides the interior into tiles.
type stepGeometry struct {
	kernel  string // fused, wide or narrow
	box     domain.Box
	march   int64
	tiles   [3]int64
	blocks  int64 // thread blocks, those of shells too
	threads int   // of each
}

// geometry cuts the interior of an end into tiles. A fused step has a block for each, of
// 4 planes, or rows in 2-D. Resident steps have as many blocks as multiprocessors: the
// tiles are as deep as it takes to go round soonest; where a point a thread is enough,
// packs are of one.
func (n *stepNet) geometry(i int, shellBlocks int64) stepGeometry {
	end := n.ends[i]
	g := stepGeometry{kernel: "fused", box: n.fromOwned(i, end.Interior), march: 4, threads: blockSize}
	pack := int64(16 / n.real.Size())
	if n.kind == FusedStep {
		g.cut(n.stencil.Dims, pack)
		g.blocks = max(1, shellBlocks+g.tiles[0]*g.tiles[1]*g.tiles[2])
		return g
	}
	g.threads, g.blocks = residentThreads, max(int64(end.Device.Cores), shellBlocks+1)
	inner := g.blocks - shellBlocks
	g.kernel, g.march = "narrow", 1
	if g.cut(n.stencil.Dims, 1); g.tiles[0]*g.tiles[1]*g.tiles[2] <= inner {
		return g
	}
	g.kernel = "wide"
	best, march := int64(1<<62), int64(1)
	for g.march = 1; g.march <= 16; g.march++ {
		g.cut(n.stencil.Dims, pack)
		rounds := (g.tiles[0]*g.tiles[1]*g.tiles[2] + inner - 1) / inner
		if cost := rounds * ((g.march+1)/2 + 1); cost < best { // two planes are loaded at once
			best, march = cost, g.march
		}
	}
	g.march = march
	g.cut(n.stencil.Dims, pack)
	return g
}

// cut counts the tiles of packs of so many points.
func (g *stepGeometry) cut(dims int, pack int64) {
	if g.box.Empty() {
		g.tiles = [3]int64{}
		return
	}
	up := func(a, b int64) int64 { return (a + b - 1) / b }
	size, warps := wide(g.box.Size()), int64(g.threads/32)
	first := int64(g.box.Lo[0]) / pack * pack
	g.tiles[0] = up(int64(g.box.Hi[0])-first, 32*pack)
	if dims == 3 {
		g.tiles[1], g.tiles[2] = up(size[1], warps), up(size[2], g.march)
	} else {
		g.tiles[1], g.tiles[2] = up(size[1], warps*g.march), 1
	}
}
