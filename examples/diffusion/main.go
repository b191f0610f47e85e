// Diffusion makes steps of horizontal diffusion with a flux limiter on levels of a plane: the stencil case study of
// Kuster 2017. It does so by ranks on the devices, under a scheme of halox, and under scheme graph, which orders streams
// and events in graphs; it checks all against a serial reference, bit for bit, and times them.
//
// With --size thesis each device has the points that it has there. With --size full it has 1024 x 1024 x 80, whose fields
// take 3.1 GiB, far more than a GPU caches; --verify=false leaves out the reference, which takes the host minutes then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"

	"github.com/halox/halox/examples/internal/compare"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// settings are what the flags say.
type settings struct {
	problem
	size, scheme, path string
}

// run is values on the devices of a session, and how they are stepped.
type run struct {
	settings
	session *halo.Session
	options compare.Options
	byRanks *byRanks
	now     stepper      // the method in use
	first   grid         // before the first step
	want    map[int]grid // the reference, by steps
}

// stepper is a method: it holds values, and steps them.
type stepper interface {
	load(u grid) error
	read() (grid, error)
	Close() error
}

func (s *settings) open(_ context.Context, session *halo.Session, o compare.Options) (compare.Problem, error) {
	x := &run{settings: *s, session: session, options: o, want: map[int]grid{}}
	r, err := newByRanks(session, s.problem, o) // which says where there is no room
	if err != nil {
		return nil, err
	}
	x.byRanks = r
	x.first = start(s.nx, s.ny*len(session.Devices), s.nz)
	return x, nil
}

// String says what is stepped.
func (x *run) String() string {
	return fmt.Sprintf("%d x %d x %d points by %d ranks of %d threads a device, streams under scheme %s", x.first.nx, x.first.ny, x.first.nz, x.Ranks(), x.options.Threads, x.scheme)
}

// Ranks returns how many a device has.
func (x *run) Ranks() int { return x.byRanks.world.Ranks() }

// Method makes a method ready. Schemes hold their own values, one at a time.
func (x *run) Method(name string) (compare.Method, error) {
	if x.now != nil && x.now != stepper(x.byRanks) {
		if err := x.now.Close(); err != nil {
			return nil, err
		}
	}
	x.now = x.byRanks
	if name == compare.Ranks {
		return x.byRanks.method(), nil
	}
	o := scheme.Options{Scheme: scheme.Scheme(x.scheme), Path: p2p.Path(x.path), Limit: x.options.Limit, Steps: int64(x.options.Iterations)}
	if name == compare.Graphs {
		o.Scheme = scheme.Graph
	}
	b, err := newByStreams(context.Background(), x.session, x.problem, o)
	if err != nil {
		return nil, err
	}
	x.now = b
	return b.run, nil
}

// Reset gives all points their first values.
func (x *run) Reset() error { return x.now.load(x.first) }

// Values returns those of all points.
func (x *run) Values(int) ([]float64, error) {
	u, err := x.now.read()
	return u.values, err
}

// errDiffers says that a method gave other values than the reference.
var errDiffers = errors.New("not what the reference has")

// Check compares with the reference, bit for bit.
func (x *run) Check(_ context.Context, values []float64, steps int) (string, error) {
	if _, made := x.want[steps]; !made {
		x.want[steps] = reference(x.first, steps)
	}
	want := x.want[steps]
	for i, v := range values {
		if math.Float64bits(v) != math.Float64bits(want.values[i]) {
			return "", fmt.Errorf("%v at %d, %d, %d after %d steps, want %v: %w", v, i%want.nx, i/want.nx%want.ny, i/want.nx/want.ny, steps, want.values[i], errDiffers)
		}
	}
	return fmt.Sprintf("%d points after %d steps: all have the bits of the serial reference", len(values), steps), nil
}

// Close frees all. Closing twice is no error.
func (x *run) Close() error {
	err := x.byRanks.Close()
	if x.now != nil {
		err = errors.Join(err, x.now.Close())
	}
	return err
}

// flags adds those of this example.
func (s *settings) flags(f *flag.FlagSet) {
	f.StringVar(&s.size, "size", "64x40x26", "points of a device along x, y and the levels, NXxNYxNZ, or thesis or full")
	f.StringVar(&s.scheme, "scheme", string(scheme.Fused), fmt.Sprintf("of method streams: auto or one of %v", scheme.All()))
	f.StringVar(&s.path, "path", string(p2p.Auto), "over which messages of methods streams and graph go: "+p2p.Choices(p2p.LinksFirst()))
}

func (s *settings) check(compare.Options) (err error) {
	s.problem, err = parseSize(s.size)
	return err
}

func newProgram() compare.Program {
	var s settings
	return compare.Program{Name: "diffusion", Iterations: 40, Flags: s.flags, Check: s.check, New: s.open}
}

func main() { compare.Main(newProgram()) }
