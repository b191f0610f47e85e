package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
)

// Shape is how a large box is swept on a GPU: the kernel, the thread blocks, and the number of layers (planes;
// rows in two dimensions) per thread. It affects only the duration of a sweep and the order of fast sums.
type Shape struct {
	Block  [2]int `json:"block"`  // threads along x and y
	Layers int    `json:"layers"` // layers per thread
	Single bool   `json:"single"` // a thread has one point per layer, instead of a group; default false
}

// way is how threads traverse large boxes, see stream.cuh.
type way int

const (
	streaming     way = iota // from layer to layer, keeping those before and after
	severalLayers            // several layers are loaded, then computed
	oneLayer
)

// form is the compile-time configuration of the kernels of a point function, and the shapes that a tuner tries.
type form struct {
	dims             int
	way              way
	rows             int // of a layer per thread in three dimensions
	prefetch         int // layers in advance at which a row is prefetched into the second-level cache
	bounds, measured launchBounds
	singles          singleBounds
	fused            fusedBounds
	shapes           []Shape // the first is the default
	several          []int   // layer counts of threads that take several
	layered          bool    // the sums of a linear stencil's parts are kept instead of the layers
}

// singleBounds are the launch bounds of kernels whose threads have one point per layer, if they differ from those
// of groups.
type singleBounds struct{ bounds, measured launchBounds }

// fusedBounds are the launch bounds of fused stages whose threads have groups, if they differ from those of
// sweeps; blocks have as many threads with totals as without.
type fusedBounds struct{ bounds, measured launchBounds }

// launchBounds are the largest number of threads per block, and the number of such blocks per multiprocessor for
// which registers are reserved: enough threads to hide the latency of memory, with enough registers each.
type launchBounds struct{ threads, blocks int }

// source returns C++ for __launch_bounds__. For other generations than that of the H200 the compiler needs more
// registers, by one block.
func (b launchBounds) source(name string) string {
	return fmt.Sprintf("enum { %s_THREADS = %d, %s_BLOCKS = ARCH == 900 ? %d : %d };\n", name, b.threads, name,
		b.blocks, max(1, b.blocks-1))
}

// boundsOf returns the launch bounds of kernels for single points or groups, and of those that measure.
func (f form) boundsOf(single bool) (bounds, measured launchBounds) {
	if single && f.scarce() {
		return f.singles.bounds, f.singles.measured
	}
	return f.bounds, f.measured
}

// scarce reports whether threads have one point by default instead of a group.
func (f form) scarce() bool { return f.singles != singleBounds{} }

// kernel returns the name of the kernel for large boxes of a shape.
func (f form) kernel(s Shape) string {
	name := map[way]string{
		streaming: "sweep_stream", severalLayers: fmt.Sprintf("sweep_layers%d", s.Layers), oneLayer: "sweep_layers1",
	}[f.way]
	if s.Single {
		name = strings.Replace(name, "sweep_", "sweep_single_", 1)
	}
	return name
}

// withMeasured is the suffix of kernels with norms and reductions.
const withMeasured = "_measured"

// kernels returns the names of all kernels.
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

// atOnce is the smallest number of layers per thread for which kernels are compiled.
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

// measuredLayers is the largest number of layers per thread in a measured sweep, for threads with several.
const measuredLayers = 4

// measuredKernels returns the kernels with a measured variant.
func (f form) measuredKernels() []string {
	return slices.DeleteFunc(f.kernels(), func(name string) bool {
		return slices.ContainsFunc(f.several,
			func(l int) bool { return l > measuredLayers && name == f.kernel(Shape{Layers: l}) })
	})
}

// singleLayers is the number of layers per thread with single points, for threads with several.
const singleLayers = 4

// single returns the shape for arrays with unaligned groups.
func (f form) single(s Shape) Shape {
	bounds, _ := f.boundsOf(true)
	s = s.within(bounds)
	s.Single = true
	if f.way == severalLayers {
		s.Layers = singleLayers
	}
	return s
}

// measuredLayers returns the number of layers per thread in measured sweeps.
func (f form) measuredLayers(layers int) int {
	if f.way == severalLayers {
		return min(layers, 4)
	}
	return layers
}

// measuredShape returns the shape of measured sweeps for a shape of other sweeps: they need more registers, and
// blocks live longer, since the norms of a block cost as much as some planes.
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

