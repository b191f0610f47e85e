package kernels

import (
	"github.com/halox/halox/domain"
)

// Shape is how a large box is swept on a GPU: by which thread blocks, and how many
// layers (planes; rows in two dimensions) each of their threads takes. It changes how
// long a sweep takes and nothing else.
type Shape struct {
	Block  [2]int `json:"block"`  // threads along x and y
	Layers int    `json:"layers"` // one of rowsAThread where the stencil's sweeps do not stream in z
}

// shapesOf returns all shapes of these blocks and layers, the blocks of the first layers
// first.
func shapesOf(layers []int, blocks ...[2]int) (all []Shape) {
	for _, l := range layers {
		for _, b := range blocks {
			all = append(all, Shape{b, l})
		}
	}
	return all
}

// maxBlocks is how many blocks a grid may have along y and along z.
const maxBlocks = 65535

// grid returns the blocks for a box of so many groups along x, and rows and planes, and
// how many layers a thread takes. ok is false where the blocks are too many for one launch.
// A stream in z that is too long for the grid gets longer.
func (f largeForm) grid(s Shape, groups int64, n domain.Vec) (grid [3]int, layers int, ok bool) {
	x := ceil(int(groups), s.Block[0])
	if f.dims == 2 {
		slabs := ceil(n[1], s.Layers)
		high := ceil(slabs, maxBlocks)
		return [3]int{x, ceil(slabs, high), high}, s.Layers, high <= maxBlocks
	}
	layers = max(s.Layers, ceil(n[2], maxBlocks))
	y := ceil(n[1], s.Block[1]*f.rowsPerThread)
	return [3]int{x, y, ceil(n[2], layers)}, layers, y <= maxBlocks
}

// ceil returns n/by, rounded up.
func ceil[T int | int64](n, by T) T { return (n + by - 1) / by }
