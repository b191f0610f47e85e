// Package versus is what the examples that run by device ranks and by streams and events share: the flags of
// both, repeated timings, and the table that compares them.
package versus

import (
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/streams"
)

// Options are what the flags that all such examples take say.
type Options struct {
	Backend           string
	Devices           int // 0: all
	Steps             int // of a run
	Repeats           int // timed runs of each method, after one that is checked
	Ranks             int // of a device; 0: PerMultiprocessor says
	PerMultiprocessor int // ranks; 0: as many as fit
	Threads           int // of a rank
	Verify            bool
	CSV               bool
	Limit             time.Duration // of every wait
}

// Add adds the flags to a set. What o holds are the defaults.
func (o *Options) Add(f *flag.FlagSet) {
	f.StringVar(&o.Backend, "backend", o.Backend, "cuda or host; GPUs where there are some if empty")
	f.IntVar(&o.Devices, "devices", o.Devices, "how many devices; 0 for all")
	f.IntVar(&o.Steps, "steps", o.Steps, "time steps of a run")
	f.IntVar(&o.Repeats, "repeats", o.Repeats, "timed runs of each method")
	f.IntVar(&o.Ranks, "ranks", o.Ranks, "ranks of a device; 0 for as --per-multiprocessor says")
	f.IntVar(&o.PerMultiprocessor, "per-multiprocessor", o.PerMultiprocessor, "ranks of a multiprocessor; 0 for as many as fit")
	f.IntVar(&o.Threads, "threads", o.Threads, "threads of a rank, a multiple of 32")
	f.BoolVar(&o.Verify, "verify", o.Verify, "compare the first run of each method with a serial reference, bit for bit")
	f.BoolVar(&o.CSV, "csv", o.CSV, "print the table as comma-separated values")
	f.DurationVar(&o.Limit, "limit", o.Limit, "of every wait")
}

// Parse parses the arguments into the flags of a set, and refuses others and numbers that make no sense.
func (o *Options) Parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no flag", f.Arg(0))
	}
	switch {
	case o.Devices < 0 || o.Devices > ranks.MaxDevices:
		return fmt.Errorf("--devices %d: 0 to %d are possible", o.Devices, ranks.MaxDevices)
	case o.Steps < 1:
		return fmt.Errorf("--steps %d: at least 1 is possible", o.Steps)
	case o.Repeats < 1:
		return fmt.Errorf("--repeats %d: at least 1 is possible", o.Repeats)
	case o.Ranks < 0 || o.PerMultiprocessor < 0:
		return fmt.Errorf("--ranks %d, --per-multiprocessor %d: numbers below 0", o.Ranks, o.PerMultiprocessor)
	case o.Threads < 32 || o.Threads > 1024 || o.Threads%32 != 0:
		return fmt.Errorf("--threads %d: a multiple of 32 up to 1024 is possible", o.Threads)
	case o.Limit <= 0:
		return fmt.Errorf("--limit %v: a time above 0 is possible", o.Limit)
	}
	return nil
}

// Wanted are the devices to open.
func (o *Options) Wanted() halo.Devices {
	return halo.Devices{Backend: streams.Backend(o.Backend), Count: o.Devices}
}

// World are the options of ranks of which a device has use for so many at most.
func (o *Options) World(most int, devices []*streams.Device) ranks.Options {
	w := ranks.Options{Ranks: o.Ranks, PerMultiprocessor: o.PerMultiprocessor, Limit: o.Limit}
	if w.Ranks == 0 && w.PerMultiprocessor > 0 {
		w.Ranks = w.PerMultiprocessor * devices[0].Cores
	}
	w.Ranks = min(w.Ranks, most)
	return w
}

// Method is one way to make the steps of a run.
type Method struct {
	Name  string
	Ranks int // of a device; 0: it has none
	Took  []time.Duration
}

// Time times repeated runs of a method.
func (m *Method) Time(repeats int, run func() (time.Duration, error)) error {
	for range repeats {
		took, err := run()
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		m.Took = append(m.Took, took)
	}
	return nil
}

// median is that of the runs, in microseconds a step.
func (m *Method) median(steps int) float64 {
	all := slices.Sorted(slices.Values(m.Took))
	middle := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	return middle.Seconds() * 1e6 / float64(steps)
}

// least and most are those of the runs, in microseconds a step.
func (m *Method) least(steps int) float64 {
	return slices.Min(m.Took).Seconds() * 1e6 / float64(steps)
}
func (m *Method) most(steps int) float64 { return slices.Max(m.Took).Seconds() * 1e6 / float64(steps) }

// Print prints the time of a step by each method, the median and the range of its runs, and by how much each is
// quicker than the last one.
func Print(to io.Writer, o *Options, devices int, methods ...*Method) error {
	head := []string{"method", "devices", "ranks a device", "step [us]", "least", "most", "speedup"}
	last := methods[len(methods)-1].median(o.Steps)
	rows := [][]string{head}
	for _, m := range methods {
		count := "-"
		if m.Ranks > 0 {
			count = strconv.Itoa(m.Ranks)
		}
		us := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
		rows = append(rows, []string{m.Name, strconv.Itoa(devices), count, us(m.median(o.Steps)), us(m.least(o.Steps)), us(m.most(o.Steps)), us(last / m.median(o.Steps))})
	}
	if o.CSV {
		return csv.NewWriter(to).WriteAll(rows)
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}
