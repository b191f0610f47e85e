package pack

import (
	"fmt"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/kernels/internal/scalar"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/streams"
)

// Reflector sets ghosts behind walls by odd reflection on one device.
type Reflector struct {
	device  *streams.Device
	real    kernels.Real
	reflect streams.Function // nil where Go runs
}

// reflectArgs is struct Reflect of reflect.cu.
type reflectArgs struct {
	field uint64
	launch.Strides
	ghosts launch.Region
	step   int64
}

func reflectProgram(r kernels.Real) kernels.Program {
	return kernels.Program{File: "reflect.cu", Defines: []string{scalar.Real(r)},
		Mirrors: []kernels.Mirror{{Name: "Reflect", Value: reflectArgs{}}}}
}

// NewReflector compiles for the device.
func NewReflector(c *kernels.Compiler, d *streams.Device, real kernels.Real) (*Reflector, error) {
	r := &Reflector{device: d, real: real}
	if real.Size() == 0 {
		return nil, fmt.Errorf("pack: type %q cannot be reflected", real)
	}
	found, err := c.Load(d, reflectProgram(real), "reflect")
	if err != nil {
		return nil, err
	}
	r.reflect = found[0]
	return r, nil
}

// Reflect makes a launch ready that sets the ghosts of the box to 2w - u, where w and u are
// one and two steps further inside: values on the wall, and those of the points before it.
// side is the face behind which the box lies.
func (r *Reflector) Reflect(a kernels.Array, ghosts domain.Box, side domain.Direction) (*streams.Kernel, error) {
	in := domain.Vec(side.Opposite())
	for _, b := range []domain.Box{ghosts, ghosts.Shift(in).Shift(in)} {
		if err := a.Holds(b); err != nil {
			return nil, err
		}
	}
	if side.Axis() < 0 || ghosts.Empty() || ghosts.Size()[side.Axis()] != 1 {
		return nil, fmt.Errorf("pack: a reflection of %v at side %q", ghosts, side)
	}
	step := a.Layout.Offset(ghosts.Lo.Add(in)) - a.Layout.Offset(ghosts.Lo)
	run := func() { reflectRows[float64](a, ghosts, step) }
	if r.real == kernels.Float32 {
		run = func() { reflectRows[float32](a, ghosts, step) }
	}
	arg := reflectArgs{a.Data.Address(), launch.StridesOf(a.Layout), launch.RegionOf(a.Layout, ghosts), step}
	return launch.New(r.device, streams.KernelSpec{
		Name: "reflect", Uses: []streams.Span{a.Data}, Run: run,
		Function: r.reflect, Argument: launch.Argument(&arg),
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
