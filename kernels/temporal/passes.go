// Package temporal runs several steps of a linear stencil in one pass over memory of a GPU (temporal blocking),
// with physical faces and ghosts of neighbors, bitwise identical to single sweeps.
//
// A pass reads level 0 of a field from one array and stores level depth to another: memory is read and written
// once per pass, not once per step. The levels in between are in registers and shared memory. Tiles overlap:
// points of a level that two tiles need are computed by both, and no tile waits for another.
package temporal

import (
	"errors"
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

// Passes prepares passes of one stencil for one GPU. It may be used by one goroutine at a time, and its launches
// by one stream.
type Passes struct {
	compiler   *kernels.Compiler
	device     *streams.Device
	stencil    stencil.Stencil
	real       domain.Element
	layout     domain.Layout
	options    Options
	cost       []float64
	candidates []shape // to be measured; without tuning the first of each depth is used
	shapes     []shape // one per depth
	loaded     map[string]streams.Function
	sweep      time.Duration // of the sweep that Tune compared passes with, or 0
}

// maxRadius is the largest radius of a stencil along an axis.
const maxRadius = 4

// New returns the passes of a stencil between arrays of a layout. The error is ErrImpossible if there are none: on
// CPU devices, and if the stencil does not fit in any kernel.
func New(
	c *kernels.Compiler, d *streams.Device, s stencil.Stencil, real domain.Element, l domain.Layout, o Options,
) (*Passes, error) {
	if o.Norms < 0 || o.Norms > MaxNorms {
		return nil, fmt.Errorf("temporal: steps with norms: must be between 0 and %d, got %d", MaxNorms, o.Norms)
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	if !real.IsReal() {
		return nil, fmt.Errorf("temporal: element type: must be float32 or float64, got %q", real)
	}
	for a := range s.Dims {
		if r := s.AxisRadius(a); r < 1 || r > maxRadius {
			return nil, fmt.Errorf("temporal: %w: stencil radius must be between 1 and %d along axis %d, got %d",
				ErrImpossible, maxRadius, a, r)
		}
	}
	if d.GoKernels {
		return nil, fmt.Errorf("temporal: %w: device must be a GPU, got %v", ErrImpossible, d)
	}
	p := &Passes{compiler: c, device: d, stencil: s, real: real, layout: l, options: o}
	p.loaded = map[string]streams.Function{}
	p.candidates = slices.DeleteFunc(shapesWith(s, real, l, d.Arch, int(d.Shared), o), func(one shape) bool {
		return !o.wants(one.depth)
	})
	if o.Norms > 0 {
		p.candidates = firstOfEach(p.candidates)
	}
	if len(p.candidates) == 0 {
		return nil, fmt.Errorf("temporal: %w: the stencil does not fit in any kernel", ErrImpossible)
	}
	for _, s := range p.candidates {
		if !slices.ContainsFunc(p.shapes, func(t shape) bool { return t.depth == s.depth }) {
			p.shapes = append(p.shapes, s)
		}
	}
	p.setCosts()
	return p, nil
}

// firstOfEach keeps the first shape of each depth and kernel, since each shape with norms takes as long to compile
// as another.
func firstOfEach(all []shape) (firsts []shape) {
	for _, s := range all {
		if !slices.ContainsFunc(firsts, func(t shape) bool { return t.depth == s.depth && t.name == s.name }) {
			firsts = append(firsts, s)
		}
	}
	return firsts
}

// setCosts computes the costs of all depths from the shapes.
func (p *Passes) setCosts() {
	deepest := 1
	for _, s := range p.shapes {
		deepest = max(deepest, s.depth)
	}
	p.cost = make([]float64, deepest+1)
	for d := 2; d <= deepest; d++ {
		p.cost[d] = math.Inf(1)
	}
	p.cost[1] = 1
	for _, s := range p.shapes {
		p.cost[s.depth] = s.cost
	}
}

// Costs returns the duration of a pass by its depth, for Cut, in units of a sweep, which is depth 1: infinite if
// there is no such pass.
func (p *Passes) Costs() []float64 { return p.cost }

// SweepTime returns the measured time of the sweep passed to Tune, or 0 if unknown.
func (p *Passes) SweepTime() time.Duration { return p.sweep }

// Pass prepares a launch that runs depth steps, at least two: it reads level 0 from one array, and stores the last
// level of the points of a box to another. The box ends at the grid on sides that are not Open. Ghosts in from
// behind these must be set as the sides require. parts is the number of parts of norms, at most Parts.
func (p *Passes) Pass(
	name string, from, to kernels.Array, box domain.Box, sides Sides, depth int, of More,
) (k *streams.Kernel, parts int64, err error) {
	if err := errors.Join(
		p.check(from, to, box, sides, depth), p.options.check(of, box, depth),
		of.Faces.check(p.stencil, p.real, p.options.Moving, sides, box, depth),
	); err != nil {
		return nil, 0, err
	}
	for i := range of.Ghosts {
		if err := of.Ghosts[i].check(to, box, p.stencil.Dims); err != nil {
			return nil, 0, err
		}
	}
	if len(of.Ghosts) > 0 && !p.StoresGhosts(depth, box, sides) {
		return nil, 0, fmt.Errorf("temporal: %w: passes of %d steps cannot store ghosts", ErrImpossible, depth)
	}
	spec, err := p.spec(name, p.of(depth, box.Size(), sides), from, to, box, sides, of)
	if err != nil {
		return nil, 0, err
	}
	k, err = p.device.NewKernel(spec)
	return k, blocksOf(spec.Grid), err
}

// StoresGhosts reports whether passes of a depth over a box support More.Ghosts.
func (p *Passes) StoresGhosts(depth int, box domain.Box, sides Sides) bool {
	return p.options.plain() && p.finite(depth) && p.of(depth, box.Size(), sides).storesGhosts()
}

// Parts returns the largest number of parts of the norms of a pass over the box, before and after Tune: 0 if no
// pass is possible.
func (p *Passes) Parts(box domain.Box, sides Sides) (most int64) {
	for _, s := range p.candidates {
		if !s.fits(box.Size(), sides) {
			continue
		}
		for shift := range max(1, s.vector) {
			if grid, _, err := s.grid(box.Size(), shift, p.device.Cores); err == nil {
				most = max(most, blocksOf(grid))
			}
		}
	}
	return most
}

// check returns an error unless the pass is possible.
func (p *Passes) check(from, to kernels.Array, box domain.Box, sides Sides, depth int) error {
	if !p.finite(depth) {
		return fmt.Errorf("temporal: depth: must have finite Costs, got %d steps", depth)
	}
	if err := sides.check(p.stencil); err != nil {
		return err
	}
	if p.layout != from.Layout || p.layout.Pitch != to.Layout.Pitch || p.layout.Plane != to.Layout.Plane {
		return errors.New("temporal: arrays: must have the layout passed to New")
	}
	if box.Empty() {
		return fmt.Errorf("temporal: box must not be empty, got %v", box)
	}
	for a := range p.stencil.Dims {
		r, n := p.stencil.AxisRadius(a), box.Size()[a]
		if (sides.low(a) == Mirror || sides.high(a) == Mirror) && n < r {
			return fmt.Errorf("temporal: box: must have at least the %d mirrored points along axis %d, got %d", r, a, n)
		}
	}
	for _, array := range []kernels.Array{from, to} {
		if size := array.Layout.ElementSize; size != p.real.Size() {
			return fmt.Errorf("temporal: element size of %d bytes: must be that of %s", size, p.real)
		}
	}
	if err := from.Holds(p.read(box, sides, depth)); err != nil {
		return fmt.Errorf("temporal: source of a pass of %d steps: %w", depth, err)
	}
	if err := to.Holds(box); err != nil {
		return fmt.Errorf("temporal: destination of a pass: %w", err)
	}
	if a, b := from.Data, to.Data; a.Memory == b.Memory && a.Offset < b.Offset+b.Length &&
		b.Offset < a.Offset+a.Length {
		return errors.New("temporal: source and destination of a pass must not overlap")
	}
	return nil
}

// read returns the points that a pass over a box reads: on open sides the reach of all its steps.
func (p *Passes) read(box domain.Box, sides Sides, depth int) domain.Box {
	for a := range p.stencil.Dims {
		r := p.stencil.AxisRadius(a)
		minus, plus := r, r
		if sides.low(a) == Open {
			minus *= depth
		}
		if sides.high(a) == Open {
			plus *= depth
		}
		box.Lo[a], box.Hi[a] = box.Lo[a]-minus, box.Hi[a]+plus
	}
	return box
}

// finite reports whether there are passes of a depth.
func (p *Passes) finite(depth int) bool {
	return depth >= 2 && depth < len(p.cost) && !math.IsInf(p.cost[depth], 1)
}

// of returns the shape of passes of a depth over a box with sides: the selected one, or another that supports
// them.
func (p *Passes) of(depth int, n domain.Vec, sides Sides) shape {
	for _, s := range append(slices.Clone(p.shapes), p.candidates...) {
		if s.depth == depth && s.fits(n, sides) {
			return s
		}
	}
	panic("temporal: a depth must have a kernel for all boxes")
}

// function compiles the kernel of a shape.
func (p *Passes) function(s shape) (streams.Function, error) {
	name := s.program.String()
	if f, ok := p.loaded[name]; ok {
		return f, nil
	}
	all, err := p.compiler.Load(p.device, s.program, s.name)
	if err != nil {
		return nil, err
	}
	p.loaded[name] = all[0]
	return all[0], nil
}

// maxAxis is the largest number of points of a box along an axis.
const maxAxis = math.MaxInt32 / 4

// checkLength returns ErrImpossible if a box is too long for passes.
func checkLength(size domain.Vec) error {
	for a, n := range size {
		if n > maxAxis {
			return fmt.Errorf(
				"temporal: %w: must have at most %d points along axis %d, got %d", ErrImpossible, maxAxis, a, n,
			)
		}
	}
	return nil
}

// spec returns the launch of a pass by the kernel of a shape. The kernel waits for earlier launches itself, see
// grid_dependency_wait in device.cuh.
func (p *Passes) spec(
	name string, s shape, from, to kernels.Array, box domain.Box, sides Sides, of More,
) (spec streams.KernelSpec, err error) {
	if err := checkLength(box.Size()); err != nil {
		return spec, err
	}
	if !s.fits(box.Size(), sides) {
		return spec, fmt.Errorf("temporal: %w: a box of %v points is too small", ErrImpossible, box.Size())
	}
	args := passArgs{From: address(from, box.Lo), To: address(to, box.Lo)}
	shift := args.From / uint64(from.Layout.ElementSize) % uint64(s.vector)
	if s.vector > 1 && (args.From-args.To)%16 != 0 {
		return spec, errors.New("temporal: arrays must have the same alignment")
	}
	grid, chunk, err := s.grid(box.Size(), int(shift), p.device.Cores-of.ReservedSMs)
	if err != nil {
		return spec, err
	}
	args.Pitch, args.Plane = from.Layout.Pitch, from.Layout.Plane
	args.Chunk, args.Weight, args.Start = int32(chunk), int32(s.weight), int32(s.start)
	for a, n := range box.Size() {
		args.N[a] = int32(n)
	}
	for i, side := range sides.simple(p.stencil) {
		args.Sides[i] = int32(side)
	}
	if len(of.Ghosts) > 0 {
		s.program = withGhostStores(s.program)
	}
	spec = streams.KernelSpec{
		Name: name, Work: streams.Sweep, Early: true, Grid: grid, Block: [3]int{s.threads, 1, 1}, Shared: s.shared,
		Uses: slices.Concat([]streams.Span{from.Data, to.Data}, of.Parts, of.Faces.spans()),
	}
	for _, g := range of.Ghosts {
		spec.Reaches = append(spec.Reaches, g.To.Data)
	}
	if spec.Function, err = p.function(s); err != nil {
		return spec, err
	}
	switch {
	case len(of.Ghosts) > 0:
		spec.Argument, err = ghostArgs(args, to, box, p.stencil.Dims, of.Ghosts)
	case p.options.plain():
		spec.Argument = launch.Argument(&args)
	default:
		spec.Argument = launch.Argument(moreArgs(args, from.Layout.ElementSize, box, &of))
	}
	return spec, err
}
