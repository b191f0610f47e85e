package temporal

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/internal/source"
	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/stencil"
)

// shape is a kernel for passes of a depth, and how it traverses a box.
type shape struct {
	depth   int
	cost    float64 // of a pass, in sweeps
	program kernels.Program
	name    string
	threads int
	shared  int
	tile    [3]int // points per block along x and y; along the axis of layers by chunk
	axis    int    // of layers
	warmUp  int    // layers that a chunk computes besides its own
	vector  int    // elements loaded and stored as one, to which tiles are aligned; 1 for none
	blocks  int    // per multiprocessor, which share the box evenly by themselves; 0 if the grid is of tiles
	least   [3]int // smallest number of points between two physical faces along an axis
	start   int    // cost of beginning a second tile, in layers

	// weight is the cost of a layer of a tile at a side of the box, relative to 16 for other tiles. It is 0 if blocks
	// do not share the box by cost.
	weight int
}

// fits reports whether passes over a box with sides are possible.
func (s *shape) fits(n domain.Vec, sides Sides) bool {
	for a := range n {
		if sides.low(a) != Open && sides.high(a) != Open && n[a] < s.least[a] {
			return false
		}
	}
	return true
}

// String identifies a candidate of a depth.
func (s shape) String() string { return s.program.String() }

// passArgs is struct Pass of the kernels.
type passArgs struct {
	From, To     uint64
	Pitch, Plane int64
	N            [3]int32
	Sides        [6]int32
	Chunk        int32
	Weight       int32
	Start        int32
}

// morePassArgs is struct Pass of kernels with options.
type morePassArgs struct {
	passArgs `           cu:"inline"`
	Lo, Hi   [3]int32
	Norms    [MaxNorms]uint64
	Walls    [6]wallArgs
}

// address returns the address of a point of an array.
func address(a kernels.Array, at domain.Vec) uint64 {
	return a.Data.Address() + uint64(a.Layout.Offset(at)*int64(a.Layout.ElementSize))
}

// maxGrid is the largest number of blocks along y and along z.
const maxGrid = 65535

// grid returns the blocks for a box, and the number of layers per block: the fewest chunks that keep all
// multiprocessors busy, in whole waves, unless the recomputed layers of chunks cost more.
//
// shift is the number of elements from an aligned element to the first point of the box.
func (s *shape) grid(n domain.Vec, shift, cores int) (grid [3]int, chunk int, err error) {
	if s.blocks > 0 {
		return [3]int{max(1, cores) * s.blocks, 1, 1}, 0, nil
	}
	grid = [3]int{ceil(n[0]+shift, s.tile[0]), 1, 1}
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
		return grid, chunk, fmt.Errorf(
			"temporal: %w: a box of %v points has too many tiles for a launch", ErrImpossible, n,
		)
	}
	return grid, chunk, nil
}

func blocksOf(grid [3]int) int64 { return int64(grid[0]) * int64(grid[1]) * int64(grid[2]) }

func ceil(n, by int) int { return (n + by - 1) / by }

// targets is a half-open range of GPU architectures for which the compiler has enough registers for a kernel. The
// zero value is all of them.
type targets struct{ from, below int }

// has reports whether a device, such as "sm_90", is in the range.
func (t targets) has(arch string) bool {
	n, _ := source.Architecture(arch)
	return n >= t.from && (t.below == 0 || n < t.below)
}

var (
	everywhere = targets{}
	upToHopper = targets{0, 100}
	hopperOnly = targets{90, 100}
	fromHopper = targets{90, 0}
)

// programOf returns a program for passes of a stencil.
func programOf(file string, s stencil.Stencil, real domain.Element, options ...string) kernels.Program {
	return kernels.Program{
		File: file, Defines: append([]string{scalar.Real(real)}, options...),
		Headers: []kernels.Header{{Name: source.StencilHeader, Text: source.Stencil(s, real.Size())}},
		Mirrors: []kernels.Mirror{{Name: "Pass", Value: passArgs{}}},
	}
}

// withOptions returns the program of passes with options.
func withOptions(o Options, p kernels.Program) kernels.Program {
	if o.plain() {
		return p
	}
	p.Defines = append(p.Defines, o.defines()...)
	p.Mirrors = []kernels.Mirror{{Name: "Pass", Value: morePassArgs{}}, {Name: "Wall", Value: wallArgs{}}}
	if o.Norms > 0 {
		p.Mirrors = append(p.Mirrors, kernels.Mirror{Name: "NormSum", Value: reduce.Norms{}})
	}
	return p
}

// storesGhosts reports whether the kernel has option GHOST_STORES. The others have too few registers for it.
func (s shape) storesGhosts() bool {
	switch s.name {
	case "pass_stars", "pass_sums":
		return false
	case "pass_strips":
		return s.depth*s.blocks < 24
	}
	return true
}

// ghostStoreArgs is struct GhostStore of the kernels.
type ghostStoreArgs struct {
	Shift       int64
	First, Last int32
}

// ghostPassArgs is struct Pass of kernels that store ghosts.
type ghostPassArgs struct {
	passArgs `                 cu:"inline"`
	Ghosts   [maxGhostStores]ghostStoreArgs
}

// withGhostStores returns the program of passes that store ghosts.
func withGhostStores(p kernels.Program) kernels.Program {
	p.Defines = append(slices.Clone(p.Defines), "GHOST_STORES")
	p.Mirrors = []kernels.Mirror{{Name: "Pass", Value: ghostPassArgs{}}, {Name: "GhostStore", Value: ghostStoreArgs{}}}
	return p
}

// moreArgs adds the arguments of kernels with options for a pass over a box.
func moreArgs(args passArgs, element int, box domain.Box, of *More) *morePassArgs {
	more := &morePassArgs{passArgs: args}
	for a := range box.Lo {
		more.Lo[a], more.Hi[a] = int32(of.Box.Lo[a]-box.Lo[a]), int32(of.Box.Hi[a]-box.Lo[a])
	}
	for i, at := range of.Parts {
		more.Norms[i] = at.Address()
	}
	for i := range of.Faces {
		more.Walls[i] = of.Faces[i].args(i, element, box)
	}
	return more
}

// ghostArgs adds the ghosts to the arguments of a kernel that stores a box to an array.
func ghostArgs(args passArgs, to kernels.Array, box domain.Box, dims int, ghosts []GhostStore) ([]byte, error) {
	all := ghostPassArgs{passArgs: args}
	for i, g := range ghosts {
		shift := int64(address(g.To, g.Ghosts.Lo) - address(to, g.Layers.Lo))
		if shift%16 != 0 {
			return nil, errors.New("temporal: ghosts must have the alignment of the stored points")
		}
		first := g.Layers.Lo[dims-1] - box.Lo[dims-1]
		all.Ghosts[i] = ghostStoreArgs{shift, int32(first), int32(first + g.Layers.Size()[dims-1])}
	}
	return launch.Argument(&all), nil
}
