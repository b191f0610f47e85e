// Package pack moves what lies apart in memory, by kernels of one device: into a buffer without gaps,
// back, or to where it lies apart elsewhere, also in the memory of a peer. A BoxCopier takes boxes of
// fields, whose numbers it can add too, and strided blocks, a BlockPacker and a UnitPacker lists of
// blocks, and a TreePacker datatypes as trees. A DirectExchange is the copies that devices store into
// each other's memory, with the flags by which they wait for each other. A Reflector sets ghosts from
// the points before a wall.
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

// BoxCopier copies boxes of elements on one device: it packs them into buffers
// without gaps, unpacks them, and repeats layers of a field. It is the one
// packing primitive of halox. To copy, it knows the size of an element, not its
// meaning; what is numbers it can also add to what is there.
type BoxCopier struct {
	device *streams.Device
	// Functions are nil where Go runs. Those of a loop copy words in it; stretches is
	// for work some of which is in stretches.
	words          map[Loop]streams.Function
	stretches, add streams.Function
}

// fewRanges come with a launch of move.cu, else a table.
const fewRanges = 4

// moveArgs is struct Move of move.cu.
type moveArgs struct {
	count int64
	table uint64
	few   [fewRanges]blockRange
}

// moveProgram has the kernels of all copies but those of lists.
func moveProgram() kernels.Program {
	return kernels.Program{File: "move.cu", Mirrors: []kernels.Mirror{
		{Name: "Move", Value: moveArgs{}}, {Name: "BlockRange", Value: blockRange{}},
		{Name: "MAX_DIMS", Value: maxDims}, {Name: "STRETCH", Value: stretch},
		{Name: "FLOAT32", Value: scalar.Place("float32")}, {Name: "FLOAT64", Value: scalar.Place("float64")},
		{Name: "INT32", Value: scalar.Place("int32")}, {Name: "INT64", Value: scalar.Place("int64")},
	}}
}

// NewBoxCopier compiles for the device.
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

// Place is where a box of elements lies: in Data, its first element First
// elements after the start, rows Pitch and planes Plane elements apart.
type Place struct {
	Data                streams.Span
	First, Pitch, Plane int64
}

// In returns where the box lies in the array.
func In(a kernels.Array, box domain.Box) Place {
	return Place{a.Data, a.Layout.Offset(box.Lo), a.Layout.Pitch, a.Layout.Plane}
}

// Dense returns where a box of that size lies that fills data without gaps, x
// fastest.
func Dense(data streams.Span, size domain.Vec) Place {
	return Place{data, 0, int64(size[0]), int64(size[0]) * int64(size[1])}
}

// Copy is one box to be copied: Size elements of ElementSize bytes.
type Copy struct {
	Dst, Src    Place
	Size        domain.Vec
	ElementSize int
	slack       slack
}

// slack is how many elements before and after each row of a copy a GPU may write
// too, with any value: it is padding that is never read.
type slack struct{ before, after int }

// sector is what a GPU's memory reads and writes at least. To write less, it reads
// the rest first.
const sector = 32

// Store is the copy of a box of one array to a box of equal size of another. Where
// ghosts end in padding, a GPU may write the whole sectors that they lie in.
func Store(dst kernels.Array, to domain.Box, src kernels.Array, from domain.Box) Copy {
	c := Copy{Dst: In(dst, to), Src: In(src, from), Size: from.Size(), ElementSize: src.Layout.ElementSize}
	before, after := dst.Layout.Padding(to, sector)
	from.Lo[0] -= before
	from.Hi[0] += after
	if src.Layout.Owned.Covers(from) { // what is written to padding is read from somewhere
		c.slack = slack{before, after}
	}
	return c
}

// run gives the addresses.
func (c Copy) run() run {
	size := int64(c.ElementSize)
	start := func(p Place) uint64 { return p.Data.Address() + uint64((p.First-int64(c.slack.before))*size) }
	r := run{dst: start(c.Dst), src: start(c.Src), length: int64(c.slack.before+c.Size[0]+c.slack.after) * size}
	r.over(Dim{int64(c.Size[1]), c.Dst.Pitch * size, c.Src.Pitch * size})
	r.over(Dim{int64(c.Size[2]), c.Dst.Plane * size, c.Src.Plane * size})
	return r
}

// Pack is the copy that fills the buffer with the points of the box.
func Pack(buffer streams.Span, src kernels.Array, box domain.Box) Copy {
	return Copy{Dst: Dense(buffer, box.Size()), Src: In(src, box), Size: box.Size(),
		ElementSize: src.Layout.ElementSize}
}

