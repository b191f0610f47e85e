package temporal

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// gpu is the passes of a stencil on a GPU.
type gpu struct {
	compiler *kernels.Compiler
	device   *streams.Device
	shapes   []shape // by depth; those of no kernel have none
	programs map[int]streams.Function
}

// shape is a kernel for passes of a depth, and how it goes over a box.
type shape struct {
	depth   int
	cost    float64 // of a pass over that of a sweep
	program kernels.Program
	name    string
	threads int
	shared  int
	tile    [3]int // points that a block stores along x, y and z; along the axis of layers as many as there are chunks for
	axis    int    // of layers
	warmUp  int    // layers that a chunk computes beside its own
}

// passArgs is struct Pass of the kernels.
type passArgs struct {
	From, To     uint64
	Pitch, Plane int64
	N            [3]int32
	Sides        [6]int32
	Chunk        int32
}

func newGPU(c *kernels.Compiler, d *streams.Device, s stencil.Stencil, real kernels.Real) (*gpu, error) {
	g := &gpu{compiler: c, device: d, shapes: shapesOf(s, real, int(d.Shared)), programs: map[int]streams.Function{}}
	if len(g.shapes) == 0 {
		return nil, fmt.Errorf("temporal: %w: no kernel has room for the stencil", ErrImpossible)
	}
	return g, nil
}

// costs returns those of all depths.
func (g *gpu) costs() []float64 {
	deepest := 0
	for _, s := range g.shapes {
		deepest = max(deepest, s.depth)
	}
	cost := costsOf(deepest)
	for _, s := range g.shapes {
		cost[s.depth] = s.cost
	}
	return cost
}

// function compiles the kernel of a depth.
func (g *gpu) function(s shape) (streams.Function, error) {
	if f, ok := g.programs[s.depth]; ok {
		return f, nil
	}
	all, err := g.compiler.Load(g.device, s.program, s.name)
	if err != nil {
		return nil, err
	}
	g.programs[s.depth] = all[0]
	return all[0], nil
}

// prepare sets what a launch of a pass has.
func (g *gpu) prepare(spec *streams.KernelSpec, from, to kernels.Array, box domain.Box, sides Sides, depth int) error {
	if from.Layout.Pitch != to.Layout.Pitch || from.Layout.Plane != to.Layout.Plane {
		return fmt.Errorf("temporal: a pass between arrays whose rows lie %d and %d elements apart, planes %d and %d",
			from.Layout.Pitch, to.Layout.Pitch, from.Layout.Plane, to.Layout.Plane)
	}
	for a, n := range box.Size() {
		if n > math.MaxInt32/4 {
			return fmt.Errorf("temporal: %d points along axis %d; %d are possible", n, a, math.MaxInt32/4)
		}
	}
	for _, s := range g.shapes {
		if s.depth != depth {
			continue
		}
		f, err := g.function(s)
		if err != nil {
			return err
		}
		args := passArgs{From: address(from, box.Lo), To: address(to, box.Lo), Pitch: from.Layout.Pitch, Plane: from.Layout.Plane}
		for a, n := range box.Size() {
			args.N[a] = int32(n)
		}
		for i, side := range sides {
			args.Sides[i] = int32(side)
		}
		grid, chunk, err := s.grid(box.Size(), g.device.Cores)
		if err != nil {
			return err
		}
		args.Chunk = int32(chunk)
		spec.Function, spec.Grid, spec.Block, spec.Shared = f, grid, [3]int{s.threads, 1, 1}, s.shared
		spec.Argument = append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&args)), unsafe.Sizeof(args))...)
		return nil
	}
	return fmt.Errorf("temporal: a pass of %d steps", depth)
}

func address(a kernels.Array, at domain.Vec) uint64 {
	return a.Data.Address() + uint64(a.Layout.Offset(at)*int64(a.Layout.ElementSize))
}

// maxGrid is how many blocks a grid may have along y and along z.
const maxGrid = 65535

