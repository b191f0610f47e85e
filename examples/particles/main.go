// Particles moves particles that repel each other in a box cut into segments, which they wander through: the particle
// case study of Kuster 2017. It does so by ranks on the devices, by streams and events, and by graphs of these, checks
// all against a serial reference, bit for bit, and times them.
//
// With --size thesis each device has what it has there. With --size full there are forty times as many, which give all
// multiprocessors of a GPU work for long; --verify=false leaves out the reference, which takes the host minutes then.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
)

// run is a box of particles on the devices of a session, and how it is stepped.
type run struct {
	settings
	box     *box
	world   *ranks.World
	queue   *byStreams // nil until it is needed
	options compare.Options
	start   []particle
	want    map[int][]particle // the reference, by steps
}

func (s *settings) open(_ context.Context, session *halo.Session, o compare.Options) (compare.Problem, error) {
	n, p := len(session.Devices), s.problem()
	b, err := newBox(session, p)
	if err != nil {
		return nil, err
	}
	x := &run{settings: *s, box: b, options: o, want: map[int][]particle{}}
	x.start = scattered(n*p.particles, p.width, float64(n*p.segments))
	if x.world, err = compare.World(session, b.program(o), o, 1, p.segments); err == nil {
		b.open.Add(x.world)
	}
	return compare.Opened(x, err)
}

// String says what is moved.
func (x *run) String() string {
	p := x.problem()
	return fmt.Sprintf("%d particles in a box of %g x %d by %d ranks of %d threads a device", len(x.start), p.width, x.height(), x.world.Ranks(), x.options.Threads)
}

func (x *run) height() int64 { return x.box.parts[0].All }

// Ranks returns how many a device has.
func (x *run) Ranks() int { return x.world.Ranks() }

// Method makes a method ready.
func (x *run) Method(name string) (compare.Method, error) {
	if name == compare.Ranks {
		return x.box.byRanks(x.world), nil
	}
	if x.queue == nil {
		q, err := newByStreams(x.world, x.box, x.options.Threads)
		if err != nil {
			return nil, err
		}
		x.queue = q
	}
	return x.queue.Method(name), nil
}

// Reset puts all particles where they begin.
func (x *run) Reset() error {
	if x.box.placed {
		return x.box.upload()
	}
	return x.box.load(x.start)
}

// Values returns the places and velocities of all particles, in order of ids. It is an error if one is lost.
func (x *run) Values(int) ([]float64, error) {
	all, err := x.box.read()
	if err == nil {
		err = lost(all, x.start)
	}
	return numbers(all), err
}

// lost returns an error unless particles have the ids of those that they began with.
func lost(got, start []particle) error {
	if len(got) != len(start) {
		return fmt.Errorf("%d particles are left of %d: %w", len(got), len(start), ErrRun)
	}
	for i := range got {
		if got[i].Id != start[i].Id {
			return fmt.Errorf("particle %d is not there: %w", start[i].Id, ErrRun)
		}
	}
	return nil
}

// numbers returns what particles have, but for their ids.
func numbers(all []particle) (values []float64) {
	for _, p := range all {
		values = append(values, p.X, p.Y, p.Vx, p.Vy)
	}
	return values
}

// Check compares with the reference, bit for bit.
func (x *run) Check(_ context.Context, values []float64, steps int) (string, error) {
	if x.want[steps] == nil {
		x.want[steps] = reference(x.start, x.problem().width, x.height(), x.dt, steps)
	}
	for i, want := range numbers(x.want[steps]) {
		if math.Float64bits(values[i]) != math.Float64bits(want) {
			return "", fmt.Errorf("%s of particle %d is %v after %d steps, the reference has %v: %w", [...]string{"x", "y", "vx", "vy"}[i%4], x.start[i/4].Id, values[i], steps, want, ErrRun)
		}
	}
	return fmt.Sprintf("%d particles after %d steps: none is lost, all have the bits of the serial reference", len(x.start), steps), nil
}

// Close frees all. Closing twice is no error.
func (x *run) Close() error { return x.box.Close() }

func newProgram() compare.Program {
	var s settings
	return compare.Program{Name: "particles", Iterations: 100, Flags: s.flags, Check: func(compare.Options) error { return s.check() }, New: s.open}
}

func main() { compare.Main(newProgram()) }

// flags adds those of this example.
func (s *settings) flags(f *flag.FlagSet) {
	f.StringVar(&s.size, "size", "small", "of a device: small, thesis or full; what follows says otherwise where it is not 0")
	f.Float64Var(&s.width, "width", 0, "of the box, in units of the cutoff")
	f.IntVar(&s.segments, "segments", 0, "of a device, each as high as the cutoff")
	f.IntVar(&s.particles, "particles", 0, "of a device")
	f.IntVar(&s.capacity, "capacity", 0, "particles of a segment at most; 0 for 64 more than twice their mean")
	f.Float64Var(&s.dt, "dt", 0.01, "length of a time step")
}
