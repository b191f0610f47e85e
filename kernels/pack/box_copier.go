// Package pack copies non-contiguous data by kernels of one device: into a contiguous buffer, back, or to another
// non-contiguous location, also in the memory of a peer. A BoxCopier handles boxes of fields, which it can also
// add, and strided blocks. A BlockPacker and a UnitPacker handle lists of blocks, and a TreePacker datatypes as
// trees. A DirectExchange is a set of copies between devices, with the flags by which they wait for each other. A
// Reflector sets ghosts from points on the other side of a physical face.
package pack

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/streams"
)

// BoxCopier copies boxes of elements on one device: it packs them into contiguous buffers, unpacks them, and
// repeats layers of a field. It is the packing primitive of halox. Copies depend only on the size of an element,
// not its type. Boxes of numbers can also be added.
type BoxCopier struct {
	device *streams.Device
	// The functions are nil on CPU devices. Those of a loop copy words in it; stretches is for work that includes
	// stretches.
	words          map[Loop]streams.Function
	stretches, add streams.Function
}

// fewRanges is the number of ranges passed with a launch of move.cu; more need a table.
const fewRanges = 4

// moveArgs is struct Move of move.cu.
type moveArgs struct {
	count int64
	table uint64
	few   [fewRanges]blockRange
}

// moveProgram has the kernels of all copies except those of lists.
func moveProgram() kernels.Program {
	return kernels.Program{File: "move.cu", Mirrors: []kernels.Mirror{
		{Name: "Move", Value: moveArgs{}}, {Name: "BlockRange", Value: blockRange{}},
		{Name: "MAX_DIMS", Value: maxDims}, {Name: "STRETCH", Value: stretch},
		{Name: "FLOAT32", Value: scalar.Place(domain.Float32)}, {Name: "FLOAT64", Value: scalar.Place(domain.Float64)},
		{Name: "INT32", Value: scalar.Place(domain.Int32)}, {Name: "INT64", Value: scalar.Place(domain.Int64)},
	}}
}

// NewBoxCopier compiles the kernels for the device.
func NewBoxCopier(c *kernels.Compiler, d *streams.Device) (*BoxCopier, error) {
	m := &BoxCopier{device: d}
	found, err := c.Load(d, moveProgram(), "move", "move_inner", "move_outer", "move_stretches", "add")
	if err != nil {
		return nil, err
	}
	m.words = map[Loop]streams.Function{NoLoop: found[0], InnerLoop: found[1], OuterLoop: found[2]}
	m.stretches, m.add = found[3], found[4]
	return m, nil
}

// Place is the location of a box of elements.
type Place struct {
	Data         streams.Span // memory that contains the box
	First        int64        // offset of the first element from the start of Data, in elements
	Pitch, Plane int64        // distances of rows and planes, in elements
}

// In returns the location of the box in the array.
func In(a kernels.Array, box domain.Box) Place {
	return Place{a.Data, a.Layout.Offset(box.Lo), a.Layout.Pitch, a.Layout.Plane}
}

// Dense returns the location of a contiguous box of the given size at the start of data, x fastest.
func Dense(data streams.Span, size domain.Vec) Place {
	return Place{data, 0, int64(size[0]), int64(size[0]) * int64(size[1])}
}

// Copy is one box to be copied.
type Copy struct {
	Dst, Src    Place      // destination and source
	Size        domain.Vec // elements per axis
	ElementSize int        // bytes
	slack       slack
}

// slack is the number of elements before and after each row of a copy that a GPU may also write, with any value:
// padding that is never read.
type slack struct{ before, after int }

// sector is the size in bytes of the smallest memory access of a GPU. To write less, it reads the rest first.
const sector = 32

// Store returns the copy of a box of one array to a box of equal size of another. If ghosts end in padding, a GPU
// may write entire sectors that contain them.
func Store(dst kernels.Array, to domain.Box, src kernels.Array, from domain.Box) Copy {
	c := Copy{Dst: In(dst, to), Src: In(src, from), Size: from.Size(), ElementSize: src.Layout.ElementSize}
	before, after := dst.Layout.Padding(to, sector)
	from.Lo[0] -= before
	from.Hi[0] += after
	if src.Layout.Owned.Covers(from) { // the values written to padding are read from somewhere
		c.slack = slack{before, after}
	}
	return c
}

// run returns the copy with device addresses.
func (c Copy) run() run {
	size := int64(c.ElementSize)
	start := func(p Place) uint64 { return p.Data.Address() + uint64((p.First-int64(c.slack.before))*size) }
	r := run{dst: start(c.Dst), src: start(c.Src), length: int64(c.slack.before+c.Size[0]+c.slack.after) * size}
	r.over(Dim{int64(c.Size[1]), c.Dst.Pitch * size, c.Src.Pitch * size})
	r.over(Dim{int64(c.Size[2]), c.Dst.Plane * size, c.Src.Plane * size})
	return r
}