// Unpack is the copy that puts the buffer into the box.
func Unpack(dst kernels.Array, box domain.Box, buffer streams.Span) Copy {
	return Copy{Dst: In(dst, box), Src: Dense(buffer, box.Size()), Size: box.Size(),
		ElementSize: dst.Layout.ElementSize}
}

// check returns an error unless the box lies in its memory on both sides.
func (c Copy) check() error {
	if min(c.Size[0], c.Size[1], c.Size[2], c.ElementSize) < 1 {
		return fmt.Errorf("pack: a copy of %v elements of %d bytes", c.Size, c.ElementSize)
	}
	for _, p := range []Place{c.Dst, c.Src} {
		// The last byte may be beyond all integers.
		last := float64(p.First) + float64(c.Size[0]) +
			float64(c.Size[1]-1)*float64(p.Pitch) + float64(c.Size[2]-1)*float64(p.Plane)
		if p.First < 0 || p.Pitch < 0 || p.Plane < 0 || last*float64(c.ElementSize) > float64(p.Data.Length) {
			return fmt.Errorf("pack: a box of %v elements of %d bytes does not fit into %v", c.Size, c.ElementSize,
				p.Data)
		}
	}
	return nil
}

// Copies is a kernel that makes several copies in one launch.
type Copies struct {
	*streams.Kernel
	table *streams.Memory // of strided copies, where CUDA runs and they are many; else nil
}

// Close frees the launch and its table.
func (c *Copies) Close() error {
	if c.table == nil {
		return c.Kernel.Close()
	}
	return errors.Join(c.Kernel.Close(), c.table.Close())
}

// Copies prepares one launch that makes all the copies. What they write does not
// overlap, nor does it overlap what they read. What is read lies on the device
// or in pinned memory; what is written there too, or in the memory of a peer that the
// device can reach.
func (b *BoxCopier) Copies(name string, copies ...Copy) (*Copies, error) {
	return b.CopiesAs(streams.OtherWork, name, copies...)
}

// CopiesAs is Copies that says what kind of work the launch is.
func (b *BoxCopier) CopiesAs(kind streams.Work, name string, copies ...Copy) (*Copies, error) {
	w := work{spec: streams.KernelSpec{Name: name, Work: kind}}
	for _, c := range copies {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		w.include(c.Dst.Data, c.Src.Data, c.run())
	}
	w.spec.Run = func() { copyRows(copies) }
	w.strided = stridedCopies(joinTwins(w.runs), true)
	return b.copies(w)
}

// work is what a launch has to do.
type work struct {
	spec    streams.KernelSpec
	runs    []run
	strided []stridedCopy
	options StridedOptions
}

// include gives the launch one more run to work on.
func (w *work) include(dst, src streams.Span, r run) {
	w.runs = append(w.runs, r)
	w.spec.Uses = append(w.spec.Uses, src)
	w.spec.Reaches = append(w.spec.Reaches, dst)
}

// stridedCopies gives runs in words as wide as they are aligned to, or in stretches, where
// the kernel knows them.
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

// copies makes the launch of copies.
func (b *BoxCopier) copies(w work) (*Copies, error) {
	w.spec.Function = b.words[w.options.Loop]
	if slices.ContainsFunc(w.strided, func(s stridedCopy) bool { return s.lanes > 0 }) {
		w.spec.Function = b.stretches
	}
	return b.ready(w)
}

