package example

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/streams"
)

// RanksHeader is CUDA C++ that comes before the source of an example by device ranks: part and block_sum.
//
//go:embed ranks.cuh
var RanksHeader string

// Ranks is an example by device ranks that can be run from the command line.
type Ranks struct {
	Name              string
	Iterations        int                   // in a run, unless --iterations says otherwise
	PerMultiprocessor int                   // device ranks, unless --per-multiprocessor says otherwise; 0: all that fit
	Flags             func(f *flag.FlagSet) // adds the flags of the example
	New               func(s *halo.Session, o RankOptions) (Problem, error)
}

// RankOptions are the flags that all examples by device ranks have.
type RankOptions struct {
	Ranks      ranks.Options // how many device ranks, and the limit of their waits
	Threads    int           // of a device rank
	Iterations int           // in a run
	Samples    int           // timed runs, after one that is not timed
	Verify     bool          // compare the result with the reference
}

// Problem is an example on the devices of a session.
type Problem interface {
	fmt.Stringer // what is computed, by how many device ranks

	// Reset sets all memory to what it holds before the first iteration.
	Reset() error
	// Run runs iterations by device ranks and returns the time that they took.
	Run(ctx context.Context, iterations int) (time.Duration, error)
	// Values returns the result after a number of iterations.
	Values(iterations int) ([]float64, error)
	// Check compares a result with an independent reference. The error says where it is wrong.
	Check(values []float64, iterations int) (report string, err error)
	// Close frees all memory. It may be called twice.
	Close() error
}

// Main runs the example as the flags say and prints the time of an iteration; the last line is the checksum.
func (e Ranks) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := e.Command(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "%s: %v\n", e.Name, err)
		}
		os.Exit(1)
	}
}

// Command parses flags, opens devices and runs the example.
func (e Ranks) Command(ctx context.Context, args []string, out io.Writer) (err error) {
	devices, o, err := e.Parse(args, os.Stderr)
	if err != nil {
		return err
	}
	session, err := halo.Open(ctx, devices)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	sum, err := e.Run(ctx, session, o, out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "checksum %08X\n", sum)
	return err
}

// Parse reads flags. Help goes to a writer; the error then is flag.ErrHelp.
func (e Ranks) Parse(args []string, help io.Writer) (devices halo.Devices, o RankOptions, err error) {
	f := flag.NewFlagSet(e.Name, flag.ContinueOnError)
	f.SetOutput(help)
	backend := f.String("backend", "", "cuda or host; GPUs if there are any if empty")
	f.IntVar(&devices.Count, "devices", 0, "how many devices; 0 for all")
	f.IntVar(&o.Iterations, "iterations", cmp.Or(e.Iterations, 20), "iterations, or time steps, of a run")
	f.IntVar(&o.Samples, "samples", 3, "timed runs, after one that is not timed")
	f.IntVar(&o.Ranks.Ranks, "ranks", 0, "device ranks of each device; 0 for --per-multiprocessor")
	f.IntVar(&o.Ranks.PerMultiprocessor, "per-multiprocessor", e.PerMultiprocessor,
		"device ranks on each multiprocessor, or core of a CPU device; 0 for as many as fit")
	f.IntVar(&o.Threads, "threads", 128, "threads of a device rank, a multiple of 32")
	f.DurationVar(&o.Ranks.Limit, "limit", 20*time.Second, "limit of every wait of a device rank")
	f.BoolVar(&o.Verify, "verify", true, "compare the result with the reference")
	e.Flags(f)
	if err := f.Parse(args); err != nil {
		return devices, o, err
	}
	devices.Backend = streams.Backend(*backend)
	if f.NArg() > 0 {
		return devices, o, fmt.Errorf("%q is not a flag", f.Arg(0))
	}
	if o.Ranks.Limit <= 0 {
		return devices, o, fmt.Errorf("--limit %v: must be above 0", o.Ranks.Limit)
	}
	if o.Threads%32 != 0 {
		return devices, o, fmt.Errorf("--threads %d: must be a multiple of 32", o.Threads)
	}
	return devices, o, errors.Join(
		Within("iterations", int64(o.Iterations), 1, 1<<20),
		Within("samples", int64(o.Samples), 1, 1000),
		Within("threads", int64(o.Threads), 32, 512),
		Within("ranks", int64(o.Ranks.Ranks), 0, 1<<16),
		Within("per-multiprocessor", int64(o.Ranks.PerMultiprocessor), 0, 64),
	)
}

// Within returns an error unless low <= value <= high, the value of a flag.
func Within(flag string, value, low, high int64) error {
	if value < low || value > high {
		return fmt.Errorf("--%s must be between %d and %d, got %d", flag, low, high, value)
	}
	return nil
}

// Run runs the example on the devices of a session, prints the time of an iteration and how the result compares with
// the reference, and returns the checksum of the result.
func (e Ranks) Run(ctx context.Context, s *halo.Session, o RankOptions, out io.Writer) (sum uint32, err error) {
	p, err := e.New(s, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	us := make([]float64, o.Samples+1)
	for i := range us {
		if err := p.Reset(); err != nil {
			return 0, err
		}
		took, err := p.Run(ctx, o.Iterations)
		if err != nil {
			return 0, err
		}
		us[i] = took.Seconds() * 1e6 / float64(o.Iterations)
	}
	us = us[1:]
	slices.Sort(us)
	fmt.Fprintf(out, "%s: %v, on %v\n%.4g us per iteration, %.4g to %.4g in %d runs of %d\n",
		e.Name, p, s, us[len(us)/2], us[0], us[len(us)-1], len(us), o.Iterations)
	values, err := p.Values(o.Iterations)
	if err == nil && o.Verify {
		var report string
		report, err = p.Check(values, o.Iterations)
		fmt.Fprintln(out, report)
	}
	return ChecksumOf(values), err
}

// Timed runs a program once and returns the time between its StartTimer and StopTimer on the slowest device. The device
// ranks of device i get all[i].
func Timed[T any](ctx context.Context, w *ranks.World, all []T) (slowest time.Duration, err error) {
	if err := ranks.Run(ctx, w, all); err != nil {
		return 0, err
	}
	for i, d := range w.Devices() {
		took := w.Timings(i)
		if len(took) != 1 {
			return 0, fmt.Errorf("device ranks of %v have timed %d times", d, len(took))
		}
		slowest = max(slowest, took[0])
	}
	return slowest, nil
}

// Part is part of ranks.cuh: where the i-th of some parts of n elements begins.
func Part(n, parts, i int64) int64 { return n * i / parts }

// BlockSum is block_sum of ranks.cuh: the sum of what each thread has. It overwrites threads.
func BlockSum(threads []float64) (sum float64) {
	for warp := 0; warp < len(threads); warp += 32 {
		lanes := threads[warp:][:32]
		for d := 16; d > 0; d /= 2 {
			for i := range d {
				lanes[i] += lanes[i+d]
			}
		}
		if warp == 0 {
			sum = lanes[0]
		} else {
			sum += lanes[0]
		}
	}
	return sum
}

// Hash returns 64 bits that depend on two numbers and look random: the finalizer of SplitMix64 (Steele, Lea and Flood
// 2014). Any part of a program can make the same data again.
func Hash(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b*0xd1342543de82ef95 + 0x632be59bd9b4e019
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Uniform returns a number from 0 up to 1 for a hash.
func Uniform(hash uint64) float64 { return float64(hash>>11) / (1 << 53) }
