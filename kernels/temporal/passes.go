package temporal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Passes makes passes of one stencil ready for one device. It may be used by one goroutine at a time, and what it made by one stream.
type Passes struct {
	device  *streams.Device
	stencil stencil.Stencil
	real    kernels.Real
	layout  domain.Layout
	options Options
	cost    []float64
	gpu     *gpu
	room    struct { // of passes on a host device
		float32 []float32
		float64 []float64
	}
}

// New returns the passes of a stencil between arrays of a layout. The error is ErrImpossible where there are none.
func New(c *kernels.Compiler, d *streams.Device, s stencil.Stencil, real kernels.Real, l domain.Layout, o Options) (*Passes, error) {
	if o.Norms < 0 || o.Norms > MostNorms {
		return nil, fmt.Errorf("temporal: norms of the last %d steps of a pass; %d are possible", o.Norms, MostNorms)
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	if real.Size() == 0 {
		return nil, fmt.Errorf("temporal: a stencil of type %q", real)
	}
	for a := range s.Dims {
		if r := s.AxisRadius(a); r < 1 || r > maxRadius {
			return nil, fmt.Errorf("temporal: %w: the stencil reaches %d points along axis %d; 1 to %d are possible", ErrImpossible, r, a, maxRadius)
		}
	}
	p := &Passes{device: d, stencil: s, real: real, layout: l, options: o}
	if d.GoKernels {
		p.cost = hostCosts(s, o)
		return p, nil
	}
	var err error
	if p.gpu, err = newGPU(c, d, s, real, l, o); err != nil {
		return nil, err
	}
	p.cost = p.gpu.costs()
	return p, nil
}

// hostCosts are those of a core: stars leave memory waiting, other stencils nearly none of it.
func hostCosts(s stencil.Stencil, o Options) []float64 {
	more := 0.97
	if _, ok := s.AsStar(); ok {
		more = 0.5
	}
	cost := noPasses(8)
	for _, d := range []int{2, 3, 4, 6, 8} {
		if o.wants(d) {
			cost[d] = 1 + more*float64(d-1)
		}
	}
	return cost
}

// Costs returns the time of a pass by its depth, over that of a sweep, which is depth 1: infinite where there is none. It is for Cut.
func (p *Passes) Costs() []float64 { return p.cost }

// SweepTime returns how long the sweep takes that Tune was given, 0 where that is not known.
func (p *Passes) SweepTime() time.Duration {
	if p.gpu == nil {
		return 0
	}
	return p.gpu.sweep
}

// Pass makes a launch ready that makes so many steps, two or more: it reads level 0 from an array, and stores the last level
// of the points of a box to another one. The box ends where the grid does on sides that are not Open. Ghosts behind these
// hold in from what the sides say. parts is how many parts norms have, no more than Parts.
func (p *Passes) Pass(name string, from, to kernels.Array, box domain.Box, sides Sides, depth int, of More) (k *streams.Kernel, parts int64, err error) {
	if err := errors.Join(p.check(from, to, box, sides, depth), p.options.check(of, box, depth), of.Walls.check(p.stencil, p.real, p.options.Moving, sides, box, depth)); err != nil {
		return nil, 0, err
	}
	for i := range of.Ghosts {
		if err := of.Ghosts[i].check(to, box, p.stencil.Dims); err != nil {
			return nil, 0, err
		}
	}
	if len(of.Ghosts) > 0 && !p.StoresGhosts(depth, box, sides) {
		return nil, 0, fmt.Errorf("temporal: %w: passes of %d steps store no ghosts", ErrImpossible, depth)
	}
	spec := p.spec(name, from, to, of)
	if p.device.GoKernels {
		if p.real == kernels.Float32 {
			spec.Run = onHost(p, &p.room.float32, from, to, box, sides, depth, of)
		} else {
			spec.Run = onHost(p, &p.room.float64, from, to, box, sides, depth, of)
		}
		k, err = p.device.NewKernel(spec)
		return k, 1, err
	}
	if err := p.gpu.prepare(&spec, p.gpu.of(depth, box.Size(), sides), from, to, box, sides, of); err != nil {
		return nil, 0, err
	}
	k, err = p.device.NewKernel(spec)
	return k, blocksOf(spec.Grid), err
}

// StoresGhosts reports whether passes of a depth over a box can be given More.Ghosts.
func (p *Passes) StoresGhosts(depth int, box domain.Box, sides Sides) bool {
	return p.gpu != nil && p.options.plain() && p.finite(depth) && p.gpu.of(depth, box.Size(), sides).storesGhosts()
}

// Parts returns the most parts that the norms of a pass over the box have, whatever Tune finds: 0 where no pass is possible.
func (p *Passes) Parts(box domain.Box, sides Sides) (most int64) {
	if p.gpu == nil {
		return 1
	}
	for _, s := range p.gpu.candidates {
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

// spec is what launches of all passes have. Kernels wait by themselves, see grid_dependency_wait in device.cuh.
func (p *Passes) spec(name string, from, to kernels.Array, of More) streams.KernelSpec {
	spec := streams.KernelSpec{Name: name, Work: streams.Sweep, Uses: slices.Concat([]streams.Span{from.Data, to.Data}, of.Parts, of.Walls.spans()), Early: !p.device.GoKernels}
	for _, g := range of.Ghosts {
		spec.Reaches = append(spec.Reaches, g.To.Data)
	}
	return spec
}

// onHost returns a pass on a host device, which shares a room with others.
func onHost[T rows.Float](p *Passes, room *[]T, from, to kernels.Array, box domain.Box, sides Sides, depth int, of More) func() {
	if p.device.IsDry() {
		return func() {}
	}
	h := newHostPass(p.stencil, sides, values[T](from), values[T](to), from.Layout, to.Layout, box, depth, domain.Vec{})
	h.setWalls(&of.Walls)
	h.norms = normsOnHost{of.Box, p.options.Sums, make([]rows.Norms, len(of.Parts))}
	if len(*room) < h.rooms {
		*room = make([]T, h.rooms)
	}
	return func() {
		h.room = *room
		h.norms.begin()
		h.run()
		h.norms.end(of.Parts)
	}
}

func values[T any](a kernels.Array) []T {
	return streams.View[T](a.Data.Memory.Bytes()[a.Data.Offset:][:a.Layout.Bytes()])
}

// check returns an error unless the pass can be made.
func (p *Passes) check(from, to kernels.Array, box domain.Box, sides Sides, depth int) error {
	if !p.finite(depth) {
		return fmt.Errorf("temporal: a pass of %d steps; there are those of finite Costs", depth)
	}
	if err := sides.check(p.stencil); err != nil {
		return err
	}
	if p.layout != from.Layout || p.layout.Pitch != to.Layout.Pitch || p.layout.Plane != to.Layout.Plane {
		return errors.New("temporal: a pass between arrays of other layouts than those that New was given")
	}
	if box.Empty() {
		return fmt.Errorf("temporal: a pass over the empty box %v", box)
	}
	for a := range p.stencil.Dims {
		r := p.stencil.AxisRadius(a)
		for _, side := range []Side{sides.low(a), sides.high(a)} {
			if side == Mirror && box.Size()[a] < r {
				return fmt.Errorf("temporal: a box of %d points along axis %d, of which %d are mirrored", box.Size()[a], a, r)
			}
		}
	}
	for _, array := range []kernels.Array{from, to} {
		if size := array.Layout.ElementSize; size != p.real.Size() {
			return fmt.Errorf("temporal: elements of %d bytes are no %s", size, p.real)
		}
	}
	if err := from.Holds(p.read(box, sides, depth)); err != nil {
		return fmt.Errorf("temporal: what a pass of %d steps reads: %w", depth, err)
	}
	if err := to.Holds(box); err != nil {
		return fmt.Errorf("temporal: what a pass stores: %w", err)
	}
	if a, b := from.Data, to.Data; a.Memory == b.Memory && a.Offset < b.Offset+b.Length && b.Offset < a.Offset+a.Length {
		return errors.New("temporal: a pass reads and stores the same memory")
	}
	return nil
}

// read returns what a pass of so many steps over a box reads: on open sides as far as all its steps do.
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