// within returns the shape limited to the threads of the launch bounds, with fewer along y first.
func (s Shape) within(b launchBounds) Shape {
	for s.Block[0]*s.Block[1] > b.threads && s.Block[1] > 1 {
		s.Block[1] = ceil(s.Block[1], 2)
	}
	s.Block[0] = min(s.Block[0], b.threads)
	return s
}

// source returns this configuration as CUDA C++ for stream.cuh and point.cu.
func (f form) source() string {
	text := fmt.Sprintf("enum { ROWS_PER_THREAD = %d, L2_PREFETCH = %d };\n%s%s", f.rows, f.prefetch,
		f.bounds.source("LARGE"), f.measured.source("MEASURED"))
	single, singleMeasured := f.boundsOf(true)
	text += single.source("SINGLE") + singleMeasured.source("SINGLE_MEASURED")
	for _, layers := range f.several {
		text += fmt.Sprintf("#define LAYERS_%d\n", layers)
	}
	if f.scarce() {
		text += "#define SCARCE\n"
	}
	return text + map[way]string{
		streaming: "#define STREAMS\n", severalLayers: "#define SEVERAL_LAYERS\n", oneLayer: "#define ONE_LAYER\n",
	}[f.way]
}

// maxColumn is the largest number of layers per thread: the number of terms that a RunningSum of sums.cuh
// supports.
const maxColumn = 128

// maxBlocks is the largest number of blocks of a grid along y and along z.
const maxBlocks = 65535

// grid returns the blocks for a box, given by its groups along x and its points, and the number of layers per
// thread. ok is false if there are too many blocks for one launch, or columns are too long. A stream that is too
// short for the grid is extended.
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

// layersAThread returns the numbers of layers per thread in kernels sweep_layers… of point.cu.
func layersAThread() []int { return []int{2, 4, 8} }

// shapesOf returns all shapes of these blocks and layers, ordered by layers.
func shapesOf(layers []int, blocks ...[2]int) (all []Shape) {
	for _, l := range layers {
		for _, b := range blocks {
			all = append(all, Shape{Block: b, Layers: l})
		}
	}
	return all
}

// formOf returns the form of a point function.
func (n *plan) form() form {
	if s := n.point.linear; s != nil {
		f := linearForm(*s, n.writes[0].element)
		if n.point.Sums != sums.Fast {
			f.reproducible(s, n.group)
		}
		return f
	}
	f := form{dims: n.point.Dims, rows: 1}
	switch {
	case !n.reuse():
		f.oneLayer(n)
	case f.dims == 2 && n.depth() <= 2:
		f.severalLayers(n)
	case f.dims == 2:
		f.prefetch, f.bounds = 2, n.bounds(n.registers(1))
		f.shapes = shapesOf([]int{8, 32, 16, 4}, [2]int{256, 1}, [2]int{128, 1})
	case n.depth() > 2:
		f.prefetch, f.bounds = 2, n.bounds(n.registers(1))
		f.shapes = shapesOf([]int{12, 16, 8, 6}, [2]int{32, 8}, [2]int{64, 4}, [2]int{32, 4})
	default: // values that are read once need registers for a short time
		f.bounds = n.bounds(n.registers(1) * 4 / 5)
		if n.group == 2 { // on an H200 a fused stage gains more by threads than it loses by spilling some values
			f.fused.bounds = n.bounds(n.registers(1) * 18 / 25)
		}
		f.shapes = shapesOf([]int{4, 5, 6, 8, 12, 24, 3}, [2]int{32, 8}, [2]int{64, 4}, [2]int{32, 4})
	}
	f.measured = n.bounds(n.registers(1) + n.measuredRegisters())
	if f.way == severalLayers {
		f.measured = f.bounds
	} else if !f.scarce() {
		f.fused = fusedBounds{cmp.Or(f.fused.bounds, f.bounds), f.measured}
		if n.point.Sums != sums.Fast { // slabs have sums of few terms and of many
			f.fused.measured = n.bounds(n.registers(1) + n.measuredRegisters()*3/2)
		}
	}
	return f
}

// oneLayer makes each thread take points of one layer, none of which the thread's next point reads again.
func (f *form) oneLayer(n *plan) {
	f.way = oneLayer
	f.bounds = n.bounds(n.registers(1))
	blocks := [][2]int{{128, 1}, {64, 2}, {32, 4}, {64, 4}}
	if f.dims == 2 {
		blocks = [][2]int{{128, 1}, {256, 1}}
	}
	f.shapes = shapesOf([]int{1}, blocks...)
	if n.registers(1) > scarce {
		f.scarceSingles(n)
		return
	}
	for _, s := range shapesOf([]int{1}, blocks...) {
		s.Single = true
		f.shapes = append(f.shapes, s)
	}
}

