package kernels

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// sweepLaunch is one launch of sweep.cu.
type sweepLaunch struct {
	kernel      string
	grid, block [3]int
	arg         sweepArgs
}

// sweepArgs is struct Sweep of sweep.cu.
type sweepArgs struct {
	fields sweptFields
	norms  uint64
	layers int64
	part   [maxRegions]sweepPart
}

// sweptFields is struct SweptFields, and sweepPart struct SweepPart, of window.cuh.
type (
	sweptFields struct {
		dst, src uint64
		strides  strides
	}
	sweepPart struct {
		region             `cu:"inline"`
		head, groups, slot int64
	}
)

// groupBytes is the size of what a thread loads and stores as one.
const groupBytes = 16

// largeThreshold is how thick a box must be, in points along x and in layers, to be swept
// as a large one.
const largeThreshold = 8

// launchOf chooses the kernel and its geometry: that of large boxes for one box thick
// enough, and that of thin boxes for others. Where points do not lie so that groups of
// them are aligned, as in arrays of a caller's own, threads work on single points.
func (s *Sweeper) launchOf(dst, src Array, boxes []domain.Box, shape Shape) sweepLaunch {
	k := sweepLaunch{arg: sweepArgs{fields: sweptFields{dst.address(), src.address(), stridesOf(src.Layout)}}}
	group := groupBytes / s.real.Size()
	for _, b := range boxes {
		if !grouped(s.stencil, dst, src, b, group) {
			group = 1
		}
	}
	n := boxes[0].Size()
	if len(boxes) == 1 && group > 1 && min(n[0], n[s.stencil.Dims-1]) >= largeThreshold && k.large(s, src.Layout, boxes[0], shape) {
		return k
	}
	k.thin(src.Layout, boxes, group)
	return k
}

// large makes the launch one of the kernels for a large box, unless it is too large for
// them. Groups are counted from where a warp's memory is aligned.
func (k *sweepLaunch) large(s *Sweeper, l domain.Layout, b domain.Box, shape Shape) bool {
	k.arg.part[0] = partOf(l, b, groupBytes/s.real.Size(), domain.RowAlignment/s.real.Size())
	grid, layers, ok := s.form.grid(shape, k.arg.part[0].groups, b.Size())
	k.grid, k.block, k.arg.layers = grid, [3]int{shape.Block[0], shape.Block[1], 1}, int64(layers)
	k.kernel = "sweep_" + s.form.kernel(layers)
	return ok
}

// thin makes the launch one of the kernels for thin boxes.
func (k *sweepLaunch) thin(l domain.Layout, boxes []domain.Box, group int) {
	most := int64(0)
	for i, b := range boxes {
		p := partOf(l, b, group, group)
		k.arg.part[i], most = p, max(most, p.groups*p.ny*p.nz)
	}
	k.kernel = "sweep_flat"
	if group == 1 {
		k.kernel = "sweep_points"
	}
	k.grid, k.block = [3]int{flatGrid(most), len(boxes), 1}, [3]int{blockSize, 1, 1}
	for i := range boxes {
		k.arg.part[i].slot = int64(i * k.grid[0])
	}
}

// partOf cuts the rows of a box into groups; the first begins where the place of its
// first point is a multiple of align.
func partOf(l domain.Layout, b domain.Box, group, align int) sweepPart {
	p := sweepPart{region: regionOf(l, b)}
	p.head = p.first % int64(align)
	p.first -= p.head
	p.groups = (p.head + p.nx + int64(group) - 1) / int64(group)
	return p
}

// grouped reports whether all rows of the box can be swept in groups: they are aligned,
// and all that their groups and what the stencil reads around them lies within the arrays.
func grouped(s stencil.Stencil, dst, src Array, b domain.Box, group int) bool {
	l := src.Layout
	if (dst.address()|src.address())%groupBytes != 0 || l.Pitch%int64(group) != 0 || l.Plane%int64(group) != 0 {
		return false
	}
	around := b.Grow(s.Radius())
	around.Lo[0] -= group - 1
	around.Hi[0] += group - 1
	return l.Offset(around.Lo) >= 0 && l.Offset(around.Hi.Sub(domain.Vec{1, 1, 1})) < l.Length
}

// blocks returns how many there are, each of which has a slot for its norms.
func (k *sweepLaunch) blocks() int64 { return int64(k.grid[0]) * int64(k.grid[1]) * int64(k.grid[2]) }

// fill completes the spec of the launch; variant is "" or withNorms.
func (k sweepLaunch) fill(s *Sweeper, spec *streams.KernelSpec, variant string) {
	spec.Function, spec.Grid, spec.Block = s.kernels[k.kernel+variant], k.grid, k.block
	spec.Argument = argument(&k.arg)
}
