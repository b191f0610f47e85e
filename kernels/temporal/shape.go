package temporal

import (
	"fmt"
	"math"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
)

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
	vector  int    // elements that are loaded and stored as one, which tiles begin with; 1 for none
	blocks  int    // of a multiprocessor, which share the box evenly by themselves; 0 where the grid is of tiles
	least   [3]int // points that a box has that lies between two walls along an axis
	weight  int    // cost of a layer of a tile at a side of the box, where that of any other tile is 16; 0 where blocks do not share the box by cost
	start   int    // cost of beginning in a second tile, in layers
}

// fits is whether there are passes over a box with sides.
func (s *shape) fits(n domain.Vec, sides Sides) bool {
	for a := range n {
		if sides.low(a) != Open && sides.high(a) != Open && n[a] < s.least[a] {
			return false
		}
	}
	return true
}

// String tells the candidates of a depth apart.
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
	passArgs `cu:"inline"`
	Lo, Hi   [3]int32
	Norms    [MostNorms]uint64
	Walls    [6]wallArgs
}

// address is that of a point of an array.
func address(a kernels.Array, at domain.Vec) uint64 {
	return a.Data.Address() + uint64(a.Layout.Offset(at)*int64(a.Layout.ElementSize))
}

// maxGrid is how many blocks a grid may have along y and along z.
const maxGrid = 65535

// grid returns the blocks for a box, and how many layers each stores: the fewest chunks that keep all multiprocessors busy, in whole
// waves of them, unless what chunks compute twice costs more.
//
// The box begins so many elements behind an aligned one.
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
		return grid, chunk, fmt.Errorf("temporal: %w: a box of %v points, whose tiles are too many for a launch", ErrImpossible, n)
	}
	return grid, chunk, nil
}

func blocksOf(grid [3]int) int64 { return int64(grid[0]) * int64(grid[1]) * int64(grid[2]) }

func ceil(n, by int) int { return (n + by - 1) / by }