// severalLayers makes each thread take points of several layers at once, limited by registers.
func (f *form) severalLayers(n *plan) {
	f.way = severalLayers
	f.bounds = launchBounds{256, 1}
	for _, layers := range layersAThread() {
		if n.registers(layers) < maxRegisters || layers == singleLayers {
			f.several = append(f.several, layers)
		}
	}
	blocks := [][2]int{{128, 1}, {256, 1}}
	if n.registers(singleLayers) > scarce { // small blocks leave few registers unused
		blocks = append([][2]int{{64, 1}}, blocks...)
	}
	f.shapes = shapesOf([]int{4, 2, 8}, blocks...)
	f.shapes = slices.DeleteFunc(f.shapes, func(s Shape) bool { return !slices.Contains(f.several, s.Layers) })
	if n.registers(singleLayers) > scarce {
		f.shapes = append(f.shapes, f.single(f.shapes[0]), f.single(f.shapes[1]))
	}
}

// scarceSingles puts shapes of single points first, with separate launch bounds. Blocks narrow along x come first,
// since they leave fewer threads idle in short rows.
func (f *form) scarceSingles(n *plan) {
	one, measured := n.singleRegisters(), n.measuredRegisters()
	f.singles = singleBounds{boundsOfSingles(one), boundsOfSingles(one + measured)}
	blocks := [][2]int{{64, 2}, {128, 1}, {32, 4}}
	if f.dims == 2 {
		blocks = [][2]int{{128, 1}, {64, 1}}
	}
	singles := shapesOf([]int{1}, blocks...)
	for i := range singles {
		singles[i].Single = true
	}
	f.shapes = append(singles, f.shapes...)
}

// scarce is the estimated number of registers of a thread for a group beyond which it has one point instead;
// maxRegisters is the largest number for a kernel.
const (
	scarce       = 128
	maxRegisters = 180
)

// depth is the largest number of additional layers in which an array is read.
func (n *plan) depth() (most int) {
	for _, r := range n.reads {
		if s := n.span(r.footprint); !r.sparse {
			most = max(most, s.high-s.low)
		}
	}
	return most
}

// registers estimates the registers of a thread that holds the windows of a group in the given layers, and its
// results.
func (n *plan) registers(layers int) int {
	bytes := 0
	for _, r := range n.reads {
		if r.sparse {
			bytes += n.group * max(4, r.element.Size())
			continue
		}
		high, low := n.parts(r.footprint)
		radius := r.footprint.Radius()
		width := [3]int{radius.Minus[0], n.group, radius.Plus[0]}
		if r.uniform {
			width[1] = 1
		}
		for row := range high {
			for part, points := range width {
				if high[row][part] >= low[row][part] {
					bytes += points * (high[row][part] - low[row][part] + layers) * max(4, r.element.Size())
				}
			}
		}
	}
	for _, w := range n.writes {
		bytes += n.group * max(4, w.element.Size())
	}
	const others = 24
	return bytes/4 + others + 2*n.arrays
}

// singleRegisters estimates the smallest number of registers of a thread with one point. It holds the values read,
// or the results if they need more: results are stored as they are computed.
func (n *plan) singleRegisters() int {
	read, written := 0, 0
	for _, r := range n.reads {
		points := 1
		if !r.sparse {
			points = len(r.footprint)
		}
		read += points * max(4, r.element.Size())
	}
	for _, w := range n.writes {
		written += max(4, w.element.Size())
	}
	const others = 24
	return max(read, written)/4 + others + n.arrays/2
}

// measuredRegisters returns the registers for norms and reductions: two for a sum in double, and for a
// reproducible sum those of three and of the limit of its terms, and more if terms have signs.
func (n *plan) measuredRegisters() (all int) {
	const largest = 2
	sum, signed := 2, 2
	if n.point.Sums != sums.Fast {
		sum, signed = 7, 12
	}
	for i, part := range n.slot {
		if part.op == Sum && i >= 4*len(n.norms) {
			all += signed
		} else if part.op == Sum {
			all += sum
		} else {
			all += largest
		}
	}
	return all
}

// allRegisters is the number of registers of a multiprocessor.
const allRegisters = 65536

// bounds returns as many blocks as there are registers for.
func (n *plan) bounds(registers int) launchBounds {
	const threads = 256
	return launchBounds{threads, min(8, max(1, allRegisters/(threads*registers)))}
}

