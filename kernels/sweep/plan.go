package sweep

import (
	"slices"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// plan is a point function with its accesses, array by array.
type plan struct {
	point    Point
	accesses []Access
	reads    []readArray
	writes   []writtenArray
	norms    []int // accesses with norms
	slot     []slotPart
	arrays   int
	group    int // points that fill 16 bytes of the largest type

	still []byte // struct Frame of site.cuh, without the moment
	table *table // where launches look up their frames; nil where they are given them
	place int64  // the offset among the frames of a step
}

// table is where the frames of steps lie, see Frames.
type table struct {
	memory *streams.Memory
	stride int64 // bytes from one step to the next
	steps  int64 // a power of two
	first  int64 // the step that lies in place 0
}

// offset returns where the frames of a step lie.
func (t *table) offset(step int64) int64 { return (step - t.first) & (t.steps - 1) * t.stride }

// readArray is an array that is read, see access.cuh.
type readArray struct {
	access, component, array int
	element                  domain.Element
	footprint                stencil.Footprint // offsets that are loaded; along x only 0 if a row is uniform
	readOnly, sparse         bool
	uniform                  bool // the points of a row share one value
}

// writtenArray is an array that is written, see site.cuh.
type writtenArray struct {
	access, component, array int
	element                  domain.Element
	before                   int // the read array of the previous level, or -1
	norm                     int // its index among the norms, or -1
	inPlace                  bool
}

// groupBytes is the size of a unit that a thread loads and stores.
const groupBytes = 16

func newPlan(p Point, accesses []Access) (*plan, error) {
	if err := p.check(accesses); err != nil {
		return nil, err
	}
	n := &plan{point: p, accesses: slices.Clone(accesses), still: p.frame()}
	largest := 1
	first := make([]int, len(accesses)) // read array of component 0
	for i, a := range accesses {
		first[i] = len(n.reads)
		largest = max(largest, a.Element.Size())
		for q := range a.components() {
			f := slices.Clone(a.footprint(q))
			for k := range f {
				if a.Constant[0] {
					f[k][0] = 0
				}
			}
			if f = stencil.Offsets(f...); len(f) > 0 {
				n.reads = append(n.reads,
					readArray{i, q, n.arrays + q, a.Element, f, !a.Write, a.Sparse, a.Constant[0]})
			}
		}
		n.arrays += a.components()
	}
	n.group = groupBytes / largest
	array := 0
	for i, a := range accesses {
		if a.Write {
			n.addWrites(i, array, first)
		}
		array += a.components()
	}
	n.slot = slotParts(len(n.norms), p.Reductions)
	return n, nil
}

// addWrites adds the arrays of a written access, the first of which has the given index among all.
func (n *plan) addWrites(access, array int, firstRead []int) {
	a := n.accesses[access]
	norm, before := -1, n.find(a.Before)
	if a.Before != "" {
		norm = len(n.norms)
		n.norms = append(n.norms, access)
	} else if a.reads() {
		before = access
	}
	for q := range a.components() {
		w := writtenArray{access, q, array + q, a.Element, -1, norm, a.reads()}
		if before >= 0 {
			w.before = firstRead[before] + q
		}
		n.writes = append(n.writes, w)
	}
}

// find returns the index of an access, or -1 if the name is unknown.
func (n *plan) find(name string) int { return findAccess(n.accesses, name) }

// radius returns the radius of all accesses.
func (n *plan) radius() (all domain.Radius) {
	for _, r := range n.reads {
		all = all.Max(r.footprint.Radius())
	}
	return all
}

// radiusOf returns the radius in which an array is read.
func (n *plan) radiusOf(array int) domain.Radius {
	for _, r := range n.reads {
		if r.array == array {
			return r.footprint.Radius()
		}
	}
	return domain.Radius{}
}

// layerOf splits an offset into the layer and the row within it.
func (n *plan) layerOf(o domain.Vec) (layer, row int) {
	if n.point.Dims == 3 {
		return o[2], o[1]
	}
	return o[1], 0
}

// span is the range of layers and rows of a footprint.
type span struct{ low, high, rowLow, rowHigh int }

func (n *plan) span(f stencil.Footprint) (s span) {
	for i, o := range f {
		layer, row := n.layerOf(o)
		if i == 0 {
			s = span{layer, layer, row, row}
		}
		s = span{min(s.low, layer), max(s.high, layer), min(s.rowLow, row), max(s.rowHigh, row)}
	}
	return s
}

// noLayer is the highest layer if nothing is read; the lowest is its negative.
const noLayer = -99

// parts returns the highest and the lowest layer in which a footprint reads points left of a group, within it and
// right of it, for each row of its span, including the layers in between.
func (n *plan) parts(f stencil.Footprint) (high, low [][3]int) {
	s := n.span(f)
	for range s.rowHigh - s.rowLow + 1 {
		high, low = append(high, [3]int{noLayer, noLayer, noLayer}), append(low, [3]int{-noLayer, -noLayer, -noLayer})
	}
	note := func(row, part, layer int) {
		high[row][part], low[row][part] = max(high[row][part], layer), min(low[row][part], layer)
	}
	for _, o := range f {
		layer, row := n.layerOf(o)
		row -= s.rowLow
		note(row, 1, layer) // points of a group along x are each other's neighbors
		switch {
		case o[0] < 0:
			note(row, 0, layer)
		case o[0] > 0:
			note(row, 2, layer)
		}
	}
	return high, low
}

// reuse reports whether threads that go from layer to layer reduce the number of reads.
func (n *plan) reuse() bool {
	return slices.ContainsFunc(n.reads, func(r readArray) bool {
		if r.sparse {
			return false
		}
		high, low := n.parts(r.footprint)
		for row := range high {
			for part := range 3 {
				if high[row][part] > low[row][part] {
					return true
				}
			}
		}
		return false
	})
}

// split returns arrays by access and component.
func (n *plan) split(arrays []kernels.Array) (all Arrays) {
	for _, a := range n.accesses {
		all = append(all, arrays[:a.components()])
		arrays = arrays[a.components():]
	}
	return all
}

// classes groups arrays with the same strides: the class of each array.
type classes []int

func (c classes) count() int {
	n := 0
	for _, one := range c {
		n = max(n, one+1)
	}
	return n
}

// strides are the strides of an array.
type strides struct{ pitch, plane int64 }

func stridesOf(a kernels.Array) strides { return strides{a.Layout.Pitch, a.Layout.Plane} }

// class is the strides of arrays; alongX is 0 if the points of a row share one value, otherwise 1.
type class struct {
	strides
	alongX int64
}

// classesOf groups arrays by their strides.
func classesOf(arrays []kernels.Array) (c classes, all []class) {
	for _, a := range arrays {
		s, at := class{stridesOf(a), 1}, 0
		if a.Layout.Uniform() {
			s.alongX = 0
		}
		for at < len(all) && all[at] != s {
			at++
		}
		if at == len(all) {
			all = append(all, s)
		}
		c = append(c, at)
	}
	return c, all
}

// usualClasses returns the classes of arrays with the same ghosts: elements of equal size have equal padding.
func (n *plan) usualClasses() (c classes) {
	type kind struct {
		size     int
		constant [3]bool
	}
	var kinds []kind
	for _, a := range n.accesses {
		one := kind{a.Element.Size(), a.Constant}
		at := slices.Index(kinds, one)
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, one)
		}
		for range a.components() {
			c = append(c, at)
		}
	}
	return c
}

