package pack

import (
	"errors"
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/streams"
)

// Reflector sets ghosts behind faces from points before them, by odd reflection or by a scale, on one device.
type Reflector struct {
	device         *streams.Device
	real           kernels.Real
	reflect, scale streams.Function // nil where Go runs
}

// reflectArgs is struct Reflect of reflect.cu.
type reflectArgs struct {
	field uint64
	launch.Strides
	ghosts launch.Region
	step   int64
}

// scaleArgs is struct Scale of reflect.cu.
type scaleArgs struct {
	ghosts reflectArgs
	scale  kernels.Scale
}

func reflectProgram(r kernels.Real) kernels.Program {
	return kernels.Program{File: "reflect.cu", Defines: []string{scalar.Real(r)},
		Mirrors: []kernels.Mirror{{Name: "Reflect", Value: reflectArgs{}}, {Name: "Scale", Value: scaleArgs{}}}}
}

// NewReflector compiles for the device.
func NewReflector(c *kernels.Compiler, d *streams.Device, real kernels.Real) (*Reflector, error) {
	r := &Reflector{device: d, real: real}
	if real.Size() == 0 {
		return nil, fmt.Errorf("pack: type %q cannot be reflected", real)
	}
	found, err := c.Load(d, reflectProgram(real), "reflect", "scale")
	if err != nil {
		return nil, err
	}
	r.reflect, r.scale = found[0], found[1]
	return r, nil
}

// Reflect makes a launch ready that sets the ghosts of the box to 2w - u, where w and u are
// one and two steps further inside: values on the wall, and those of the points before it.
// side is the face behind which the box lies.
func (r *Reflector) Reflect(a kernels.Array, ghosts domain.Box, side domain.Direction) (*streams.Kernel, error) {
	in := domain.Vec(side.Opposite())
	arg, err := r.argument(a, ghosts, in, in.Add(in))
	if err != nil {
		return nil, err
	}
	if side.Axis() < 0 || ghosts.Size()[side.Axis()] != 1 {
		return nil, fmt.Errorf("pack: a reflection of %v at side %q", ghosts, side)
	}
	run := func() { reflectRows[float64](a, ghosts, arg.step) }
	if r.real == kernels.Float32 {
		run = func() { reflectRows[float32](a, ghosts, arg.step) }
	}
	return r.launch("reflect", a, ghosts, run, r.reflect, launch.Argument(&arg))
}

// Scale makes a launch ready that sets the ghosts of the box to s.Factor*u + s.Shift, where u is the value that lies in
// steps away. No ghost of the box is another's u.
func (r *Reflector) Scale(a kernels.Array, ghosts domain.Box, in domain.Vec, s kernels.Scale) (*streams.Kernel, error) {
	arg, err := r.argument(a, ghosts, in, in)
	if err != nil {
		return nil, err
	}
	if !ghosts.Intersect(ghosts.Shift(in)).Empty() {
		return nil, fmt.Errorf("pack: %v are made from themselves, %v away", ghosts, in)
	}
	run := func() { scaleRows[float64](a, ghosts, arg.step, s) }
	if r.real == kernels.Float32 {
		run = func() { scaleRows[float32](a, ghosts, arg.step, s) }
	}
	return r.launch("scale", a, ghosts, run, r.scale, launch.Argument(&scaleArgs{arg, s}))
}

// argument describes ghosts of an array that are made from values one step away, and no farther than the farthest.
func (r *Reflector) argument(
	a kernels.Array, ghosts domain.Box, step, farthest domain.Vec,
) (arg reflectArgs, err error) {
	if ghosts.Empty() {
		return arg, fmt.Errorf("pack: no ghosts in %v to be set", ghosts)
	}
	if err := errors.Join(a.Holds(ghosts), a.Holds(ghosts.Shift(farthest))); err != nil {
		return arg, err
	}
	offset := a.Layout.Offset(ghosts.Lo.Add(step)) - a.Layout.Offset(ghosts.Lo)
	return reflectArgs{a.Data.Address(), launch.StridesOf(a.Layout), launch.RegionOf(a.Layout, ghosts), offset}, nil
}

func (r *Reflector) launch(
	name string, a kernels.Array, ghosts domain.Box, run func(), f streams.Function, argument []byte,
) (*streams.Kernel, error) {
	return launch.New(r.device, streams.KernelSpec{
		Name: name, Uses: []streams.Span{a.Data}, Run: run, Function: f, Argument: argument,
		Grid: [3]int{launch.FlatGrid(ghosts.Points()), 1, 1}, Block: [3]int{launch.BlockSize, 1, 1},
	})
}

func reflectRows[T rows.Float](a kernels.Array, ghosts domain.Box, step int64) {
	v, n := launch.Values[T](a.Data), int64(ghosts.Size()[0])
	launch.EachRow(a.Layout, ghosts, func(first int64) {
		for o := first; o < first+n; o++ {
			v[o] = T(2*v[o+step]) - v[o+2*step]
		}
	})
}

func scaleRows[T rows.Float](a kernels.Array, ghosts domain.Box, step int64, s kernels.Scale) {
	v, n := launch.Values[T](a.Data), int64(ghosts.Size()[0])
	launch.EachRow(a.Layout, ghosts, func(first int64) {
		for o := first; o < first+n; o++ {
			v[o] = T(T(s.Factor)*v[o+step]) + T(s.Shift)
		}
	})
}
