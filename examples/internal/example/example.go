// Package example is what the examples share: their flags, the run, and the checksum of the result.
package example

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// Example is a simulation that can be run from the command line.
type Example struct {
	Name  string
	Size  []int // points along each axis, unless --size says otherwise
	Steps int   // unless --steps says otherwise
	New   func(ctx context.Context, s *halo.Session, size []int) (*Simulation, error)
}

// Simulation is an example on the devices of a session, at its first level.
type Simulation struct {
	Step   *scheme.Step
	Fields []*scheme.Variable // of which the checksum is made, in order
	// Report, if set, describes the result in one line.
	Report func(x *scheme.Runner) (string, error)
}

// Main runs the example as the flags say and prints its speed; the last line is the checksum.
func Main(e Example) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := e.main(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "%s: %v\n", e.Name, err)
		}
		os.Exit(1)
	}
}

// options are what the flags say.
type options struct {
	devices halo.Devices
	size    []int
	run     scheme.Options
}

func (e Example) flags(args []string) (o options, err error) {
	f := flag.NewFlagSet(e.Name, flag.ContinueOnError)
	name := f.String("scheme", string(scheme.Auto), fmt.Sprintf("how steps are ordered: auto or one of %v", scheme.All()))
	path := f.String("path", string(p2p.Auto), "over which messages go: "+p2p.Choices(p2p.LinksFirst()))
	backend := f.String("backend", "", "cuda or host; GPUs where there are some if empty")
	devices := f.Int("devices", 0, "how many devices; 0 for all")
	size := f.String("size", "", "points along each axis, N or "+strings.Join(strings.Split("NNN"[:len(e.Size)], ""), "x"))
	steps := f.Int64("steps", int64(e.Steps), "time steps")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	if o.size, err = e.parseSize(*size); err != nil {
		return o, err
	}
	o.devices = halo.Devices{Backend: streams.Backend(*backend), Count: *devices}
	o.run = scheme.Options{Scheme: scheme.Scheme(*name), Path: p2p.Path(*path), Steps: *steps}
	return o, nil
}

// parseSize reads N or a number for each axis.
func (e Example) parseSize(text string) (size []int, err error) {
	if text == "" {
		return e.Size, nil
	}
	for _, field := range strings.Split(text, "x") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--size %s: %q is not a number of points", text, field)
		}
		size = append(size, n)
	}
	for len(size) > 0 && len(size) < len(e.Size) && !strings.Contains(text, "x") {
		size = append(size, size[0])
	}
	if len(size) != len(e.Size) {
		return nil, fmt.Errorf("--size %s: %d numbers for %d axes", text, len(size), len(e.Size))
	}
	return size, nil
}

func (e Example) main(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := e.flags(args)
	if err != nil {
		return err
	}
	session, err := halo.Open(ctx, o.devices)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	sum, err := e.Run(ctx, session, o.size, o.run, out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "checksum %08X\n", sum)
	return err
}

// Run runs the example and returns the checksum of its fields at the last time level.
func (e Example) Run(
	ctx context.Context, session *halo.Session, size []int, o scheme.Options, out io.Writer,
) (uint32, error) {
	sim, err := e.New(ctx, session, size)
	if err != nil {
		return 0, err
	}
	x, err := scheme.New(ctx, session, sim.Step, o)
	if err != nil {
		return 0, err
	}
	res, err := x.Steps(ctx, o.Steps)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "%s: %d steps of %s points on %v, scheme %s: %.4g updates/s\n", e.Name, res.Steps,
		strings.Trim(strings.ReplaceAll(fmt.Sprint(size), " ", " x "), "[]"), session, res.Scheme, res.UpdatesPerSecond)
	if sim.Report != nil {
		text, err := sim.Report(x)
		if err != nil {
			return 0, err
		}
		fmt.Fprintln(out, text)
	}
	return checksum(x.Done(), sim.Fields...)
}
