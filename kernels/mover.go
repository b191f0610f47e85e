package kernels

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Mover copies boxes of elements on one device: it packs them into buffers
// without gaps, unpacks them, and repeats layers of a field. It is the one
// packing primitive of halox. To copy, it knows the size of an element, not its
// meaning; what is numbers it can also add to what is there.
type Mover struct {
	device    *streams.Device
	move, add streams.Function // nil on a host device
}

// NewMover compiles for the device.
func (c *Compiler) NewMover(d *streams.Device) (*Mover, error) {
	m := &Mover{device: d}
	if d.Backend == streams.Host {
		return m, nil
	}
	found, err := c.load(d, moveProgram(), "move", "add")
	if err != nil {
		return nil, err
	}
	m.move, m.add = found[0], found[1]
	return m, nil
}

// Place is where a box of elements lies: in Data, its first element First
// elements after the start, rows Pitch and planes Plane elements apart.
type Place struct {
	Data                streams.Span
	First, Pitch, Plane int64
}

// In returns where the box lies in the array.
func (a Array) In(box domain.Box) Place {
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

// Pack is the copy that fills the buffer with the points of the box.
func Pack(buffer streams.Span, src Array, box domain.Box) Copy {
	return Copy{Dst: Dense(buffer, box.Size()), Src: src.In(box), Size: box.Size(), ElementSize: src.Layout.ElementSize}
}

// Unpack is the copy that puts the buffer into the box.
func Unpack(dst Array, box domain.Box, buffer streams.Span) Copy {
	return Copy{Dst: dst.In(box), Src: Dense(buffer, box.Size()), Size: box.Size(), ElementSize: dst.Layout.ElementSize}
}

// Mirror is the copy by which the ghosts at a side of an array, one layer wide,
// get the values of the owned points next to them, so that nothing flows through
// the wall between the two.
func Mirror(a Array, side domain.Direction) (Copy, error) {
	ghost := domain.GhostBox(a.Layout.Owned, side, a.Layout.Width)
	axis := side.Axis()
	if axis < 0 || ghost.Size()[axis] != 1 {
		return Copy{}, fmt.Errorf("kernels: a mirror at side %q with ghosts %v", side, ghost)
	}
	owned := ghost.Shift(domain.Vec(side.Opposite()))
	return Copy{Dst: a.In(ghost), Src: a.In(owned), Size: ghost.Size(), ElementSize: a.Layout.ElementSize}, nil
}

// check returns an error unless the box lies in its memory on both sides.
func (c Copy) check() error {
	if c.Size.Product() < 1 || c.ElementSize < 1 {
		return fmt.Errorf("kernels: a copy of %v elements of %d bytes", c.Size, c.ElementSize)
	}
	for _, p := range []Place{c.Dst, c.Src} {
		last := p.First + int64(c.Size[0]) + int64(c.Size[1]-1)*p.Pitch + int64(c.Size[2]-1)*p.Plane
		if p.First < 0 || p.Pitch < 0 || p.Plane < 0 || last*int64(c.ElementSize) > p.Data.Length {
			return fmt.Errorf("kernels: a box of %v elements of %d bytes does not fit into %v", c.Size, c.ElementSize, p.Data)
		}
	}
	return nil
}

// Copies is copies made ready to be launched together.
type Copies struct {
	*streams.Kernel
	table *streams.Memory // of segments; nil on a host device
}

// Close frees the launch and its table.
func (c *Copies) Close() error {
	if c.table == nil {
		return c.Kernel.Close()
	}
	return errors.Join(c.Kernel.Close(), c.table.Close())
}

// tableLimit is how long the upload of a table may take.
const tableLimit = 30 * time.Second

// Copies makes one launch ready that makes all the copies, at most 65535. What
// they write does not overlap, nor does it overlap what they read. What is read
// lies on the mover's device or in pinned memory; what is written there too, or in
// the memory of a peer that the device can reach.
func (m *Mover) Copies(name string, copies ...Copy) (*Copies, error) {
	w := work{spec: streams.KernelSpec{Name: name, Function: m.move}}
	for _, c := range copies {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%w (%s)", err, name)
		}
		w.include(c, c.segment())
	}
	w.spec.Run = func() { copyRows(copies) }
	return m.ready(w)
}

// work is what a launch has to do: a segment for each box.
type work struct {
	spec  streams.KernelSpec
	table []segment
}

// include gives the launch one more box to work on.
func (w *work) include(c Copy, s segment) {
	w.table = append(w.table, s)
	w.spec.Uses = append(w.spec.Uses, c.Src.Data)
	w.spec.Reaches = append(w.spec.Reaches, c.Dst.Data)
}

// ready makes the launch.
func (m *Mover) ready(w work) (*Copies, error) {
	const most = 65535 // blocks along y
	if n := len(w.table); n < 1 || n > most {
		return nil, fmt.Errorf("kernels: %s: %d copies; 1 to %d are possible", w.spec.Name, n, most)
	}
	if m.device.Backend == streams.Host {
		k, err := m.device.NewKernel(w.spec)
		return &Copies{Kernel: k}, err
	}
	table := joinTwins(w.table)
	w.spec.Grid, w.spec.Block = [3]int{flatGrid(mostWords(table)), len(table), 1}, [3]int{blockSize, 1, 1}
	return m.onGPU(w.spec, table)
}

// onGPU puts the table on the device and makes the launch.
func (m *Mover) onGPU(spec streams.KernelSpec, table []segment) (*Copies, error) {
	memory, err := upload(m.device, table)
	if err != nil {
		return nil, err
	}
	spec.Uses = append(spec.Uses, memory.All())
	spec.Argument = argument(&struct{ segments uint64 }{memory.Address()})
	k, err := m.device.NewKernel(spec)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	return &Copies{k, memory}, nil
}

// upload returns device memory that holds the values.
func upload[T any](d *streams.Device, values []T) (m *streams.Memory, err error) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
	var open streams.Closers
	defer func() { err = errors.Join(err, open.Close()) }()
	host, err := d.AllocPinned(int64(len(bytes)))
	if err != nil {
		return nil, err
	}
	open.Add(host)
	copy(host.Bytes(), bytes)
	s, err := d.NewStream(streams.Normal)
	if err != nil {
		return nil, err
	}
	open.Add(s)
	if m, err = d.Alloc(int64(len(bytes))); err != nil {
		return nil, err
	}
	if err = errors.Join(s.Copy(m.All(), host.All()), s.Sync(tableLimit)); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// copyRows is the host version of kernel move.
func copyRows(copies []Copy) {
	for _, c := range copies {
		size := int64(c.ElementSize)
		n := int64(c.Size[0]) * size
		dst, src := view[byte](c.Dst.Data), view[byte](c.Src.Data)
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
