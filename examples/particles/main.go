// Particles moves particles that repel each other in a box cut into segments, which they wander through: the particle
// case study of Kuster 2017. It does so by ranks on the devices, and by streams and events, checks both against a
// serial reference, bit for bit, and times them.
//
// The size of the thesis is
//
//	particles --width 416 --segments 416 --particles 41600 --steps 100
//
// for each device. With --segments 16640 --particles 1664000 --verify=false there are forty times as many.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/halox/halox/examples/internal/versus"
	"github.com/halox/halox/halo"
)

// options are what the flags say.
type options struct {
	versus.Options
	problem problem
}

func flags(args []string, out io.Writer) (o options, err error) {
	o = options{versus.Options{Steps: 100, Repeats: 5, Threads: 128, Verify: true, Limit: 20 * time.Second}, problem{}}
	f := flag.NewFlagSet("particles", flag.ContinueOnError)
	f.SetOutput(out)
	o.Options.Add(f)
	p := &o.problem
	f.Float64Var(&p.width, "width", 104, "of the box, in units of the cutoff")
	f.IntVar(&p.segments, "segments", 64, "of a device, each as high as the cutoff")
	f.IntVar(&p.particles, "particles", 1600, "of a device")
	f.IntVar(&p.capacity, "capacity", 0, "particles of a segment at most; 0 for 64 more than twice their mean")
	f.Float64Var(&p.dt, "dt", 0.01, "length of a time step")
	if err := o.Parse(f, args); err != nil {
		return o, err
	}
	return o, p.check()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "particles:", err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := flags(args, out)
	if err != nil {
		return err
	}
	session, err := halo.Open(ctx, o.Wanted())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return compare(ctx, session, o, out)
}

// compare checks and times both methods.
func compare(ctx context.Context, s *halo.Session, o options, out io.Writer) (err error) {
	n, p := len(s.Devices), o.problem
	height := n * p.segments
	start := scattered(n*p.particles, p.width, float64(height))
	b, err := newBox(s, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	r, err := newByRanks(s, b, o.Threads, o.World(p.segments, s.Devices))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.world.Close()) }()
	q, err := newByStreams(s, b, o.Threads, o.Steps, o.Limit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	var want []particle
	if o.Verify {
		want = reference(start, p.width, int64(height), p.dt, o.Steps)
	}
	var methods []*versus.Method
	for _, m := range []struct {
		versus.Method
		run func(context.Context, int) (time.Duration, error)
	}{{versus.Method{Name: "ranks", Ranks: r.world.Ranks()}, r.run}, {versus.Method{Name: "streams"}, q.run}} {
		once := func() (time.Duration, error) { return m.run(ctx, o.Steps) }
		if err := b.checked(start, want, once); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if err := m.Time(o.Repeats, func() (time.Duration, error) {
			if err := b.load(start); err != nil {
				return 0, err
			}
			return once()
		}); err != nil {
			return err
		}
		methods = append(methods, &m.Method)
	}
	if !o.CSV {
		fmt.Fprintf(out, "particles: %d steps of %d particles in a box of %g x %d on %v\n", o.Steps, len(start), p.width, height, s)
		if o.Verify {
			fmt.Fprintln(out, "both methods gave the bits of the serial reference, and lost no particle")
		}
	}
	return versus.Print(out, &o.Options, n, methods...)
}

// checked runs from a start and compares what comes out: with what is wanted, if that is not nil, else by the ids alone.
func (b *box) checked(start, want []particle, run func() (time.Duration, error)) error {
	if err := b.load(start); err != nil {
		return err
	}
	if _, err := run(); err != nil {
		return err
	}
	got, err := b.read()
	if err != nil {
		return err
	}
	if len(got) != len(start) {
		return fmt.Errorf("%d particles are left of %d: %w", len(got), len(start), ErrRun)
	}
	for i := range got {
		if got[i].Id != start[i].Id {
			return fmt.Errorf("particle %d is not there: %w", start[i].Id, ErrRun)
		}
	}
	if i := differ(got, want); want != nil && i >= 0 {
		return fmt.Errorf("particle %d is %v, the reference has %v: %w", got[i].Id, got[i], want[i], ErrRun)
	}
	return nil
}
