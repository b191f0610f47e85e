package sweep

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// maxBoxes is MAX_PARTS of point.cu: the largest number of boxes of a launch.
const maxBoxes = 6

// part is struct Part of stream.cuh.
type part struct {
	lo           domain.Vec
	n            domain.Vec
	head, groups int64
	slot         int64
}

// partOf divides the rows of a box into groups; the first begins where the offset of its first point in the first array
// with rows of points is a multiple of align.
func partOf(arrays []kernels.Array, b domain.Box, group, align int) part {
	p := part{lo: b.Lo, n: b.Size()}
	a := arrays[max(0, slices.IndexFunc(arrays, func(a kernels.Array) bool { return !a.Layout.Uniform() }))]
	place := a.Layout.Offset(b.Lo) + a.Data.Offset/int64(a.Layout.ElementSize)
	p.head = place % int64(align)
	p.lo[0] -= int(p.head)
	p.groups = (p.head + int64(p.n[0]) + int64(group) - 1) / int64(group)
	return p
}

// launchPlan is the geometry of a launch on a GPU.
type launchPlan struct {
	kernel      string
	grid, block [3]int
	arrays      []kernels.Array
	classes     classes
	strides     []class
	totals      uint64 // address of the first of its slots
	layers      int
	parts       [maxBoxes]part
}

// largeThreshold is the smallest extent, in points along x and in layers, of a large box.
const largeThreshold = 8

// newLaunchPlan chooses the kernel and its geometry: that of large boxes for one box of sufficient extent, and
// that of small boxes otherwise. If groups of points are not aligned, as in user arrays, threads work on single
// points.
func (n *plan) newLaunchPlan(f form, arrays []kernels.Array, boxes []domain.Box, shape Shape) launchPlan {
	k := launchPlan{arrays: arrays}
	k.classes, k.strides = classesOf(arrays)
	group := n.group
	for _, b := range boxes {
		if !n.grouped(arrays, b) {
			group = 1
		}
	}
	if group == 1 {
		shape = f.single(shape)
	}
	size := boxes[0].Size()
	thick := min(size[0], size[n.point.Dims-1]) >= largeThreshold
	if len(boxes) == 1 && thick && !(shape.Single && f.layered) && k.large(n, f, boxes[0], shape) {
		return k
	}
	if f.scarce() {
		group = 1
	}
	k.small(boxes, group)
	return k
}

// large selects one of the kernels for a large box, unless the box is too large for them. Groups are counted from
// the alignment of a warp's memory.
func (k *launchPlan) large(n *plan, f form, b domain.Box, shape Shape) (ok bool) {
	group, align := n.group, n.group*domain.RowAlignment/groupBytes
	if shape.Single {
		group = 1
		if !n.grouped(k.arrays, b) {
			align = 1
		}
	}
	k.parts[0] = partOf(k.arrays, b, group, align)
	k.grid, k.layers, ok = f.grid(shape, k.parts[0].groups, b.Size())
	k.block, k.kernel = [3]int{shape.Block[0], shape.Block[1], 1}, f.kernel(shape)
	return ok
}

// maxGroups is the largest number of groups per thread in kernels for small boxes: the number of terms that a
// RunningSum of sums.cuh supports.
const maxGroups = 64

// small selects one of the kernels for small boxes.
func (k *launchPlan) small(boxes []domain.Box, group int) {
	const maxGrid = 4096
	most := int64(0)
	for i, b := range boxes {
		p := partOf(k.arrays, b, group, group)
		k.parts[i], most = p, max(most, p.groups*int64(p.n[1])*int64(p.n[2]))
	}
	k.kernel = "sweep_small"
	if group == 1 {
		k.kernel = "sweep_points"
	}
	blocks := min(max(maxGrid, ceil(most, blockSize*maxGroups)), ceil(most, blockSize))
	k.grid, k.block = [3]int{int(blocks), len(boxes), 1}, [3]int{blockSize, 1, 1}
	for i := range boxes {
		k.parts[i].slot = int64(i * k.grid[0])
	}
}

// isSmall reports whether the launch is one of the kernels for small boxes, which have no shape.
func (k *launchPlan) isSmall() bool { return k.kernel == "sweep_small" || k.kernel == "sweep_points" }

// blocks returns the number of blocks, each of which has a slot for its results.
func (k *launchPlan) blocks() int64 { return int64(k.grid[0]) * int64(k.grid[1]) * int64(k.grid[2]) }

// grouped reports whether all rows of a box can be swept in groups: they are aligned in all arrays, and all values
// that a group needs are within the arrays.
func (n *plan) grouped(arrays []kernels.Array, b domain.Box) bool {
	group, head := int64(n.group), int64(-1)
	for i, a := range arrays {
		l, size := a.Layout, int64(a.Layout.ElementSize)
		if l.Uniform() {
			continue
		}
		if (int64(a.Data.Address())-a.Data.Offset)%(group*size) != 0 || a.Data.Offset%size != 0 {
			return false
		}
		h := (l.Offset(b.Lo) + a.Data.Offset/size) % group
		if l.Pitch%group != 0 || l.Plane%group != 0 || head >= 0 && h != head {
			return false
		}
		head = h
		read := b
		read.Lo[0] -= int(h)
		read.Hi[0] = read.Lo[0] + int(ceil(int64(b.Hi[0]-read.Lo[0]), group)*group)
		read = read.Grow(n.radiusOf(i))
		if l.Offset(read.Lo) < 0 || l.Offset(read.Hi.Sub(domain.Vec{1, 1, 1})) >= l.Length {
			return false
		}
	}
	return true
}

