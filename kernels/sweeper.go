package kernels

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// Sweeper makes sweeps of one stencil ready for one device.
type Sweeper struct {
	device      *streams.Device
	star        stencil.Star
	real        Real
	march, flat streams.Function // nil on a host device
}

// NewSweeper compiles the stencil for the device.
func (c *Compiler) NewSweeper(d *streams.Device, star stencil.Star, real Real) (*Sweeper, error) {
	s := &Sweeper{device: d, star: star, real: real}
	if real.Size() == 0 {
		return nil, fmt.Errorf("kernels: type %q cannot be swept", real)
	}
	if d.Backend == streams.Host {
		return s, nil
	}
	found, err := c.load(d, sweepProgram(star, real), "sweep_march", "sweep_flat")
	if err != nil {
		return nil, err
	}
	s.march, s.flat = found[0], found[1]
	return s, nil
}

// sweepArgs is struct Sweep of sweep.cu.
type sweepArgs struct {
	dst, src uint64
	strides
	centre float64
	axis   [3]float64
	march  int64
	region [maxRegions]region
}

// Sweep makes a launch ready that applies the stencil to the points of src in
// the boxes and writes dst. The arrays have one layout and do not overlap; the
// boxes are at most six, owned, and do not overlap. Ghosts of src one layer
// around the boxes are read.
func (s *Sweeper) Sweep(dst, src Array, boxes ...domain.Box) (*streams.Kernel, error) {
	return s.SweepAs("sweep", dst, src, boxes...)
}

// SweepAs is Sweep with a name for the launch.
func (s *Sweeper) SweepAs(name string, dst, src Array, boxes ...domain.Box) (*streams.Kernel, error) {
	if dst.Layout != src.Layout {
		return nil, fmt.Errorf("kernels: a sweep between arrays of different layouts")
	}
	if len(boxes) < 1 || len(boxes) > maxRegions {
		return nil, fmt.Errorf("kernels: a sweep over %d boxes; 1 to %d are possible", len(boxes), maxRegions)
	}
	for _, b := range boxes {
		for _, a := range []Array{dst, src} {
			if err := a.holds(b.Grow(domain.UniformRadius(s.star.Dims, 1))); err != nil {
				return nil, err
			}
		}
	}
	spec := streams.KernelSpec{Name: name, Work: streams.Sweep, Uses: []streams.Span{dst.Data, src.Data}}
	if s.device.Backend == streams.Host {
		spec.Run = s.onHost(dst, src, boxes)
	} else {
		s.onGPU(&spec, dst, src, boxes)
	}
	return newKernel(s.device, spec)
}

// marchThreshold is how thick a box must be, in points along x and along the
// axis of the march, for a march to pay.
const marchThreshold = 8

// onGPU chooses the kernel and its geometry: a march through one large box,
// and one thread a point for thin boxes.
func (s *Sweeper) onGPU(spec *streams.KernelSpec, dst, src Array, boxes []domain.Box) {
	arg := sweepArgs{
		dst: dst.address(), src: src.address(), strides: stridesOf(src.Layout),
		centre: s.star.Centre, axis: s.star.Axis,
	}
	most := int64(0)
	for i, b := range boxes {
		arg.region[i] = regionOf(src.Layout, b)
		most = max(most, b.Points())
	}
	n := boxes[0].Size()
	slow := n[s.star.Dims-1]
	if len(boxes) == 1 && n[0] >= marchThreshold && slow >= marchThreshold {
		spec.Function, spec.Grid, spec.Block, arg.march = s.marchGeometry(n, slow)
	} else {
		spec.Function = s.flat
		spec.Grid, spec.Block = [3]int{flatGrid(most), len(boxes), 1}, [3]int{blockSize, 1, 1}
	}
	spec.Argument = argument(&arg)
}

// marchGeometry cuts the march into short pieces: 8 planes were the fastest on
// an H200, of 8 to all, at 256^3 and 512^3. A grid has at most 65535 blocks
// along y and z.
func (s *Sweeper) marchGeometry(n domain.Vec, slow int) (f streams.Function, grid, block [3]int, march int64) {
	const piece, mostBlocks = 8, 65535
	block = [3]int{64, 4, 1}
	rows := n[1]
	if s.star.Dims == 2 {
		block, rows = [3]int{128, 1, 1}, 1
	}
	length := max(piece, (slow+mostBlocks-1)/mostBlocks)
	grid = [3]int{
		(n[0] + block[0] - 1) / block[0],
		min(mostBlocks, (rows+block[1]-1)/block[1]),
		(slow + length - 1) / length,
	}
	return s.march, grid, block, int64(length)
}

// onHost returns the sweep as a loop over bands of rows.
func (s *Sweeper) onHost(dst, src Array, boxes []domain.Box) func() {
	if s.real == Float32 {
		return func() { sweepBands[float32](s.star, dst, src, boxes) }
	}
	return func() { sweepBands[float64](s.star, dst, src, boxes) }
}

// sweepBands applies the star to every row of the boxes.
func sweepBands[T rows.Float](star stencil.Star, dst, src Array, boxes []domain.Box) {
	to, from, l := view[T](dst.Data), view[T](src.Data), src.Layout
	centre, x, y, z := T(star.Centre), T(star.Axis[0]), T(star.Axis[1]), T(star.Axis[2])
	for _, b := range boxes {
		band := rows.Band{Points: b.Size()[0], Pitch: int(l.Pitch)}
		eachBand(l, b, func(o int64, count int) {
			band.Count = count
			out, mid, south, north := to[o:], from[o-1:], from[o-l.Pitch:], from[o+l.Pitch:]
			switch {
			case star.Dims == 2 && star.Equal:
				rows.Star5(out, mid, south, north, band, centre, x)
			case star.Dims == 2:
				rows.Star5Axes(out, mid, south, north, band, centre, x, y)
			case star.Equal:
				rows.Star7(out, mid, south, north, from[o-l.Plane:], from[o+l.Plane:], band, centre, x)
			default:
				rows.Star7Axes(out, mid, south, north, from[o-l.Plane:], from[o+l.Plane:], band, centre, x, y, z)
			}
		})
	}
}