// Pack returns the copy that fills the buffer with the points of the box.
func Pack(buffer streams.Span, src kernels.Array, box domain.Box) Copy {
	return Copy{Dst: Dense(buffer, box.Size()), Src: In(src, box), Size: box.Size(),
		ElementSize: src.Layout.ElementSize}
}

// Unpack returns the copy that fills the box from the buffer.
func Unpack(dst kernels.Array, box domain.Box, buffer streams.Span) Copy {
	return Copy{Dst: In(dst, box), Src: Dense(buffer, box.Size()), Size: box.Size(),
		ElementSize: dst.Layout.ElementSize}
}

// check returns an error unless the box is within its memory on both sides.
func (c Copy) check() error {
	if min(c.Size[0], c.Size[1], c.Size[2], c.ElementSize) < 1 {
		return fmt.Errorf("pack: copy: size and element size must be at least 1, got %v and %d", c.Size, c.ElementSize)
	}
	for _, p := range []Place{c.Dst, c.Src} {
		// the last byte may overflow integers
		last := float64(p.First) + float64(c.Size[0]) +
			float64(c.Size[1]-1)*float64(p.Pitch) + float64(c.Size[2]-1)*float64(p.Plane)
		if p.First < 0 || p.Pitch < 0 || p.Plane < 0 || last*float64(c.ElementSize) > float64(p.Data.Length) {
			return fmt.Errorf("pack: box of %v elements of %d bytes: must be within %v", c.Size, c.ElementSize,
				p.Data)
		}
	}
	return nil
}

// Copies is a kernel with several copies in one launch.
type Copies struct {
	*streams.Kernel
	table *streams.Memory // of strided copies, on a GPU if they are many; else nil
}

// Close frees the launch and its table.
func (c *Copies) Close() error {
	if c.table == nil {
		return c.Kernel.Close()
	}
	return errors.Join(c.Kernel.Close(), c.table.Close())
}

// Copies prepares one launch of all copies. Their destinations must not overlap, nor may a destination overlap a
// source. Sources are on the device or in pinned memory. Destinations may also be in the memory of a peer that the
// device can reach.
func (b *BoxCopier) Copies(name string, copies ...Copy) (*Copies, error) {
	return b.CopiesAs(streams.OtherWork, name, copies...)
}

// CopiesAs is like Copies, but records another kind of work in traces.
func (b *BoxCopier) CopiesAs(kind streams.Work, name string, copies ...Copy) (*Copies, error) {
	w := work{spec: streams.KernelSpec{Name: name, Work: kind}}
	for _, c := range copies {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		w.include(c.Dst.Data, c.Src.Data, c.run())
	}
	w.spec.Run = func() { copyRows(copies) }
	w.strided = stridedCopies(joinPairs(w.runs), true)
	return b.copies(w)
}

// work describes a launch.
type work struct {
	spec    streams.KernelSpec
	runs    []run
	strided []stridedCopy
	options StridedOptions
}

// include adds one run to the launch.
func (w *work) include(dst, src streams.Span, r run) {
	w.runs = append(w.runs, r)
	w.spec.Uses = append(w.spec.Uses, src)
	w.spec.Reaches = append(w.spec.Reaches, dst)
}

// stridedCopies returns runs in words as wide as their alignment, or in stretches if the kernel supports them.
func stridedCopies(runs []run, stretches bool) (all []stridedCopy) {
	for _, r := range runs {
		width := r.word()
		for _, part := range r.cut(width) {
			if stretches && part.suitsStretches() {
				all = append(all, part.stretches())
			} else {
				all = append(all, part.strided(width, uint32(width)))
			}
		}
	}
	return all
}

// copies prepares the launch of copies.
func (b *BoxCopier) copies(w work) (*Copies, error) {
	w.spec.Function = b.words[w.options.Loop]
	if slices.ContainsFunc(w.strided, func(s stridedCopy) bool { return s.lanes > 0 }) {
		w.spec.Function = b.stretches
	}
	return b.ready(w)
}

// ready prepares the launch.
func (b *BoxCopier) ready(w work) (*Copies, error) {
	if len(w.runs) == 0 {
		return nil, fmt.Errorf("pack: %s: must have at least one copy", w.spec.Name)
	}
	if b.device.GoKernels { // Go needs no ranges
		k, err := launch.New(b.device, w.spec)
		return &Copies{Kernel: k}, err
	}
	ranges := make([]blockRange, len(w.strided))
	for i, s := range w.strided {
		ranges[i].stridedCopy = s
	}
	w.spec.Grid, w.spec.Block = [3]int{int(w.share(ranges)), 1, 1}, [3]int{launch.BlockSize, 1, 1}
	return b.onGPU(w.spec, ranges)
}

