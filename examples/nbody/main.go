// Nbody computes the paths of particles that attract each other, as in section V of HAND (Shi et al. 2014): each device
// moves its particles, and after each step all devices get the particles of all others (an allgather) as an MPI
// datatype, a struct that is all of a particle or an indexed type that is its position and charge.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed nbody.cu
var cuda string

// bodies is struct Bodies of nbody.cu.
type bodies struct {
	Particles           uint64
	Stride              int64
	First, Count, Total int64
	DT                  float64 `cu:"dt"`
}

// Offsets of a particle's numbers, in float64.
const (
	velocity  = 3
	force     = 6
	mass      = 9
	softening = 1e-4
)

func source() kernels.Source {
	return kernels.Source{Name: "nbody.cu", Text: cuda, Mirrors: []kernels.Mirror{{Name: "Bodies", Value: bodies{}},
		{Name: "VELOCITY", Value: velocity}, {Name: "FORCE", Value: force}, {Name: "MASS", Value: mass}}}
}

// nbody is the particles of all devices: each has an array of all, and moves count of them.
type nbody struct {
	example.Typed
	Count   int     // particles of each device
	Time    float64 // of all steps
	Complex bool    // particles with 20 further numbers, of which positions and charges are sent

	particles         []*streams.Memory // by device
	half, kick, drift []*streams.Kernel
	messages          []example.Message
}

// stride returns the size of a particle in float64: ten numbers and a charge, with 20 float32 before the charge if it
// is complex.
func (x *nbody) stride() int {
	if x.Complex {
		return 21
	}
	return 11
}

// message returns the type of what is sent of a device's particles.
func (x *nbody) message() (*datatype.Type, error) {
	bytes := int64(8 * x.stride())
	one, err := datatype.Struct([]int{10, 1}, []int64{0, 80}, []*datatype.Type{datatype.Float64, datatype.Int32})
	if x.Complex {
		one, err = datatype.HIndexed([]int{24, 4}, []int64{0, 160}, datatype.Byte)
	}
	if err != nil {
		return nil, err
	}
	if one, err = datatype.Resized(one, 0, bytes); err != nil {
		return nil, err
	}
	return datatype.Contiguous(x.Count, one)
}

// initial returns the particles of all devices: in a cube of edge 1, at rest, with a mass of 1 together.
func (x *nbody) initial() []float64 {
	total, stride := x.Count*len(x.Devices), x.stride()
	all := make([]float64, total*stride)
	for i := range total {
		for a := range 3 {
			all[i*stride+a] = example.Uniform(example.Hash(uint64(i), uint64(a)))
		}
		all[i*stride+mass] = 1 / float64(total)
	}
	return all
}

// open prepares the particles, kernels and messages.
func (x *nbody) open(s *halo.Session) error {
	if x.Count < 1 || !(x.Time > 0) {
		return errors.New("--particles must be at least 1, and --time above 0")
	}
	if err := x.Open(s); err != nil {
		return err
	}
	initial := x.initial()
	for _, d := range s.Devices {
		var m *streams.Memory
		streams.Into(&x.Resources, &m)(streams.Upload(d, initial))
		x.particles = append(x.particles, m)
	}
	if err := x.Err(); err != nil {
		return err
	}
	dt := x.Time / float64(x.Steps)
	for i := range s.Devices {
		for _, k := range []struct {
			to   *[]*streams.Kernel
			name string
			dt   float64
			host func(all []float64, b bodies)
		}{{&x.half, "kick", dt / 2, x.kicks}, {&x.kick, "kick", dt, x.kicks}, {&x.drift, "drift", dt, x.drifts}} {
			made, err := x.kernel(i, k.name, k.dt, k.host)
			if err != nil {
				return err
			}
			*k.to = append(*k.to, made)
		}
	}
	return x.allgather()
}

func (x *nbody) kernel(device int, name string, dt float64, host func(all []float64, b bodies)) (*streams.Kernel, error) {
	m, n := x.particles[device], int64(x.Count)
	b := bodies{m.Address(), int64(8 * x.stride()), n * int64(device), n, n * int64(len(x.Devices)), dt}
	return example.Kernel(&x.Typed, x.Devices[device], source(), name, x.Count, []*streams.Memory{m}, b,
		func() { host(streams.View[float64](m.Bytes()), b) })
}

// allgather prepares the messages that bring the particles of each device to all others.
func (x *nbody) allgather() error {
	t, err := x.message()
	if err != nil {
		return err
	}
	for to, dst := range x.particles {
		for from, src := range x.particles {
			if to == from {
				continue
			}
			at := int64(8 * x.stride() * x.Count * from)
			m, err := x.Message(example.End{Device: to, Memory: dst, Type: t, Origin: at},
				example.End{Device: from, Memory: src, Type: t, Origin: at})
			if err != nil {
				return err
			}
			x.messages = append(x.messages, m)
		}
	}
	return nil
}

