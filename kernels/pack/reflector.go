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

// Reflector sets ghosts behind faces from points inside, by odd reflection or by a scale, on one device.
type Reflector struct {
	device          *streams.Device
	real            domain.Element
	reflect, affine streams.Function // nil where Go runs
}

// reflectArgs is struct Reflect of reflect.cu.
type reflectArgs struct {
	field uint64
	launch.Strides
	ghosts launch.Region
	step   int64
}

// affineArgs is struct Affine of reflect.cu.
type affineArgs struct {
	ghosts         reflectArgs
	factor, weight float64
	given          uint64
	factors        int64
	strides        launch.Strides
}

func reflectProgram(r domain.Element) kernels.Program {
	return kernels.Program{File: "reflect.cu", Defines: []string{scalar.Real(r)},
		Mirrors: []kernels.Mirror{{Name: "Reflect", Value: reflectArgs{}}, {Name: "Affine", Value: affineArgs{}}}}
}

// NewReflector compiles the kernels for the device.
func NewReflector(c *kernels.Compiler, d *streams.Device, real domain.Element) (*Reflector, error) {
	r := &Reflector{device: d, real: real}
	if !real.IsReal() {
		return nil, fmt.Errorf("pack: type must be float32 or float64, got %q", real)
	}
	found, err := c.Load(d, reflectProgram(real), "reflect", "affine")
	if err != nil {
		return nil, err
	}
	r.reflect, r.affine = found[0], found[1]
	return r, nil
}

// Reflect prepares a launch that sets the ghosts of the box to 2w - u, where w and u are one and two steps further
// inside: the boundary values, and the points inside. side is the face behind which the box is.
func (r *Reflector) Reflect(a kernels.Array, ghosts domain.Box, side domain.Direction) (*streams.Kernel, error) {
	in := domain.Vec(side.Opposite())
	arg, err := r.argument(a, ghosts, in, in.Add(in))
	if err != nil {
		return nil, err
	}
	if side.Axis() < 0 || ghosts.Size()[side.Axis()] != 1 {
		return nil, fmt.Errorf("pack: reflection: must be one layer behind a face, got %v at side %q", ghosts, side)
	}
	run := func() { reflectRows[float64](a, ghosts, arg.step) }
	if r.real == domain.Float32 {
		run = func() { reflectRows[float32](a, ghosts, arg.step) }
	}
	return r.launch("reflect", a, ghosts, run, r.reflect, launch.Argument(&arg))
}

// Affine prepares a launch that sets the ghosts of the box to factor*u + s.Weight*g, where u is the value at offset in,
// and g and the factor are those of s. No ghost of the box may be the u of another.
func (r *Reflector) Affine(
	a kernels.Array, ghosts domain.Box, in domain.Vec, s kernels.Affine,
) (*streams.Kernel, error) {
	arg, err := r.argument(a, ghosts, in, in)
	if err != nil {
		return nil, err
	}
	if !ghosts.Intersect(ghosts.Shift(in)).Empty() {
		return nil, fmt.Errorf("pack: ghosts %v: must not overlap their sources, at offset %v", ghosts, in)
	}
	if err := s.Holds(ghosts); err != nil {
		return nil, err
	}
	run := func() { affineRows[float64](a, ghosts, arg.step, s) }
	if r.real == domain.Float32 {
		run = func() { affineRows[float32](a, ghosts, arg.step, s) }
	}
	l := s.Given.Layout
	given := s.Given.Data.Address() + uint64(l.Offset(ghosts.Lo.Add(s.By))*int64(l.ElementSize))
	args := affineArgs{arg, s.Factor, s.Weight, given, s.FactorAt, launch.StridesOf(l)}
	return r.launch("affine", a, ghosts, run, r.affine, launch.Argument(&args), s.Given.Data)
}

// argument describes ghosts of an array that are computed from values at offset one, and no further away than
// farthest.
func (r *Reflector) argument(
	a kernels.Array, ghosts domain.Box, step, farthest domain.Vec,
) (arg reflectArgs, err error) {
	if ghosts.Empty() {
		return arg, fmt.Errorf("pack: box of ghosts must not be empty, got %v", ghosts)
	}
	if err := errors.Join(a.Holds(ghosts), a.Holds(ghosts.Shift(farthest))); err != nil {
		return arg, err
	}
	offset := a.Layout.Offset(ghosts.Lo.Add(step)) - a.Layout.Offset(ghosts.Lo)
	return reflectArgs{a.Data.Address(), launch.StridesOf(a.Layout), launch.RegionOf(a.Layout, ghosts), offset}, nil
}

func (r *Reflector) launch(
	name string, a kernels.Array, ghosts domain.Box, run func(), f streams.Function, argument []byte,
	reads ...streams.Span,
) (*streams.Kernel, error) {
	return launch.New(r.device, streams.KernelSpec{
		Name: name, Uses: append(reads, a.Data), Run: run, Function: f, Argument: argument,
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

func affineRows[T rows.Float](a kernels.Array, ghosts domain.Box, step int64, s kernels.Affine) {
	v, given, n := launch.Values[T](a.Data), launch.Values[T](s.Given.Data), int64(ghosts.Size()[0])
	for z := ghosts.Lo[2]; z < ghosts.Hi[2]; z++ {
		for y := ghosts.Lo[1]; y < ghosts.Hi[1]; y++ {
			p := domain.Vec{ghosts.Lo[0], y, z}
			o, g := a.Layout.Offset(p), s.Given.Layout.Offset(p.Add(s.By))
			for i := range n {
				factor := T(s.Factor)
				if s.FactorAt != 0 {
					factor = given[g+s.FactorAt+i]
				}
				v[o+i] = T(factor*v[o+i+step]) + T(T(s.Weight)*given[g+i])
			}
		}
	}
}