// boundsOfSingles returns as many blocks of single points as there are registers for, but no more than hide the
// latency of memory, since a function may need more registers than estimated. Blocks are small, so that few
// registers are unused.
func boundsOfSingles(registers int) launchBounds {
	const threads, most = 128, 6
	return launchBounds{threads, min(most, max(1, allRegisters/(threads*registers)))}
}

// linearForm returns the fastest form on an H200 whose kernels fit in registers.
func linearForm(s stencil.Stencil, r domain.Element) form {
	f := form{dims: s.Dims, rows: 1, layered: layered(s)}
	if s.Dims == 2 && s.AxisRadius(1) <= 1 {
		f.way, f.several = severalLayers, layersAThread()
	}
	switch points := s.Points(); {
	case f.way == severalLayers:
		f.linearRows(points, r)
	case s.Dims == 2:
		f.prefetch, f.bounds, f.measured = 2, launchBounds{256, 3}, launchBounds{256, 2}
		f.shapes = shapesOf([]int{8, 32, 16, 4}, [2]int{256, 1}, [2]int{128, 1})
	case layered(s) && points <= 19 && r == domain.Float32:
		f.rows, f.prefetch, f.bounds, f.measured = 2, 4, launchBounds{128, 5}, launchBounds{128, 4}
		f.shapes = shapesOf([]int{8, 12, 6, 4}, [2]int{32, 4}, [2]int{64, 2})
	case layered(s):
		f.rows, f.prefetch, f.bounds, f.measured = 2, 4, launchBounds{256, 2}, launchBounds{256, 2}
		f.shapes = shapesOf([]int{12, 8, 16, 6}, [2]int{32, 8}, [2]int{32, 4}, [2]int{64, 4})
	case points <= 7:
		f.bounds, f.measured = launchBounds{512, 4}, launchBounds{256, 5}
		f.fused = fusedBounds{launchBounds{256, 5}, launchBounds{256, 4}}
		if len(s.Groups) > 1 { // more weights
			f.measured.blocks = 4
		}
		f.shapes = shapesOf([]int{4, 6, 8, 12, 16, 5, 3, 2}, [2]int{32, 16}, [2]int{64, 8}, [2]int{32, 8},
			[2]int{64, 4}, [2]int{16, 16})
	case points <= 13 && r == domain.Float32:
		f.bounds, f.measured = launchBounds{512, 2}, launchBounds{256, 3}
		f.shapes = shapesOf([]int{4, 6, 8, 12}, [2]int{32, 16}, [2]int{64, 8}, [2]int{32, 8})
	case points <= 13:
		f.prefetch, f.bounds, f.measured = 2, launchBounds{512, 2}, launchBounds{256, 3}
		f.shapes = shapesOf([]int{12, 16, 8, 6}, [2]int{32, 16}, [2]int{64, 8}, [2]int{32, 8})
	default:
		f.bounds, f.measured = launchBounds{256, 1}, launchBounds{256, 1}
		f.shapes = shapesOf([]int{8, 16, 4}, [2]int{32, 8}, [2]int{64, 4})
	}
	return f
}

// reproducible reserves the registers for reproducible sums of norms in threads with the given points.
func (f *form) reproducible(s *stencil.Stencil, group int) {
	switch {
	case f.layered && s.Points() > 19:
		f.measured = launchBounds{128, 3}
		f.fused = fusedBounds{f.bounds, launchBounds{f.bounds.threads, 1}}
	case f.measured.threads == blockSize:
		most := 4
		if group > 2 || len(s.Groups) > 1 {
			most = 3
		}
		f.measured.blocks, f.fused.measured.blocks = min(f.measured.blocks, most), min(f.fused.measured.blocks, most)
	}
}

// linearRows is the form of stencils that reach one row in two dimensions.
func (f *form) linearRows(points int, r domain.Element) {
	f.bounds, f.measured = launchBounds{256, 1}, launchBounds{256, 1}
	wide, narrow := [2]int{256, 1}, [2]int{128, 1}
	switch {
	case r == domain.Float64:
		f.shapes = shapesOf([]int{4, 8, 2}, narrow, wide)
	case points > 5:
		f.shapes = shapesOf([]int{4, 8, 2}, wide, narrow)
	default:
		f.measured.blocks = 4
		f.shapes = shapesOf([]int{8, 4, 2}, wide, narrow)
	}
}

// blockSize is the number of threads per block in kernels for small boxes.
const blockSize = 256
