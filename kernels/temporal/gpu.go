package temporal

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// gpu is the passes of a stencil on a GPU.
type gpu struct {
	compiler   *kernels.Compiler
	device     *streams.Device
	stencil    stencil.Stencil
	options    Options
	candidates []shape // those to be tried, of each depth first what is taken untried
	shapes     []shape // one for each depth that there are passes of
	loaded     map[string]streams.Function
	sweep      time.Duration // that passes were timed beside, 0 for none
}

func newGPU(c *kernels.Compiler, d *streams.Device, s stencil.Stencil, real kernels.Real, l domain.Layout, o Options) (*gpu, error) {
	g := &gpu{compiler: c, device: d, stencil: s, options: o, loaded: map[string]streams.Function{}}
	g.candidates = slices.DeleteFunc(shapesWith(s, real, l, d.Arch, int(d.Shared), o), func(one shape) bool { return !o.wants(one.depth) })
	if o.Norms > 0 {
		g.candidates = firstOfEach(g.candidates)
	}
	if len(g.candidates) == 0 {
		return nil, fmt.Errorf("temporal: %w: no kernel has room for the stencil", ErrImpossible)
	}
	for _, s := range g.candidates {
		if !slices.ContainsFunc(g.shapes, func(t shape) bool { return t.depth == s.depth }) {
			g.shapes = append(g.shapes, s)
		}
	}
	return g, nil
}

// firstOfEach leaves the first of the shapes of each depth and kernel: those with norms are compiled beside others, which takes as long.
func firstOfEach(all []shape) (firsts []shape) {
	for _, s := range all {
		if !slices.ContainsFunc(firsts, func(t shape) bool { return t.depth == s.depth && t.name == s.name }) {
			firsts = append(firsts, s)
		}
	}
	return firsts
}

// costs returns those of all depths.
func (g *gpu) costs() []float64 {
	deepest := 0
	for _, s := range g.shapes {
		deepest = max(deepest, s.depth)
	}
	cost := noPasses(deepest)
	for _, s := range g.shapes {
		cost[s.depth] = s.cost
	}
	return cost
}

// function compiles the kernel of a shape.
func (g *gpu) function(s shape) (streams.Function, error) {
	name := s.program.String()
	if f, ok := g.loaded[name]; ok {
		return f, nil
	}
	all, err := g.compiler.Load(g.device, s.program, s.name)
	if err != nil {
		return nil, err
	}
	g.loaded[name] = all[0]
	return all[0], nil
}

// of returns the shape of passes of a depth over a box with sides: the one that was chosen, or else another that is possible there.
func (g *gpu) of(depth int, n domain.Vec, sides Sides) shape {
	for _, s := range append(slices.Clone(g.shapes), g.candidates...) {
		if s.depth == depth && s.fits(n, sides) {
			return s
		}
	}
	panic("temporal: a depth without a kernel for all boxes")
}

// maxAxis is how many points a box of a pass may have along an axis.
const maxAxis = math.MaxInt32 / 4

// checkLength returns ErrImpossible where a box is too long for passes.
func checkLength(size domain.Vec) error {
	for a, n := range size {
		if n > maxAxis {
			return fmt.Errorf("temporal: %w: %d points along axis %d; %d are possible", ErrImpossible, n, a, maxAxis)
		}
	}
	return nil
}

// prepare sets what a launch of a pass has.
func (g *gpu) prepare(spec *streams.KernelSpec, s shape, from, to kernels.Array, box domain.Box, sides Sides, of More) error {
	if err := checkLength(box.Size()); err != nil {
		return err
	}
	if !s.fits(box.Size(), sides) {
		return fmt.Errorf("temporal: %w: a box of %v points between walls", ErrImpossible, box.Size())
	}
	args := passArgs{From: address(from, box.Lo), To: address(to, box.Lo)}
	shift := args.From / uint64(from.Layout.ElementSize) % uint64(s.vector)
	if s.vector > 1 && (args.From-args.To)%16 != 0 {
		return fmt.Errorf("temporal: a pass between arrays that are not aligned alike")
	}
	grid, chunk, err := s.grid(box.Size(), int(shift), g.device.Cores-of.Spare)
	if err != nil {
		return err
	}
	args.Pitch, args.Plane = from.Layout.Pitch, from.Layout.Plane
	args.Chunk, args.Weight, args.Start = int32(chunk), int32(s.weight), int32(s.start)
	for a, n := range box.Size() {
		args.N[a] = int32(n)
	}
	for i, side := range sides.simple(g.stencil) {
		args.Sides[i] = int32(side)
	}
	if len(of.Ghosts) > 0 {
		s.program = withGhostStores(s.program)
	}
	if spec.Function, err = g.function(s); err != nil {
		return err
	}
	spec.Grid, spec.Block, spec.Shared = grid, [3]int{s.threads, 1, 1}, s.shared
	switch {
	case len(of.Ghosts) > 0:
		spec.Argument, err = ghostArgs(args, to, box, g.stencil.Dims, of.Ghosts)
	case g.options.plain():
		spec.Argument = launch.Argument(&args)
	default:
		spec.Argument = launch.Argument(moreArgsOf(args, from.Layout.ElementSize, box, &of))
	}
	return err
}

// moreArgsOf adds what kernels of passes with options are given.
func moreArgsOf(args passArgs, element int, box domain.Box, of *More) *morePassArgs {
	more := &morePassArgs{passArgs: args}
	for a := range box.Lo {
		more.Lo[a], more.Hi[a] = int32(of.Box.Lo[a]-box.Lo[a]), int32(of.Box.Hi[a]-box.Lo[a])
	}
	for i, at := range of.Parts {
		more.Norms[i] = at.Address()
	}
	for i := range of.Walls {
		more.Walls[i] = of.Walls[i].args(i, element, box)
	}
	return more
}
