package kernels

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/streams"
)

// Reflector sets ghosts behind walls by odd reflection on one device.
type Reflector struct {
	device  *streams.Device
	real    Real
	reflect streams.Function // nil where Go runs
}

// NewReflector compiles for the device.
func (c *Compiler) NewReflector(d *streams.Device, real Real) (*Reflector, error) {
	r := &Reflector{device: d, real: real}
	if real.Size() == 0 {
		return nil, fmt.Errorf("kernels: type %q cannot be reflected", real)
	}
	found, err := c.load(d, reflectProgram(real), "reflect")
	if err != nil {
		return nil, err
	}
	r.reflect = found[0]
	return r, nil
}

// reflectArgs is struct Reflect of reflect.cu.
type reflectArgs struct {
	field uint64
	strides
	ghosts region
	step   int64
}

// Reflect makes a launch ready that sets the ghosts of the box to 2w - u, where w and u are
// one and two steps further inside: values on the wall, and those of the points before it.
// side is the face behind which the box lies.
func (r *Reflector) Reflect(a Array, ghosts domain.Box, side domain.Direction) (*streams.Kernel, error) {
	in := domain.Vec(side.Opposite())
	for _, b := range []domain.Box{ghosts, ghosts.Shift(in).Shift(in)} {
		if err := a.holds(b); err != nil {
			return nil, err
		}
	}
	if side.Axis() < 0 || ghosts.Empty() || ghosts.Size()[side.Axis()] != 1 {
		return nil, fmt.Errorf("kernels: a reflection of %v at side %q", ghosts, side)
	}
	step := a.Layout.Offset(ghosts.Lo.Add(in)) - a.Layout.Offset(ghosts.Lo)
	run := func() { reflectRows[float64](a, ghosts, step) }
	if r.real == Float32 {
		run = func() { reflectRows[float32](a, ghosts, step) }
	}
	arg := reflectArgs{a.address(), stridesOf(a.Layout), regionOf(a.Layout, ghosts), step}
	return newKernel(r.device, streams.KernelSpec{
		Name: "reflect", Uses: []streams.Span{a.Data}, Run: run,
		Function: r.reflect, Argument: argument(&arg),
		Grid: [3]int{flatGrid(ghosts.Points()), 1, 1}, Block: [3]int{blockSize, 1, 1},
	})
}

func reflectRows[T rows.Float](a Array, ghosts domain.Box, step int64) {
	v, n := view[T](a.Data), int64(ghosts.Size()[0])
	eachRow(a.Layout, ghosts, func(first int64) {
		for o := first; o < first+n; o++ {
			v[o] = T(2*v[o+step]) - v[o+2*step]
		}
	})
}