// slot holds the norms and reductions of a block, or of a launch on a CPU device: rows.Norms of each norm, then a
// sums.Sum or a float64 for each reduction.
type slot []byte

// normBytes is the size of rows.Norms.
const normBytes = int(unsafe.Sizeof(rows.Norms{}))

// bytes is the size of a reduction in a slot.
func (o Operation) bytes() int {
	if o == Sum {
		return sums.Bytes
	}
	return 8
}

// slotPart is a part of a slot that is joined separately.
type slotPart struct {
	op    Operation
	place int
}

// slotParts returns all parts of a slot with the given number of norms.
func slotParts(count int, reductions []Reduction) (all []slotPart) {
	var norms rows.Norms
	at := 0
	for range count {
		all = append(all, slotPart{Max, at + int(unsafe.Offsetof(norms.MaxChange))},
			slotPart{Sum, at + int(unsafe.Offsetof(norms.SumChange2))},
			slotPart{Max, at + int(unsafe.Offsetof(norms.Max))}, slotPart{Sum, at + int(unsafe.Offsetof(norms.Sum2))})
		at += normBytes
	}
	for _, r := range reductions {
		all = append(all, slotPart{r.Op, at})
		at += r.Op.bytes()
	}
	return all
}

// in returns a pointer to a value in a slot.
func in[T any](s slot, place int) *T {
	var zero T
	return &streams.View[T](s[place : place+int(unsafe.Sizeof(zero))])[0]
}

// totals is the size of a slot in numbers of 8 bytes.
func (n *plan) totals() int {
	if len(n.slot) == 0 {
		return 0
	}
	last := n.slot[len(n.slot)-1]
	return (last.place + last.op.bytes()) / 8
}

// placeOf returns the offset of a reduction in a slot.
func (n *plan) placeOf(reduction int) int { return n.slot[4*len(n.norms)+reduction].place }

// clear resets a slot to the result for no points.
func (n *plan) clear(s slot) {
	clear(s)
	for i, r := range n.point.Reductions {
		if r.Op != Sum {
			*in[float64](s, n.placeOf(i)) = r.Op.identity()
		}
	}
}

// join sets a slot to the joined results of others.
func (n *plan) join(total slot, slots []slot) {
	n.clear(total)
	for _, part := range n.slot {
		for _, s := range slots {
			if part.op == Sum {
				in[sums.Sum](total, part.place).Join(*in[sums.Sum](s, part.place))
				continue
			}
			value := in[float64](total, part.place)
			*value = part.op.join(*value, *in[float64](s, part.place))
		}
	}
}

// values returns the numbers of a slot.
func (n *plan) values(s slot) (all []float64) {
	for _, part := range n.slot {
		if part.op == Sum {
			all = append(all, in[sums.Sum](s, part.place).Value())
		} else {
			all = append(all, *in[float64](s, part.place))
		}
	}
	return all
}
