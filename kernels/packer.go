package kernels

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// Packer moves boxes of a field to and from buffers without gaps, on one
// device. It knows the size of an element and not its meaning.
type Packer struct {
	device               *streams.Device
	size                 int
	pack, unpack, mirror streams.Function // nil on a host device
}

// NewPacker compiles for elements of 4 or 8 bytes.
func (c *Compiler) NewPacker(d *streams.Device, elementSize int) (*Packer, error) {
	p := &Packer{device: d, size: elementSize}
	if elementSize != 4 && elementSize != 8 {
		return nil, fmt.Errorf("kernels: elements of %d bytes cannot be packed; 4 and 8 can", elementSize)
	}
	if d.Backend == streams.Host {
		return p, nil
	}
	found, err := c.load(d, packProgram(elementSize), "pack", "unpack", "mirror")
	if err != nil {
		return nil, err
	}
	p.pack, p.unpack, p.mirror = found[0], found[1], found[2]
	return p, nil
}

// packArgs is struct Pack of pack.cu.
type packArgs struct {
	field, buffer uint64
	strides
	region region
}

// Pack makes a launch ready that fills the buffer with the points of the box,
// x fastest.
func (p *Packer) Pack(buffer streams.Span, src Array, box domain.Box) (*streams.Kernel, error) {
	return p.move("pack", p.pack, buffer, src, box)
}

// Unpack makes a launch ready that puts the buffer into the box.
func (p *Packer) Unpack(dst Array, box domain.Box, buffer streams.Span) (*streams.Kernel, error) {
	return p.move("unpack", p.unpack, buffer, dst, box)
}

func (p *Packer) move(name string, f streams.Function, buffer streams.Span, a Array, box domain.Box) (*streams.Kernel, error) {
	if err := p.fits(a, box); err != nil {
		return nil, err
	}
	if need := box.Points() * int64(p.size); buffer.Length < need {
		return nil, fmt.Errorf("kernels: %s: the box %v needs a buffer of %d bytes, not %d", name, box, need, buffer.Length)
	}
	spec := streams.KernelSpec{Name: name, Uses: []streams.Span{buffer, a.Data}, Function: f}
	if p.device.Backend == streams.Host {
		spec.Run = func() { moveRows(a, box, view[byte](buffer), name == "pack") }
		return p.device.NewKernel(spec)
	}
	spec.Grid, spec.Block = [3]int{flatGrid(box.Points()), 1, 1}, [3]int{blockSize, 1, 1}
	spec.Argument = argument(&packArgs{
		field: a.address(), buffer: buffer.Memory.Address() + uint64(buffer.Offset),
		strides: stridesOf(a.Layout), region: regionOf(a.Layout, box),
	})
	return p.device.NewKernel(spec)
}

// moveRows copies the rows of the box to or from the buffer.
func moveRows(a Array, box domain.Box, buffer []byte, pack bool) {
	size := int64(a.Layout.ElementSize)
	n := int64(box.Size()[0]) * size
	field := view[byte](a.Data)
	eachRow(a.Layout, box, func(first int64) {
		row := field[first*size : first*size+n]
		if pack {
			copy(buffer, row)
		} else {
			copy(row, buffer)
		}
		buffer = buffer[n:]
	})
}

// mirrorArgs is struct Mirror of pack.cu.
type mirrorArgs struct {
	field uint64
	strides
	count  int64
	region [maxRegions]region
	from   [maxRegions]int64
}

// Mirror makes a launch ready that fills the ghosts on the given sides: each
// gets the value of the owned point next to it, so that nothing flows through
// the wall between the two. Ghosts are one layer wide.
func (p *Packer) Mirror(a Array, sides ...domain.Direction) (*streams.Kernel, error) {
	if len(sides) < 1 || len(sides) > maxRegions {
		return nil, fmt.Errorf("kernels: mirrors at %d sides; 1 to %d are possible", len(sides), maxRegions)
	}
	l := a.Layout
	arg := mirrorArgs{field: a.address(), strides: stridesOf(l), count: int64(len(sides))}
	most := int64(0)
	for i, side := range sides {
		ghost := domain.GhostBox(l.Owned, side, l.Width)
		axis := side.Axis()
		if axis < 0 || ghost.Size()[axis] != 1 {
			return nil, fmt.Errorf("kernels: a mirror at side %q with ghosts %v", side, ghost)
		}
		if err := p.fits(a, ghost); err != nil {
			return nil, err
		}
		arg.region[i] = regionOf(l, ghost)
		arg.from[i] = l.Offset(ghost.Lo.Sub(domain.Vec(side))) - l.Offset(ghost.Lo)
		most = max(most, ghost.Points())
	}
	spec := streams.KernelSpec{Name: "mirror", Uses: []streams.Span{a.Data}, Function: p.mirror}
	if p.device.Backend == streams.Host {
		spec.Run = func() { mirrorRows(a, arg) }
		return p.device.NewKernel(spec)
	}
	spec.Grid, spec.Block = [3]int{flatGrid(most), len(sides), 1}, [3]int{blockSize, 1, 1}
	spec.Argument = argument(&arg)
	return p.device.NewKernel(spec)
}

// mirrorRows is the host version of kernel mirror.
func mirrorRows(a Array, arg mirrorArgs) {
	size, field := int64(a.Layout.ElementSize), view[byte](a.Data)
	for i, r := range arg.region[:arg.count] {
		for row := range r.ny * r.nz {
			o := (r.first + row%r.ny*arg.pitch + row/r.ny*arg.plane) * size
			from := o + arg.from[i]*size
			copy(field[o:o+r.nx*size], field[from:from+r.nx*size])
		}
	}
}

func (p *Packer) fits(a Array, box domain.Box) error {
	if a.Layout.ElementSize != p.size {
		return fmt.Errorf("kernels: elements of %d bytes given to a packer of %d", a.Layout.ElementSize, p.size)
	}
	if box.Empty() {
		return fmt.Errorf("kernels: the box %v is empty", box)
	}
	return a.holds(box)
}