// ready makes the launch.
func (b *BoxCopier) ready(w work) (*Copies, error) {
	if len(w.runs) == 0 {
		return nil, fmt.Errorf("pack: %s: nothing to copy", w.spec.Name)
	}
	if b.device.GoKernels { // it needs no ranges
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

// share gives the ranges of blocks their blocks: a word a thread until there are some times as
// many threads as a GPU holds, then up to as many as a thread loads at once.
func (w *work) share(ranges []blockRange) int64 {
	const full, atOnce = 4096, 2 // blocks; words
	words := threads(ranges, w.options.Loop)
	most := max(min(words/launch.BlockSize+1, full), words/(launch.BlockSize*atOnce))
	if w.options.MaxBlocks > 0 {
		most = min(most, int64(w.options.MaxBlocks))
	}
	return share(ranges, w.options.Loop, most, 1)
}

// onGPU makes the launch, with a table on the device if the ranges of blocks are many.
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

// copyRows is the host version of kernel move.
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

// NewRow returns memory of the device that holds the bytes of an element
// n times, for Repeat. Close frees it.
func (b *BoxCopier) NewRow(element []byte, n int) (*streams.Memory, error) {
	if n < 1 || len(element) < 1 || n > math.MaxInt32/len(element) {
		return nil, fmt.Errorf("pack: a row of %d elements of %d bytes: give 1 or more, under 2 GiB", n, len(element))
	}
	return streams.Upload(b.device, bytes.Repeat(element, n))
}

// Repeat is the copy that puts the row into every row of the box, which is not
// longer along x.
func Repeat(dst kernels.Array, box domain.Box, row streams.Span) Copy {
	return Copy{Dst: In(dst, box), Src: Place{Data: row}, Size: box.Size(), ElementSize: dst.Layout.ElementSize}
}

// Strided is a block of Length bytes that is copied from Src to Dst, repeated over
// up to four dimensions, innermost first.
type Strided struct {
	Dst, Src Point
	Length   int64
	Dims     []Dim
}

// Point is a place in memory: Offset bytes after the start of Data.
type Point struct {
	Data   streams.Span
	Offset int64
}

// Strided prepares one launch that makes all the copies. What is read may lie in the
// memory of a peer too. The rest is as for Copies. Long blocks that are not aligned are
// copied in the words that each of them allows, with a prologue and an epilogue, unless
// the options ask for a loop.
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

// check returns an error unless all that is read and written lies in its memory.
func (s Strided) check() error {
	if s.Length < 1 || len(s.Dims) > maxDims {
		return fmt.Errorf("pack: blocks of %d bytes over %d dimensions; must be at most %d", s.Length, len(s.Dims),
			maxDims)
	}
	for _, side := range []struct {
		at   Point
		step func(d Dim) int64
	}{{s.Dst, func(d Dim) int64 { return d.Dst }}, {s.Src, func(d Dim) int64 { return d.Src }}} {
		// they may be beyond all integers
		low, high := float64(side.at.Offset), float64(side.at.Offset)+float64(s.Length)
		for _, d := range s.Dims {
			if d.Count < 1 {
				return fmt.Errorf("pack: a dimension of %d blocks", d.Count)
			}
			reach := float64(d.Count-1) * float64(side.step(d))
			low, high = low+min(0, reach), high+max(0, reach)
		}
		if low < 0 || high > float64(side.at.Data.Length) {
			return fmt.Errorf("pack: blocks from byte %.0f to %.0f do not fit into %v", low, high, side.at.Data)
		}
	}
	return nil
}

// run gives the addresses.
func (s Strided) run() run {
	r := run{dst: s.Dst.Data.Address() + uint64(s.Dst.Offset), src: s.Src.Data.Address() + uint64(s.Src.Offset),
		length: s.Length}
	for _, d := range s.Dims {
		r.over(d)
	}
	return r
}

// copyStrided is the host version of kernel move.
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

// Add is a box of numbers to be added to the box at Dst, number by number: each
// element of the copy is one or more of them.
type Add struct {
	Copy
	Number kernels.Number
}

// Adds prepares one launch that makes all the additions, of numbers of any types. What they write does not overlap, nor
// does it overlap what they read. Whole numbers wrap. The memory is as for Copies.
func (b *BoxCopier) Adds(name string, adds ...Add) (*Copies, error) {
	w := work{}
	w.spec.Name, w.spec.Function = name, b.add
	for _, a := range adds {
		if err := a.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		a.slack = slack{} // what lies beside is not to be added to
		w.include(a.Dst.Data, a.Src.Data, a.run())
		w.strided = append(w.strided, a.strided()...)
	}
	w.spec.Run = func() { addRows(adds) }
	return b.ready(w)
}

// check returns an error unless the elements are made of the numbers and lie in
// their memory.
func (a Add) check() error {
	place, count, err := scalar.Of(a.Number)
	if err != nil {
		return err
	}
	if size := scalar.All[place].Size * count; a.ElementSize%size != 0 {
		return fmt.Errorf("pack: elements of %d bytes are not a whole number of %s", a.ElementSize, a.Number)
	}
	return a.Copy.check()
}

// strided gives the addition in scalars.
func (a Add) strided() (all []stridedCopy) {
	place, _, _ := scalar.Of(a.Number) // checked before
	width := int64(scalar.All[place].Size)
	r := a.run()
	for _, part := range r.cut(width) {
		all = append(all, part.strided(width, uint32(place)))
	}
	return all
}

// addRows is the host version of kernel add.
func addRows(adds []Add) {
	for _, a := range adds {
		switch place, _, _ := scalar.Of(a.Number); scalar.All[place].Number {
		case "float32":
			addRowsOf[float32](a.Copy, 4)
		case "float64":
			addRowsOf[float64](a.Copy, 8)
		case "int32":
			addRowsOf[int32](a.Copy, 4)
		case "int64":
			addRowsOf[int64](a.Copy, 8)
		}
	}
}

// addRowsOf adds one box of scalars, which have the given size in bytes.
func addRowsOf[T float32 | float64 | int32 | int64](c Copy, size int) {
	per := int64(c.ElementSize / size) // scalars an element
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