// words is the argument of a kernel, number by number: all have 8 bytes, so that Go and C have the same layout.
type words []byte

func (w *words) put(numbers ...int64) {
	for _, n := range numbers {
		*w = binary.NativeEndian.AppendUint64(*w, uint64(n))
	}
}

// putNarrow appends numbers of 4 bytes.
func (w *words) putNarrow(numbers ...int) {
	for _, n := range numbers {
		*w = binary.NativeEndian.AppendUint32(*w, uint32(int32(n)))
	}
}

// frameBytes is the size of struct Frame.
func (n *plan) frameBytes() int { return len(n.still) }

// putMoment puts struct Moment of site.cuh.
func putMoment(frame []byte, m Moment) {
	binary.NativeEndian.PutUint64(frame, uint64(m.Step))
	binary.NativeEndian.PutUint64(frame[8:], math.Float64bits(m.Start))
	binary.NativeEndian.PutUint64(frame[16:], math.Float64bits(m.Length))
}

// putFrame puts struct Frame of site.cuh for a step, with parameters that give changes unless it is nil.
func (n *plan) putFrame(frame []byte, m Moment, give Give) error {
	copy(frame, n.still)
	putMoment(frame, m)
	if give == nil {
		return nil
	}
	t := parametersType(n.point.Parameters)
	if t == nil {
		return fmt.Errorf("sweep: point function %q has no parameters that could change: set Point.Parameters",
			n.point.Name)
	}
	return give(m, reflect.NewAt(t, unsafe.Pointer(&frame[frameNumbers*8])).Interface())
}

// givenBytes is the size of struct Given of site.cuh.
func (n *plan) givenBytes() int {
	if n.table != nil {
		return 3 * 8
	}
	return n.frameBytes()
}

// given is struct Given, of step 0.
func (n *plan) given() (w words) {
	if n.table == nil {
		return append(w, n.still...)
	}
	w.put(int64(n.table.memory.Address())+n.place, n.table.stride, n.table.steps-1)
	return w
}

// set has launches to come of what was given take their frame of a step.
func (n *plan) set(given []byte, m Moment, give Give) error {
	if n.table == nil {
		return n.putFrame(given, m, give)
	}
	at := n.table.memory.Address() + uint64(n.place+n.table.offset(m.Step))
	binary.NativeEndian.PutUint64(given, at)
	return nil
}

// looksUp makes the frame of what runs on a CPU device the one that it is given.
func (n *plan) looksUp(run func(frame []byte)) func(given []byte) {
	if n.table == nil {
		return run
	}
	all, size := n.table.memory.Bytes(), n.frameBytes()
	return func(given []byte) { run(all[binary.NativeEndian.Uint64(given):][:size]) }
}

// uses returns the memory that launches look up frames in.
func (n *plan) uses() []streams.Span {
	if n.table == nil {
		return nil
	}
	return []streams.Span{n.table.memory.All()}
}

// partNumbers is the count of numbers in struct Part of stream.cuh before the places.
const partNumbers = 3 + 3 + 3

// sweepBytes is the size of struct Sweep of point.cu.
func (n *plan) sweepBytes(classes int) int {
	return 8*(n.arrays+2*classes+2+maxBoxes*(partNumbers+classes)) + n.givenBytes()
}

// origin returns the address of the point of index 0, 0, 0 in an array, which may be outside it.
func origin(a kernels.Array) int64 {
	return int64(a.Data.Address()) + a.Layout.Offset(domain.Vec{})*int64(a.Layout.ElementSize)
}

// argument returns struct Sweep, and the offset of its frame.
func (k *launchPlan) argument(n *plan) (bytes []byte, frame int) {
	var w words
	w.putArrays(k.arrays, k.strides)
	w.put(int64(k.totals), int64(k.layers))
	for i := range maxBoxes {
		w.putPart(k.parts[i], k.strides)
	}
	return append(w, n.given()...), len(w)
}

// putPart appends struct Part of stream.cuh.
func (w *words) putPart(p part, all []class) {
	w.put(int64(p.lo[0]), int64(p.lo[1]), int64(p.lo[2]), int64(p.n[0]), int64(p.n[1]), int64(p.n[2]), p.head, p.groups,
		p.slot)
	for _, s := range all {
		w.put(int64(p.lo[0])*s.alongX + int64(p.lo[1])*s.pitch + int64(p.lo[2])*s.plane)
	}
}

// putArrays appends struct Arrays of site.cuh.
func (w *words) putArrays(all []kernels.Array, classes []class) {
	for _, a := range all {
		w.put(origin(a))
	}
	for _, s := range classes {
		w.put(s.pitch, s.plane)
	}
}
