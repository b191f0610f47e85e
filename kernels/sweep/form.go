package sweep

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is how a large box is swept on a GPU: by which kernel and thread blocks, and how many
// layers (planes; rows in two dimensions) each of their threads takes. It changes how long a
// sweep takes, the order of fast sums, and nothing else.
type Shape struct {
	Block  [2]int `json:"block"`  // threads along x and y
	Layers int    `json:"layers"` //
	Single bool   `json:"single"` // a thread has one point in each layer, not a group
}

// way is how threads go through large boxes, see stream.cuh.
type way int

const (
	streaming     way = iota // from layer to layer, holding those before and behind
	severalLayers            // some layers are loaded, then computed
	oneLayer
)

// form is what the kernels of a point function are compiled for, and the shapes that a tuner tries.
type form struct {
	dims             int
	way              way
	rows             int // of a layer that a thread sweeps in three dimensions
	prefetch         int // how many layers before it is loaded a row is brought into the second-level cache
	bounds, measured launchBounds
	singles          singleBounds
	fused            fusedBounds
	shapes           []Shape // the first is the default
	several          []int   // the layers that a thread may take where it takes several
	layered          bool    // the sums of a linear stencil's parts are held, not the layers
}

// singleBounds are the launch bounds of kernels whose threads have one point in each layer, where these
// differ from those of groups.
type singleBounds struct{ bounds, measured launchBounds }

// fusedBounds are the launch bounds of fused stages whose threads have groups, where these differ from those
// of sweeps; blocks have as many threads with totals as without.
type fusedBounds struct{ bounds, measured launchBounds }

// launchBounds say how many threads a block has at most, and how many such blocks a
// multiprocessor shall have registers for: threads enough to hide the latency of memory, and
// for each registers enough.
type launchBounds struct{ threads, blocks int }

// source is C++ for __launch_bounds__. Elsewhere than on an H200's generation the compiler
// needs some registers more, which are those of one block less.
func (b launchBounds) source(name string) string {
	return fmt.Sprintf("enum { %s_THREADS = %d, %s_BLOCKS = ARCH == 900 ? %d : %d };\n", name, b.threads, name, b.blocks, max(1, b.blocks-1))
}

// boundsOf returns the launch bounds of kernels for single points or groups, and of those that measure.
func (f form) boundsOf(single bool) (bounds, measured launchBounds) {
	if single && f.scarce() {
		return f.singles.bounds, f.singles.measured
	}
	return f.bounds, f.measured
}

// scarce reports whether threads rather have one point than a group.
func (f form) scarce() bool { return f.singles != singleBounds{} }

// kernel is the name of the kernel that sweeps large boxes in a shape.
func (f form) kernel(s Shape) string {
	name := map[way]string{streaming: "sweep_stream", severalLayers: fmt.Sprintf("sweep_layers%d", s.Layers), oneLayer: "sweep_layers1"}[f.way]
	if s.Single {
		name = strings.Replace(name, "sweep_", "sweep_single_", 1)
	}
	return name
}

// withMeasured is how the name of a kernel ends that takes norms and reductions too.
const withMeasured = "_measured"

// kernels are the names of all kernels.
func (f form) kernels() []string {
	names := []string{"sweep_small", "sweep_points"}
	layers := []int{1}
	if f.way == severalLayers {
		layers = f.several
	}
	for _, l := range layers {
		names = append(names, f.kernel(Shape{Layers: l}))
	}
	if !f.layered {
		names = append(names, f.kernel(f.single(Shape{Layers: 1})))
	}
	return names
}

// atOnce is how many layers a thread takes at once, the fewest that there are kernels for.
func (f form) atOnce(single bool) int {
	switch {
	case f.way != severalLayers:
		return 1
	case single:
		return singleLayers
	default:
		return f.several[0]
	}
}

// measuredLayers is how many layers a thread takes at most in a sweep that measures, where it takes
// several.
const measuredLayers = 4

