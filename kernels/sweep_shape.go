package kernels

import (
	"github.com/halox/halox/domain"
)

// Shape is how a large box is swept on a GPU: by which thread blocks, and how many
// layers (planes; rows in two dimensions) each of their threads takes. It changes how
// long a sweep takes and nothing else.
type Shape struct {
	Block  [2]int `json:"block"`  // threads along x and y
	Layers int    `json:"layers"` // in two dimensions one of rowsAThread
}

// rowsAThread are the kernels sweep_rows… of sweep.cu.
var rowsAThread = []int{2, 4, 8}

// defaultShape is what was the fastest on an H200: a stencil of 5 points then reaches 98%
// of the rate of a copy, one of 7 points 94%.
func defaultShape(dims int) Shape {
	if dims == 2 {
		return Shape{Block: [2]int{256, 1}, Layers: 4}
	}
	return Shape{Block: [2]int{32, 16}, Layers: 4}
}

// shapes returns those that a tuner tries, the default first.
func shapes(dims int) []Shape {
	all := []Shape{defaultShape(dims)}
	if dims == 2 {
		for _, threads := range []int{256, 128} {
			for _, rows := range rowsAThread {
				all = append(all, Shape{[2]int{threads, 1}, rows})
			}
		}
		return all
	}
	for _, layers := range []int{4, 3, 5, 6, 8, 2} {
		for _, block := range [][2]int{{32, 16}, {32, 8}, {64, 8}, {64, 4}, {16, 16}} {
			all = append(all, Shape{block, layers})
		}
	}
	return all
}

// mostBlocks is how many blocks a grid may have along y and along z.
const mostBlocks = 65535

// grid returns the blocks for a box of so many groups along x, and rows and planes. ok
// is false where they are too many for one launch. A march that is too long for the
// grid gets longer.
func (s Shape) grid(dims int, groups int64, n domain.Vec) (grid [3]int, layers int, ok bool) {
	x := ceil(int(groups), s.Block[0])
	if dims == 2 {
		bands := ceil(n[1], s.Layers)
		high := ceil(bands, mostBlocks)
		return [3]int{x, ceil(bands, high), high}, s.Layers, high <= mostBlocks
	}
	layers = max(s.Layers, ceil(n[2], mostBlocks))
	y := ceil(n[1], s.Block[1])
	return [3]int{x, y, ceil(n[2], layers)}, layers, y <= mostBlocks
}

// ceil returns n/by, rounded up.
func ceil(n, by int) int { return (n + by - 1) / by }
