// Diffusion makes steps of horizontal diffusion with a flux limiter on levels of a plane: the stencil case study of
// Kuster 2017. It does so by ranks on the devices, and under a scheme of halox, by streams and events, checks both
// against a serial reference, bit for bit, and times them.
//
// The size of the thesis is
//
//	diffusion --size 128x320x26 --steps 200
//
// for each device. With --size 2048x2048x80 --verify=false the fields of a device fill 12.5 GiB by either method.
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
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// options are what the flags say.
type options struct {
	versus.Options
	problem problem
	scheme  scheme.Options
}

func flags(args []string, out io.Writer) (o options, err error) {
	o = options{Options: versus.Options{Steps: 40, Repeats: 5, Threads: 128, Verify: true, Limit: 20 * time.Second}}
	f := flag.NewFlagSet("diffusion", flag.ContinueOnError)
	f.SetOutput(out)
	o.Options.Add(f)
	size := f.String("size", "64x40x26", "points of a device along x, y and the levels, NXxNYxNZ")
	name := f.String("scheme", string(scheme.Fused), fmt.Sprintf("of the method by streams: auto or one of %v", scheme.All()))
	path := f.String("path", string(p2p.Auto), "over which its messages go: "+p2p.Choices(p2p.LinksFirst()))
	if err := o.Parse(f, args); err != nil {
		return o, err
	}
	o.scheme = scheme.Options{Scheme: scheme.Scheme(*name), Path: p2p.Path(*path), Limit: o.Limit, Steps: int64(o.Steps)}
	o.problem, err = parseSize(*size)
	return o, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "diffusion:", err)
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
	p, n := o.problem, len(s.Devices)
	first := start(p.nx, p.ny*n, p.nz)
	var want *grid
	if o.Verify {
		after := reference(first, o.Steps)
		want = &after
	}
	r, err := newByRanks(s, p, &o.Options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err := newByStreams(ctx, s, p, o.scheme)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	var methods []*versus.Method
	for _, m := range []struct {
		versus.Method
		stepper
	}{{versus.Method{Name: "ranks", Ranks: r.world.Ranks()}, r}, {versus.Method{Name: "streams"}, b}} {
		if err := checked(ctx, m.stepper, first, want, o.Steps); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if err := m.Time(o.Repeats, func() (time.Duration, error) { return m.run(ctx, o.Steps) }); err != nil {
			return err
		}
		methods = append(methods, &m.Method)
	}
	if !o.CSV {
		fmt.Fprintf(out, "diffusion: %d steps of %d x %d x %d points on %v, streams under scheme %s\n", o.Steps, p.nx, p.ny*n, p.nz, s, o.scheme.Scheme)
		if o.Verify {
			fmt.Fprintln(out, "both methods gave the bits of the serial reference")
		}
	}
	return versus.Print(out, &o.Options, n, methods...)
}