// measuredKernels are those that have a twin which measures.
func (f form) measuredKernels() []string {
	return slices.DeleteFunc(f.kernels(), func(name string) bool {
		return slices.ContainsFunc(f.several, func(l int) bool { return l > measuredLayers && name == f.kernel(Shape{Layers: l}) })
	})
}

// singleLayers is how many layers a thread takes of one point each, where it takes several.
const singleLayers = 4

// single is the shape for arrays whose groups are not aligned.
func (f form) single(s Shape) Shape {
	bounds, _ := f.boundsOf(true)
	s = s.within(bounds)
	s.Single = true
	if f.way == severalLayers {
		s.Layers = singleLayers
	}
	return s
}

// measuredLayers is how many layers a thread takes at once that measures.
func (f form) measuredLayers(layers int) int {
	if f.way == severalLayers {
		return min(layers, 4)
	}
	return layers
}

// measuredShape is how sweeps that measure go where those without take a shape: they need more
// registers, and blocks live longer, whose norms cost as much as some planes.
func (f form) measuredShape(s Shape) Shape {
	_, measured := f.boundsOf(s.Single)
	s = s.within(measured)
	switch {
	case f.way == severalLayers:
		s.Layers = f.measuredLayers(s.Layers)
	case f.way == streaming && f.dims == 3:
		s.Layers = max(s.Layers, min(3*s.Layers, 12))
	}
	return s
}

// within is the shape with no more threads than launch bounds allow, fewer along y first.
func (s Shape) within(b launchBounds) Shape {
	for s.Block[0]*s.Block[1] > b.threads && s.Block[1] > 1 {
		s.Block[1] = ceil(s.Block[1], 2)
	}
	s.Block[0] = min(s.Block[0], b.threads)
	return s
}

// source is CUDA C++ that says all this to stream.cuh and point.cu.
func (f form) source() string {
	text := fmt.Sprintf("enum { ROWS_PER_THREAD = %d, L2_PREFETCH = %d };\n%s%s", f.rows, f.prefetch, f.bounds.source("LARGE"), f.measured.source("MEASURED"))
	single, singleMeasured := f.boundsOf(true)
	text += single.source("SINGLE") + singleMeasured.source("SINGLE_MEASURED")
	for _, layers := range f.several {
		text += fmt.Sprintf("#define LAYERS_%d\n", layers)
	}
	if f.scarce() {
		text += "#define SCARCE\n"
	}
	return text + map[way]string{streaming: "#define STREAMS\n", severalLayers: "#define SEVERAL_LAYERS\n", oneLayer: "#define ONE_LAYER\n"}[f.way]
}

// maxColumn is how many layers a thread takes at most: so that a RunningSum of sums.cuh has room for their
// terms.
const maxColumn = 128

// maxBlocks is how many blocks a grid may have along y and along z.
const maxBlocks = 65535

// grid returns the blocks for a box of so many groups along x, and points, and how many layers a
// thread takes. ok is false where the blocks are too many for one launch, or columns too long. A stream that is too
// short for the grid gets longer.
func (f form) grid(s Shape, groups int64, n [3]int) (grid [3]int, layers int, ok bool) {
	x := ceil(int(groups), s.Block[0])
	if f.dims == 2 {
		slabs := ceil(n[1], s.Layers)
		high := ceil(slabs, maxBlocks)
		return [3]int{x, ceil(slabs, high), high}, s.Layers, high <= maxBlocks
	}
	layers = s.Layers
	if f.way == streaming {
		layers = max(layers, ceil(n[2], maxBlocks))
	}
	y, z := ceil(n[1], s.Block[1]*f.rows), ceil(n[2], layers)
	return [3]int{x, y, z}, layers, y <= maxBlocks && z <= maxBlocks && layers <= maxColumn
}

// ceil returns n/by, rounded up.
func ceil[T int | int64](n, by T) T { return (n + by - 1) / by }