// grid returns the blocks for a box, and how many layers each stores: the fewest chunks that keep all multiprocessors busy, in whole
// waves of them, unless what chunks compute twice costs more.
func (s *shape) grid(n domain.Vec, cores int) (grid [3]int, chunk int, err error) {
	grid = [3]int{ceil(n[0], s.tile[0]), 1, 1}
	if s.axis == 2 {
		grid[1] = ceil(n[1], s.tile[1])
	}
	tiles, layers := grid[0]*grid[1], n[s.axis]
	best := math.Inf(1)
	for chunks := 1; chunks <= min(layers, maxGrid); chunks++ {
		size := ceil(layers, chunks)
		waves := ceil(tiles*ceil(layers, size), max(1, cores))
		if took := float64(waves) * float64(size+s.warmUp); took < 0.99*best {
			best, chunk = took, size
		}
		if chunks > 8*cores {
			break
		}
	}
	grid[2] = ceil(layers, chunk)
	if grid[1] > maxGrid || grid[2] > maxGrid {
		return grid, chunk, fmt.Errorf("temporal: a pass over a box of %v points: its tiles are too many for a launch", n)
	}
	return grid, chunk, nil
}

func ceil(n, by int) int { return (n + by - 1) / by }

// shapesOf returns the kernels for a stencil, whose blocks may have so much shared memory.
func shapesOf(s stencil.Stencil, real kernels.Real, shared int) (all []shape) {
	for _, depth := range []int{2, 3, 4} {
		if one, ok := generalShape(s, real, depth, shared); ok {
			all = append(all, one)
		}
	}
	return all
}

// generalShape returns that of pass.cu, if shared memory has room for its levels.
func generalShape(s stencil.Stencil, real kernels.Real, depth, shared int) (one shape, ok bool) {
	var r [3]int
	for a := range s.Dims {
		r[a] = s.AxisRadius(a)
	}
	along, turn, rows, threads := r[2], 1, 4, 512
	wide, high := []int{64, 32, 16}, []int{64, 56, 48, 40, 32, 24, 16, 8}
	if s.Dims == 2 {
		along, turn, rows, threads = r[1], 4, 1, 256
		wide, high = []int{512, 256, 128, 64}, []int{1}
	}
	for _, w := range wide {
		for _, h := range high {
			ex, ey := w+2*depth*r[0], 1
			if s.Dims == 3 {
				ey = h + 2*depth*r[1]
			}
			bytes := depth * 2 * (turn + along) * ex * ey * real.Size()
			kept := float64(w*h) / float64(ex*ey)
			if bytes > shared || kept < 0.3 {
				continue
			}
			if ok && kept < 1.05*float64(one.tile[0]*one.tile[1])/float64((one.tile[0]+2*depth*r[0])*max(1, one.tile[1]+2*depth*r[1])) {
				continue
			}
			ok = true
			one = shape{
				depth: depth, cost: 1 + 0.8*float64(depth-1), name: "pass", threads: threads, shared: bytes, tile: [3]int{w, h, 0}, axis: s.Dims - 1,
				warmUp: depth * (2*along + turn),
			}
			ry := r[1]
			if s.Dims == 2 {
				ry = 0
			}
			one.program = programOf("pass.cu", s, real,
				option("DEPTH", depth), option("RX", r[0]), option("RY", ry), option("RL", along), option("WIDE", w), option("HIGH", h),
				option("TURN", turn), option("ROWS", rows), option("THREADS", threads))
		}
	}
	return one, ok
}

func option(name string, value int) string { return fmt.Sprintf("%s=%d", name, value) }

// programOf returns a program for passes of a stencil.
func programOf(file string, s stencil.Stencil, real kernels.Real, options ...string) kernels.Program {
	c := map[kernels.Real]string{kernels.Float32: "float", kernels.Float64: "double"}[real]
	return kernels.Program{
		File: file, Defines: append([]string{"REAL=" + c}, options...),
		Headers: []kernels.Header{{Name: source.StencilHeader, Text: source.Stencil(s, real.Size())}},
		Mirrors: []kernels.Mirror{{Name: "Pass", Value: passArgs{}}},
	}
}
