// Package example is the command line of the examples: flags, devices, what is printed, and the checksum of the result.
package example

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
)

// Program is an example that can be run from the command line.
type Program struct {
	Name  string
	Flags func(f *flag.FlagSet) // adds flags to those of all examples
	// Run runs the example with the flags, prints the results, and returns their checksum.
	Run func(ctx context.Context, s *halo.Session, out io.Writer) (sum uint32, err error)
	// MaxDevices limits how many devices are used by default; 0 for no limit.
	MaxDevices int
}

// Main runs the program with the flags of the command line; the last printed line is the checksum.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := p.Command(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		}
		os.Exit(1)
	}
}

// Command parses flags, opens devices and runs the program.
func (p Program) Command(ctx context.Context, args []string, out io.Writer) (err error) {
	devices, err := p.Parse(args, os.Stderr)
	if err != nil {
		return err
	}
	session, err := halo.Open(ctx, devices)
	if err == nil && devices.Count == 0 && p.MaxDevices > 0 && len(session.Devices) > p.MaxDevices {
		devices.Count = p.MaxDevices
		if err = session.Close(); err == nil {
			session, err = halo.Open(ctx, devices)
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	sum, err := p.Run(ctx, session, out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "checksum %08X\n", sum)
	return err
}

// Parse parses flags. It prints help to a writer; the error is then flag.ErrHelp.
func (p Program) Parse(args []string, help io.Writer) (devices halo.Devices, err error) {
	f := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	f.SetOutput(help)
	f.StringVar((*string)(&devices.Backend), "backend", "", "cuda or host; default: cuda if there is a GPU")
	f.IntVar(&devices.Count, "devices", 0, "number of devices; 0: all")
	p.Flags(f)
	if err := f.Parse(args); err != nil {
		return devices, err
	}
	if f.NArg() > 0 {
		return devices, fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	return devices, nil
}

// Steps is an example of time steps for any scheme.
type Steps struct {
	Name  string
	Size  []int // default points along each axis
	Steps int64 // default number of steps
	New   func(ctx context.Context, s *halo.Session, size []int) (*Simulation, error)
}

// Simulation is the initial fields of an example on the devices of a session, and its step.
type Simulation struct {
	Step   *scheme.Step
	Fields []*scheme.Variable // in the order of the checksum; elements are float64
	// Report, if set, describes the result in one line.
	Report func(x *scheme.Runner) (string, error)
}

// Main runs the example with the flags of the command line.
func (e Steps) Main() {
	o := scheme.Options{Scheme: scheme.Auto, Path: p2p.Auto, Steps: e.Steps}
	size := ""
	Program{
		Name: e.Name,
		Flags: func(f *flag.FlagSet) {
			f.StringVar((*string)(&o.Scheme), "scheme", string(o.Scheme),
				fmt.Sprintf("scheme of the steps: auto or one of %v", scheme.All()))
			f.StringVar((*string)(&o.Path), "path", string(o.Path),
				"path of messages: "+p2p.Choices(p2p.Paths()))
			f.StringVar(&size, "size", "", "points along each axis, N or "+strings.Repeat("xN", len(e.Size))[1:])
			f.Int64Var(&o.Steps, "steps", o.Steps, "time steps")
		},
		Run: func(ctx context.Context, s *halo.Session, out io.Writer) (uint32, error) {
			points, err := e.parseSize(size)
			if err != nil {
				return 0, err
			}
			return e.Run(ctx, s, points, o, out)
		},
	}.Main()
}

// parseSize parses N or a number for each axis.
func (e Steps) parseSize(text string) (size []int, err error) {
	if text == "" {
		return e.Size, nil
	}
	numbers := strings.Split(text, "x")
	if len(numbers) != 1 && len(numbers) != len(e.Size) {
		return nil, fmt.Errorf("--size: must have %d numbers, one per axis, got %d: %s",
			len(e.Size), len(numbers), text)
	}
	for axis := range e.Size {
		n, err := strconv.Atoi(numbers[min(axis, len(numbers)-1)])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--size: must be a number of points along each axis, got %s", text)
		}
		size = append(size, n)
	}
	return size, nil
}

// Run runs the example, prints its speed and returns the checksum of its fields at the last time level.
func (e Steps) Run(
	ctx context.Context, session *halo.Session, size []int, o scheme.Options, out io.Writer,
) (uint32, error) {
	sim, err := e.New(ctx, session, size)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	x, err := scheme.New(ctx, session, sim.Step, o)
	if err != nil {
		return 0, err
	}
	if trials := x.Trials(); len(trials) > 0 {
		fmt.Fprintf(out, "tried the schemes for %.2f s: %v\n", time.Since(begin).Seconds(), trials)
	}
	res, err := x.Steps(ctx, o.Steps)
	if err != nil {
		return 0, err
	}
	if res.Stopped != scheme.StoppedSteps {
		return 0, fmt.Errorf("%s: the run stopped early, at step %d: %s", e.Name, res.Steps, res.Stopped)
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
	var all [][]float64
	for _, v := range sim.Fields {
		values, err := readAll(v.Level(x.Done()))
		if err != nil {
			return 0, err
		}
		all = append(all, values...)
	}
	return ChecksumOf(all...), nil
}

// readAll returns the owned points of each component of a field.
func readAll(f *halo.Field) (all [][]float64, err error) {
	for c := range max(1, f.Spec.Components) {
		one := f
		if f.Spec.SoA {
			if one, err = f.Component(c); err != nil {
				return nil, err
			}
		}
		values, err := halo.ReadAll[float64](one)
		if err != nil {
			return nil, err
		}
		all = append(all, values)
	}
	return all, nil
}

// ChecksumOf returns the CRC32C of the little-endian bytes of values.
func ChecksumOf(all ...[]float64) uint32 {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for _, values := range all {
		_ = binary.Write(sum, binary.LittleEndian, values) // a hash never returns an error
	}
	return sum.Sum32()
}
