// Package compare is what the examples share that do the same work in two models: by ranks, in one kernel a device
// that puts and notifies, and by streams and events, with kernels and copies that the host queues. It runs each
// method some times, holds what comes out to a reference and to each other, and prints what an iteration takes.
package compare

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// Program is an example that can be run from the command line.
type Program struct {
	Name              string
	Iterations        int                    // of a sample, unless --iterations says otherwise
	PerMultiprocessor int                    // ranks, unless --per-multiprocessor says otherwise
	Flags             func(f *flag.FlagSet)  // adds those of the example
	Check             func(o Options) error  // what they say
	Scales            func(devices int) bool // with how many devices --scaling runs it; nil: any
	New               func(ctx context.Context, s *halo.Session, o Options) (Problem, error)
}

// Problem is the work of an example, ready on the devices of a session. Its methods share memory and run one after
// the other. One that has a method Model() float64 says what an iteration by ranks should take, in us.
type Problem interface {
	fmt.Stringer // what is computed, on how many ranks

	Ranks() int // of each device
	// Method makes a method ready, once.
	Method(name string) (Method, error)
	// Reset gives all memory what it has before the first iteration.
	Reset() error
	// Values returns what so many iterations have computed.
	Values(iterations int) ([]float64, error)
	// Check compares values with a reference that no method has a part in, and says how they compare. An error says
	// where they are wrong.
	Check(ctx context.Context, values []float64, iterations int) (report string, err error)
	// Close frees the problem with its methods.
	Close() error
}

// Method makes iterations, and returns what they took together.
type Method func(ctx context.Context, iterations int) (time.Duration, error)

// Parse reads the flags. What help is asked for goes to a writer, and the error then is flag.ErrHelp.
func (p Program) Parse(args []string, help io.Writer) (o Options, err error) {
	f := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	f.SetOutput(help)
	backend := f.String("backend", "", "cuda or host; GPUs where there are some if empty")
	devices := f.Int("devices", 0, "how many devices; 0 for all")
	method := f.String("method", "all", "what is timed: all, or some of "+strings.Join(Methods(), ","))
	f.IntVar(&o.Iterations, "iterations", cmp.Or(p.Iterations, 20), "iterations, or time steps, of a sample")
	f.IntVar(&o.Samples, "samples", 3, "samples of each method, after one that is not timed")
	f.IntVar(&o.Ranks, "ranks", 0, "ranks of each device; 0 for --per-multiprocessor")
	f.IntVar(&o.PerMultiprocessor, "per-multiprocessor", p.PerMultiprocessor, "ranks on each multiprocessor, or core of a host device; 0 for as many as fit")
	f.IntVar(&o.Threads, "threads", 128, "threads of a rank, a multiple of 32")
	f.DurationVar(&o.Limit, "limit", 20*time.Second, "of every wait of a rank")
	f.BoolVar(&o.Verify, "verify", true, "compare with the reference")
	f.BoolVar(&o.Scaling, "scaling", false, "run on one device, on two and so on, and print the efficiency: the time on the fewest over the time on as many")
	f.BoolVar(&o.CSV, "csv", false, "print nothing but the table, as comma-separated values")
	f.BoolVar(&o.Pauses, "pauses", false, "ranks pause now and then before they put: a test, not for times")
	p.Flags(f)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	if o.Methods, err = parseMethods(*method); err != nil {
		return o, err
	}
	o.Devices = halo.Devices{Backend: streams.Backend(*backend), Count: *devices}
	if err := o.check(); err != nil {
		return o, err
	}
	return o, p.Check(o)
}

// Main runs an example as the flags say and prints what came out; the last line is the checksum.
func Main(p Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := p.Command(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		}
		os.Exit(1)
	}
}

// Command is what Main does, for some arguments. What is wrong with these is told before any device is opened.
func (p Program) Command(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := p.Parse(args, os.Stderr)
	if err != nil {
		return err
	}
	session, err := halo.Open(ctx, o.Devices)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if session.Note != "" && !o.CSV {
		fmt.Fprintln(out, session.Note)
	}
	sum, err := p.Run(ctx, session, o, out)
	if err != nil || o.CSV {
		return err
	}
	_, err = fmt.Fprintf(out, "checksum %08X\n", sum)
	return err
}

// Run runs the methods on the devices of a session, or on one of them, two and so on, prints a table, and returns the
// checksum of what they computed on most devices, which is the same for all methods.
func (p Program) Run(ctx context.Context, s *halo.Session, o Options, out io.Writer) (sum uint32, err error) {
	var all []measured
	for _, n := range p.counts(len(s.Devices), o) {
		some := *s
		some.Devices = s.Devices[:n]
		m, err := p.measure(ctx, &some, o)
		if err != nil && o.Scaling {
			err = fmt.Errorf("on %v: %w", &some, err)
		}
		if err != nil {
			return 0, err
		}
		if !o.CSV {
			fmt.Fprintf(out, "%s: %s, on %v\n", p.Name, m.what, &some)
		}
		all = append(all, m)
	}
	if err := table(out, o, all); err != nil {
		return 0, err
	}
	for _, m := range all {
		if !o.CSV {
			fmt.Fprintln(out, m.report)
		}
	}
	return all[len(all)-1].sum, nil
}

// counts returns with how many devices the methods run.
func (p Program) counts(devices int, o Options) (all []int) {
	for n := 1; n <= devices; n++ {
		if n == devices || o.Scaling && (p.Scales == nil || p.Scales(n)) {
			all = append(all, n)
		}
	}
	if last := len(all) - 1; o.Scaling && last > 0 && p.Scales != nil && !p.Scales(devices) {
		all = all[:last]
	}
	return all
}

// measure runs the methods on all devices of a session, and holds them to the reference and to each other.
func (p Program) measure(ctx context.Context, s *halo.Session, o Options) (m measured, err error) {
	problem, err := p.New(ctx, s, o)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, problem.Close()) }()
	m = measured{what: problem.String(), report: "not compared with the reference", devices: len(s.Devices), ranks: problem.Ranks()}
	if with, ok := problem.(interface{ Model() float64 }); ok {
		m.model = with.Model()
	}
	var first []float64
	for _, name := range o.Methods {
		run, err := problem.Method(name)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		us, values, err := samples(ctx, problem, run, o)
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		m.us = append(m.us, us)
		if o.Verify {
			if m.report, err = problem.Check(ctx, values, o.Iterations); err != nil {
				return m, fmt.Errorf("%s: %w", name, err)
			}
		}
		if first == nil {
			first, m.sum = values, example.ChecksumOf(values)
		} else if err := same(first, values); err != nil {
			return m, fmt.Errorf("%s and %s differ: %w", o.Methods[0], name, err)
		}
	}
	return m, nil
}

// samples returns what an iteration took in each sample, in microseconds and in order of size, and the values of the
// last one. One run before is not timed.
func samples(ctx context.Context, p Problem, run Method, o Options) (us, values []float64, err error) {
	for i := range o.Samples + 1 {
		if err := p.Reset(); err != nil {
			return nil, nil, err
		}
		took, err := run(ctx, o.Iterations)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 {
			us = append(us, took.Seconds()*1e6/float64(o.Iterations))
		}
	}
	slices.Sort(us)
	values, err = p.Values(o.Iterations)
	return us, values, err
}

// same returns an error unless two results have the same bits.
func same(a, b []float64) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d values and %d", len(a), len(b))
	}
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return fmt.Errorf("value %d is %v and %v", i, a[i], b[i])
		}
	}
	return nil
}
