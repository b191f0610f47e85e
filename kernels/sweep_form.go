package kernels

import (
	"fmt"

	"github.com/halox/halox/stencil"
)

// largeForm is how sweeps of a stencil go through large boxes on a GPU, see large.cuh: what
// the kernels are compiled for, and the shapes that a tuner tries.
type largeForm struct {
	dims          int
	streams       bool // threads stream in z; if not, a thread loads some rows and then sweeps them
	rowsPerThread int  // in three dimensions, of a layer
	prefetch      int  // how many layers before it is loaded a row is prefetched into the L2 cache
	bounds, norms launchBounds
	shapes        []Shape // the first is the default
}

// launchBounds say how many threads a block has at most, and how many such blocks a
// multiprocessor shall have registers for: threads enough to hide the latency of memory, and
// for each registers enough.
type launchBounds struct{ threads, blocks int }

// source is CUDA C++ for the two, by their name. Elsewhere than on an H200's generation the
// compiler needs some registers more, which are those of one block less.
func (b launchBounds) source(name string) string {
	return fmt.Sprintf("enum { %s_THREADS = %d, %s_BLOCKS = ARCH == 900 ? %d : %d };\n", name, b.threads, name, b.blocks, max(1, b.blocks-1))
}

// rowsAThread are the kernels sweep_rows… of sweep.cu; those with norms have at most so many rows.
var rowsAThread = []int{2, 4, 8}

const measuredRows = 4

// formOf returns what was the fastest on an H200, of those whose kernels the compiler can
// keep in registers.
func formOf(s stencil.Stencil, r Real) largeForm {
	f := largeForm{dims: s.Dims, streams: s.Dims == 3 || s.AxisRadius(1) > 1, rowsPerThread: 1}
	switch points := s.Points(); {
	case !f.streams:
		f.rows(points, r)
	case s.Dims == 2:
		f.prefetch, f.bounds, f.norms = 2, launchBounds{256, 3}, launchBounds{256, 2}
		f.shapes = shapesOf([]int{8, 32, 16, 4}, [2]int{256, 1}, [2]int{128, 1})
	case layered(s) && points <= 19 && r == Float32:
		f.rowsPerThread, f.prefetch, f.bounds, f.norms = 2, 4, launchBounds{128, 5}, launchBounds{128, 4}
		f.shapes = shapesOf([]int{8, 12, 6, 4}, [2]int{32, 4}, [2]int{64, 2})
	case layered(s):
		f.rowsPerThread, f.prefetch, f.bounds, f.norms = 2, 4, launchBounds{256, 2}, launchBounds{256, 2}
		f.shapes = shapesOf([]int{12, 8, 16, 6}, [2]int{32, 8}, [2]int{32, 4}, [2]int{64, 4})
	case points <= 7:
		f.bounds, f.norms = launchBounds{512, 4}, launchBounds{256, 5}
		if len(s.Groups) > 1 { // more weights
			f.norms.blocks = 4
		}
		f.shapes = shapesOf([]int{4, 5, 6, 3, 8, 2}, [2]int{32, 16}, [2]int{64, 8}, [2]int{32, 8}, [2]int{64, 4}, [2]int{16, 16})
	case points <= 13 && r == Float32:
		f.bounds, f.norms = launchBounds{512, 2}, launchBounds{256, 3}
		f.shapes = shapesOf([]int{4, 6, 8}, [2]int{32, 16}, [2]int{64, 8}, [2]int{32, 8})
	case points <= 13:
		f.prefetch, f.bounds, f.norms = 2, launchBounds{512, 2}, launchBounds{256, 3}
		f.shapes = shapesOf([]int{12, 16, 8, 6}, [2]int{32, 16}, [2]int{64, 8}, [2]int{32, 8})
	default:
		f.bounds, f.norms = launchBounds{256, 1}, launchBounds{256, 1}
		f.shapes = shapesOf([]int{8, 16, 4}, [2]int{32, 8}, [2]int{64, 4})
	}
	return f
}

// rows is the form of stencils that reach one row in two dimensions.
func (f *largeForm) rows(points int, r Real) {
	f.bounds, f.norms = launchBounds{256, 1}, launchBounds{256, 1}
	wide, narrow := [2]int{256, 1}, [2]int{128, 1}
	switch {
	case r == Float64:
		f.shapes = shapesOf([]int{4, 8, 2}, narrow, wide)
	case points > 5:
		f.shapes = shapesOf([]int{4, 8, 2}, wide, narrow)
	default:
		f.norms.blocks = 4
		f.shapes = shapesOf([]int{8, 4, 2}, wide, narrow)
	}
}

// kernel is how the name of a kernel ends that sweeps large boxes, a thread so many layers.
func (f largeForm) kernel(layers int) string {
	if f.streams {
		return "stream"
	}
	return fmt.Sprintf("rows%d", layers)
}

// measured is how sweeps with norms go where those without take a shape: they need more
// registers, and blocks live longer, whose norms cost as much as some planes.
func (f largeForm) measured(s Shape) Shape {
	for s.Block[0]*s.Block[1] > f.norms.threads && s.Block[1] > 1 {
		s.Block[1] = ceil(s.Block[1], 2)
	}
	if !f.streams {
		s.Layers = min(s.Layers, measuredRows)
	} else if f.dims == 3 {
		s.Layers = max(s.Layers, min(3*s.Layers, 12))
	}
	return s
}

// kernels are all these names, variants with norms too.
func (f largeForm) kernels() (names []string) {
	if f.streams {
		return []string{f.kernel(0), f.kernel(0) + withNorms}
	}
	for _, rows := range rowsAThread {
		names = append(names, f.kernel(rows))
		if rows <= measuredRows {
			names = append(names, f.kernel(rows)+withNorms)
		}
	}
	return names
}

// source is CUDA C++ that says all this to large.cuh.
func (f largeForm) source() string {
	// A fused step has one shape, and its norms as many threads on a multiprocessor.
	fused := launchBounds{f.bounds.threads, f.norms.threads * f.norms.blocks / f.bounds.threads}
	text := fmt.Sprintf("enum { ROWS_PER_THREAD = %d, L2_PREFETCH = %d };\n", f.rowsPerThread, f.prefetch) +
		f.bounds.source("LARGE") + f.norms.source("LARGE_NORMS") + fused.source("FUSED_NORMS")
	if f.streams {
		text += "#define STREAMS\n"
	}
	return text
}
