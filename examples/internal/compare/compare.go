// Package compare is what the examples share that do the same work in two models: by ranks, in one kernel a device
// that puts and notifies, and by streams and events, with kernels and copies that the host queues. It runs each
// method some times, holds what comes out to a reference and to each other, and prints what an iteration takes.
package compare

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/halox/halox/examples/internal/example"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// Program is an example that can be run from the command line.
type Program struct {
	Name  string
	Flags func(f *flag.FlagSet) // adds those of the example
	Check func(o Options) error // what they say
	New   func(ctx context.Context, s *halo.Session, o Options) (Problem, error)
}

// Problem is the work of an example, ready on the devices of a session. Its methods share memory and run one after
// the other.
type Problem interface {
	fmt.Stringer // what is computed, on how many ranks

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
	f.IntVar(&o.Iterations, "iterations", 20, "iterations of a sample")
	f.IntVar(&o.Samples, "samples", 3, "samples of each method, after one that is not timed")
	f.IntVar(&o.Ranks, "ranks", 0, "ranks of each device; 0 for --per-multiprocessor")
	f.IntVar(&o.PerMultiprocessor, "per-multiprocessor", 4, "ranks on each multiprocessor, or core of a host device; 0 for as many as fit")
	f.IntVar(&o.Threads, "threads", 128, "threads of a rank, a multiple of 32")
	f.DurationVar(&o.Limit, "limit", 20*time.Second, "of every wait of a rank")
	f.BoolVar(&o.CSV, "csv", false, "print the table as comma-separated values")
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
	if session.Note != "" {
		fmt.Fprintln(out, session.Note)
	}
	sum, err := p.Run(ctx, session, o, out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "checksum %08X\n", sum)
	return err
}

// Run runs the methods on the devices of a session, prints a table, and returns the checksum of what they computed,
// which is the same for all.
func (p Program) Run(ctx context.Context, s *halo.Session, o Options, out io.Writer) (sum uint32, err error) {
	problem, err := p.New(ctx, s, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, problem.Close()) }()
	fmt.Fprintf(out, "%s: %v, on %v\n", p.Name, problem, s)
	var first []float64
	var report string
	took := make([][]float64, len(o.Methods))
	for i, name := range o.Methods {
		run, err := problem.Method(name)
		if err != nil {
			return 0, err
		}
		var values []float64
		if took[i], values, err = samples(ctx, problem, run, o); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		if report, err = problem.Check(ctx, values, o.Iterations); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		if first == nil {
			first = values
		} else if err := same(first, values); err != nil {
			return 0, fmt.Errorf("%s and %s differ: %w", o.Methods[0], name, err)
		}
	}
	if err := table(out, o, took); err != nil {
		return 0, err
	}
	fmt.Fprintln(out, report)
	return example.ChecksumOf(first), nil
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

// table prints what an iteration takes by each method, and how many times as long as by ranks.
func table(out io.Writer, o Options, took [][]float64) error {
	rows := [][]string{{"method", "us an iteration, median", "least", "most", "over ranks"}}
	byRanks := slices.Index(o.Methods, Ranks)
	for i, name := range o.Methods {
		ratio := ""
		if byRanks >= 0 {
			ratio = fmt.Sprintf("%.2f", median(took[i])/median(took[byRanks]))
		}
		rows = append(rows, []string{name, digits(median(took[i])), digits(took[i][0]), digits(took[i][len(took[i])-1]), ratio})
	}
	if o.CSV {
		return csv.NewWriter(out).WriteAll(rows)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// digits writes a time with three or more digits.
func digits(us float64) string { return fmt.Sprintf("%.*f", max(0, 2-int(math.Log10(max(1, us)))), us) }

// median of numbers in order of size.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