// share assigns thread blocks to ranges: one word per thread until the threads exceed several times those resident
// on a GPU, then up to as many words as a thread loads at once.
func (w *work) share(ranges []blockRange) int64 {
	const full, atOnce = 4096, 2 // blocks; words
	words := threads(ranges, w.options.Loop)
	most := max(min(words/launch.BlockSize+1, full), words/(launch.BlockSize*atOnce))
	if w.options.MaxBlocks > 0 {
		most = min(most, int64(w.options.MaxBlocks))
	}
	return share(ranges, w.options.Loop, most, 1)
}

// onGPU prepares the launch, with a table on the device if there are many ranges.
func (b *BoxCopier) onGPU(spec streams.KernelSpec, ranges []blockRange) (c *Copies, err error) {
	made := &Copies{}
	arg := moveArgs{count: int64(len(ranges))}
	if copy(arg.few[:], ranges) < len(ranges) {
		if made.table, err = streams.Upload(b.device, ranges); err != nil {
			return nil, err
		}
		arg.table = made.table.Address()
		spec.Uses = append(spec.Uses, made.table.All())
	}
	spec.Argument = launch.Argument(&arg)
	if made.Kernel, err = launch.New(b.device, spec); err != nil && made.table != nil {
		err = errors.Join(err, made.table.Close())
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

// copyRows is the Go counterpart of kernel move.
func copyRows(copies []Copy) {
	for _, c := range copies {
		size := int64(c.ElementSize)
		n := int64(c.Size[0]) * size
		dst, src := launch.Values[byte](c.Dst.Data), launch.Values[byte](c.Src.Data)
		for z := range int64(c.Size[2]) {
			to := (c.Dst.First + z*c.Dst.Plane) * size
			from := (c.Src.First + z*c.Src.Plane) * size
			for range c.Size[1] {
				copy(dst[to:to+n], src[from:from+n])
				to += c.Dst.Pitch * size
				from += c.Src.Pitch * size
			}
		}
	}
}

// NewRow returns device memory with n copies of the bytes of an element, for Repeat. Close frees it.
func (b *BoxCopier) NewRow(element []byte, n int) (*streams.Memory, error) {
	if n < 1 || len(element) < 1 || n > math.MaxInt32/len(element) {
		return nil, fmt.Errorf("pack: row of %d elements of %d bytes: must have 1 to 2^31-1 bytes", n, len(element))
	}
	return streams.Upload(b.device, bytes.Repeat(element, n))
}

// Repeat returns the copy of a row to every row of the box, which must not be longer along x.
func Repeat(dst kernels.Array, box domain.Box, row streams.Span) Copy {
	return Copy{Dst: In(dst, box), Src: Place{Data: row}, Size: box.Size(), ElementSize: dst.Layout.ElementSize}
}

// Strided is a block that is copied from Src to Dst, repeated over up to four dimensions.
type Strided struct {
	Dst, Src Point // destination and source of the first block
	Length   int64 // bytes of a block
	Dims     []Dim // innermost first; default none
}

// Point is a location in memory.
type Point struct {
	Data   streams.Span // memory
	Offset int64        // from the start of Data, in bytes
}

// Strided prepares one launch of all copies. Sources may also be in the memory of a peer; otherwise it is like
// Copies. Long blocks that are not aligned are copied in the widest words that each allows, with a prologue and an
// epilogue, unless the options select a loop.
func (b *BoxCopier) Strided(name string, o StridedOptions, copies ...Strided) (*Copies, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("%w (%s)", err, name)
	}
	w := work{spec: streams.KernelSpec{Name: name}, options: o}
	for _, c := range copies {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		w.runs = append(w.runs, c.run())
		w.spec.Reaches = append(w.spec.Reaches, c.Dst.Data, c.Src.Data)
	}
	w.spec.Run = func() { copyStrided(copies) }
	w.strided = stridedCopies(w.runs, o.Loop == NoLoop)
	return b.copies(w)
}

// check returns an error unless all sources and destinations are within their memory.
func (s Strided) check() error {
	if s.Length < 1 || len(s.Dims) > maxDims {
		return fmt.Errorf("pack: strided: must have at least 1 byte and at most %d dimensions, got %d and %d", maxDims,
			s.Length, len(s.Dims))
	}
	for _, side := range []struct {
		at   Point
		step func(d Dim) int64
	}{{s.Dst, func(d Dim) int64 { return d.Dst }}, {s.Src, func(d Dim) int64 { return d.Src }}} {
		// may overflow integers
		low, high := float64(side.at.Offset), float64(side.at.Offset)+float64(s.Length)
		for _, d := range s.Dims {
			if d.Count < 1 {
				return fmt.Errorf("pack: strided: a dimension must have at least 1 block, got %d", d.Count)
			}
			reach := float64(d.Count-1) * float64(side.step(d))
			low, high = low+min(0, reach), high+max(0, reach)
		}
		if low < 0 || high > float64(side.at.Data.Length) {
			return fmt.Errorf("pack: strided: bytes %.0f to %.0f: must be within %v", low, high, side.at.Data)
		}
	}
	return nil
}

// run returns the copy with device addresses.
func (s Strided) run() run {
	r := run{dst: s.Dst.Data.Address() + uint64(s.Dst.Offset), src: s.Src.Data.Address() + uint64(s.Src.Offset),
		length: s.Length}
	for _, d := range s.Dims {
		r.over(d)
	}
	return r
}

// copyStrided is the Go counterpart of kernel move.
func copyStrided(copies []Strided) {
	for _, c := range copies {
		copyDims(launch.Values[byte](c.Dst.Data), launch.Values[byte](c.Src.Data), c.Dst.Offset, c.Src.Offset, c.Length,
			c.Dims)
	}
}

// copyDims copies a block and its repetitions, the outermost dimension first.
func copyDims(dst, src []byte, to, from, length int64, dims []Dim) {
	n := len(dims) - 1
	if n < 0 {
		copy(dst[to:to+length], src[from:from+length])
		return
	}
	for range dims[n].Count {
		copyDims(dst, src, to, from, length, dims[:n])
		to, from = to+dims[n].Dst, from+dims[n].Src
	}
}

// Add is a box of numbers to be added to the box at Dst, number by number. An element consists of one or more
// numbers.
type Add struct {
	Copy
	Number domain.Element // type of the numbers
}

// Adds prepares one launch of all additions, of numbers of any types. Their destinations must not overlap, nor may
// a destination overlap a source. Integers wrap. The memory is as for Copies.
func (b *BoxCopier) Adds(name string, adds ...Add) (*Copies, error) {
	w := work{}
	w.spec.Name, w.spec.Function = name, b.add
	for _, a := range adds {
		if err := a.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		a.slack = slack{} // padding must not be added to
		w.include(a.Dst.Data, a.Src.Data, a.run())
		w.strided = append(w.strided, a.strided()...)
	}
	w.spec.Run = func() { addRows(adds) }
	return b.ready(w)
}

// check returns an error unless the element size matches the numbers, and the boxes are within their memory.
func (a Add) check() error {
	if err := scalar.Check(a.Number); err != nil {
		return err
	}
	if a.ElementSize%a.Number.Size() != 0 {
		return fmt.Errorf("pack: element size of %d bytes: must be a multiple of the size of %s",
			a.ElementSize, a.Number)
	}
	return a.Copy.check()
}

// strided returns the addition in scalars.
func (a Add) strided() (all []stridedCopy) {
	number := a.Number.Scalar()
	width := int64(number.Size())
	r := a.run()
	for _, part := range r.cut(width) {
		all = append(all, part.strided(width, uint32(scalar.Place(number))))
	}
	return all
}

// addRows is the Go counterpart of kernel add.
func addRows(adds []Add) {
	for _, a := range adds {
		switch a.Number.Scalar() {
		case domain.Float32:
			addRowsOf[float32](a.Copy, 4)
		case domain.Float64:
			addRowsOf[float64](a.Copy, 8)
		case domain.Int32:
			addRowsOf[int32](a.Copy, 4)
		case domain.Int64:
			addRowsOf[int64](a.Copy, 8)
		}
	}
}

// addRowsOf adds one box of scalars of the given size in bytes.
func addRowsOf[T float32 | float64 | int32 | int64](c Copy, size int) {
	per := int64(c.ElementSize / size) // scalars per element
	n := int64(c.Size[0]) * per
	dst, src := launch.Values[T](c.Dst.Data), launch.Values[T](c.Src.Data)
	for z := range int64(c.Size[2]) {
		for y := range int64(c.Size[1]) {
			to := dst[(c.Dst.First+z*c.Dst.Plane+y*c.Dst.Pitch)*per:][:n]
			for i, v := range src[(c.Src.First+z*c.Src.Plane+y*c.Src.Pitch)*per:][:n] {
				to[i] += v
			}
		}
	}
}
