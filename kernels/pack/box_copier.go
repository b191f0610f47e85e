package pack

import (
	"errors"
	"fmt"
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
		{Name: "Move", Value: moveArgs{}}, {Name: "BlockRange", Value: blockRange{}}, {Name: "MAX_DIMS", Value: maxDims}, {Name: "STRETCH", Value: stretch},
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
// too, with anything: padding, that nobody reads.
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
	return Copy{Dst: Dense(buffer, box.Size()), Src: In(src, box), Size: box.Size(), ElementSize: src.Layout.ElementSize}
}

// Unpack is the copy that puts the buffer into the box.
func Unpack(dst kernels.Array, box domain.Box, buffer streams.Span) Copy {
	return Copy{Dst: In(dst, box), Src: Dense(buffer, box.Size()), Size: box.Size(), ElementSize: dst.Layout.ElementSize}
}

// check returns an error unless the box lies in its memory on both sides.
func (c Copy) check() error {
	if min(c.Size[0], c.Size[1], c.Size[2], c.ElementSize) < 1 {
		return fmt.Errorf("pack: a copy of %v elements of %d bytes", c.Size, c.ElementSize)
	}
	for _, p := range []Place{c.Dst, c.Src} {
		// The last byte may be beyond all integers.
		last := float64(p.First) + float64(c.Size[0]) + float64(c.Size[1]-1)*float64(p.Pitch) + float64(c.Size[2]-1)*float64(p.Plane)
		if p.First < 0 || p.Pitch < 0 || p.Plane < 0 || last*float64(c.ElementSize) > float64(p.Data.Length) {
			return fmt.Errorf("pack: a box of %v elements of %d bytes does not fit into %v", c.Size, c.ElementSize, p.Data)
		}
	}
	return nil
}

// Copies is copies made ready to be launched together.
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

// Copies makes one launch ready that makes all the copies. What they write does not
// overlap, nor does it overlap what they read. What is read lies on the device
// or in pinned memory; what is written there too, or in the memory of a peer that the
// device can reach.
func (m *BoxCopier) Copies(name string, copies ...Copy) (*Copies, error) {
	return m.CopiesAs(streams.OtherWork, name, copies...)
}

// CopiesAs is Copies that says what kind of work the launch is.
func (m *BoxCopier) CopiesAs(kind streams.Work, name string, copies ...Copy) (*Copies, error) {
	w := work{spec: streams.KernelSpec{Name: name, Work: kind}}
	for _, c := range copies {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		w.include(c.Dst.Data, c.Src.Data, c.run())
	}
	w.spec.Run = func() { copyRows(copies) }
	w.strided = stridedCopies(joinTwins(w.runs), true)
	return m.copies(w)
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
func (m *BoxCopier) copies(w work) (*Copies, error) {
	w.spec.Function = m.words[w.options.Loop]
	if slices.ContainsFunc(w.strided, func(s stridedCopy) bool { return s.lanes > 0 }) {
		w.spec.Function = m.stretches
	}
	return m.ready(w)
}

// ready makes the launch.
func (m *BoxCopier) ready(w work) (*Copies, error) {
	if len(w.runs) == 0 {
		return nil, fmt.Errorf("pack: %s: nothing to copy", w.spec.Name)
	}
	if m.device.GoKernels { // it needs no ranges
		k, err := launch.New(m.device, w.spec)
		return &Copies{Kernel: k}, err
	}
	ranges := make([]blockRange, len(w.strided))
	for i, s := range w.strided {
		ranges[i].stridedCopy = s
	}
	w.spec.Grid, w.spec.Block = [3]int{int(w.share(ranges)), 1, 1}, [3]int{launch.BlockSize, 1, 1}
	return m.onGPU(w.spec, ranges)
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
func (m *BoxCopier) onGPU(spec streams.KernelSpec, ranges []blockRange) (c *Copies, err error) {
	made := &Copies{}
	arg := moveArgs{count: int64(len(ranges))}
	if copy(arg.few[:], ranges) < len(ranges) {
		if made.table, err = streams.Upload(m.device, ranges); err != nil {
			return nil, err
		}
		arg.table = made.table.Address()
		spec.Uses = append(spec.Uses, made.table.All())
	}
	spec.Argument = launch.Argument(&arg)
	if made.Kernel, err = launch.New(m.device, spec); err != nil && made.table != nil {
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