// kicks is kernel kick on a CPU device.
func (x *nbody) kicks(all []float64, b bodies) {
	stride := int(b.Stride / 8)
	for i := b.First; i < b.First+b.Count; i++ {
		own := all[int(i)*stride:][:stride]
		var a [3]float64
		for j := range int(b.Total) {
			other := all[j*stride:][:stride]
			var d [3]float64
			for k := range d {
				d[k] = other[k] - own[k]
			}
			square := float64(d[0]*d[0]) + float64(d[1]*d[1]) + float64(d[2]*d[2]) + softening
			pull := other[mass] / float64(square*math.Sqrt(square))
			for k := range a {
				a[k] += float64(pull * d[k])
			}
		}
		for k := range a {
			own[force+k] = own[mass] * a[k]
			own[velocity+k] += float64(b.DT * a[k])
		}
	}
}

// drifts is kernel drift on a CPU device.
func (x *nbody) drifts(all []float64, b bodies) {
	stride := int(b.Stride / 8)
	for i := b.First; i < b.First+b.Count; i++ {
		own := all[int(i)*stride:][:stride]
		for k := range 3 {
			own[k] += float64(b.DT * own[velocity+k])
		}
	}
}

// steps queues all steps: half a kick first, and half a kick last.
func (x *nbody) steps() error {
	err := x.Launches(x.half)
	for i := range x.Steps {
		kick := x.kick
		if i == x.Steps-1 {
			kick = x.half
		}
		err = errors.Join(err, x.Launches(x.drift), example.Exchange(x.messages), x.Launches(kick))
	}
	return err
}

// run runs all steps, prints their time, and returns the particles of all devices: each from its own device.
func (x *nbody) run(out io.Writer) ([]float64, error) {
	whole, err := x.Typed.Time(1, func(int) error { return x.steps() })
	if err != nil {
		return nil, err
	}
	var all []float64
	part := int64(8 * x.stride() * x.Count)
	for i, m := range x.particles {
		values, err := example.Read[float64](m.Span(int64(i)*part, part))
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}
	exchange, err := x.Typed.Time(x.Steps, func(int) error { return example.Exchange(x.messages) })
	kind := "simple"
	if x.Complex {
		kind = "complex"
	}
	fmt.Fprintf(out, "nbody: %d %s particles per device, %v: %.1f us per step, %.1f us per allgather\n", x.Count, kind,
		&x.Typed, whole.Seconds()*1e6/float64(x.Steps), exchange.Seconds()*1e6)
	return all, err
}

// energy returns the energy of particles: of their motion, and of each two of them.
func (x *nbody) energy(all []float64) (e float64) {
	stride := x.stride()
	for i := 0; i < len(all); i += stride {
		p := all[i:]
		e += p[mass] * (p[velocity]*p[velocity] + p[velocity+1]*p[velocity+1] + p[velocity+2]*p[velocity+2]) / 2
		for j := 0; j < i; j += stride {
			q := all[j:]
			dx, dy, dz := q[0]-p[0], q[1]-p[1], q[2]-p[2]
			e -= p[mass] * q[mass] / math.Sqrt(dx*dx+dy*dy+dz*dz+softening)
		}
	}
	return e
}

// mostChecked is the largest number of particles whose energy is computed.
const mostChecked = 1 << 14

func newProgram() example.Program {
	x := &nbody{}
	return example.Program{
		Name: "nbody",
		Flags: func(f *flag.FlagSet) {
			x.Steps = 20
			x.Typed.Flags(f)
			f.IntVar(&x.Count, "particles", 4096, "particles of each device")
			f.Float64Var(&x.Time, "time", 0.1, "time of all steps")
			f.BoolVar(&x.Complex, "complex", false, "particles of 164 bytes, of which position and charge are sent")
		},
		Run: func(_ context.Context, s *halo.Session, out io.Writer) (sum uint32, err error) {
			defer func() { err = errors.Join(err, x.Close()) }()
			if err := x.open(s); err != nil {
				return 0, err
			}
			all, err := x.run(out)
			if err == nil && len(all)/x.stride() <= mostChecked {
				before := x.energy(x.initial())
				fmt.Fprintf(out, "energy %.6f at the begin, changed by %.2g of it\n", before, x.energy(all)/before-1)
			}
			return example.ChecksumOf(all), err
		},
	}
}

func main() { newProgram().Main() }
