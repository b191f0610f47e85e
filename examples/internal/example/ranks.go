package example

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

//go:embed ranks.cuh
var ranksHeader string

// Source is the source of an example with device ranks, after part and block_sum of ranks.cuh. THREADS is the number of
// threads of a device rank.
func Source(name, text string, threads int, mirrors ...kernels.Mirror) kernels.Source {
	return kernels.Source{
		Name: name, Text: ranksHeader + text, Defines: []string{fmt.Sprintf("THREADS=%d", threads)}, Mirrors: mirrors,
	}
}

// Setup is the devices and flags of an example with device ranks, and the resources to close at its end.
type Setup struct {
	*halo.Session
	Options    ranks.Options // number of device ranks, and the limit of their waits
	Threads    int           // of a device rank
	Iterations int           // in a run
	Samples    int           // timed runs, after one that is not timed
	Verify     bool          // compare the result with the reference
	streams.Resources
}

// Close frees the worlds and memory of World and Alloc. The session stays open.
func (s *Setup) Close() error { return s.Resources.Close() }

// World creates the ranks of a program.
func (s *Setup) World(p ranks.Program) (*ranks.World, error) {
	p.Threads = s.Threads
	w, err := ranks.New(s.Compiler, s.Devices, s.Links, p, s.Options)
	if err == nil {
		s.Add(w)
	}
	return w, err
}

// Alloc allocates memory of a device.
func (s *Setup) Alloc(d *streams.Device, bytes int64) (*streams.Memory, error) {
	m, err := d.Alloc(bytes)
	if err == nil {
		s.Add(m)
	}
	return m, err
}

// Upload allocates device memory and fills it with values.
func Upload[T any](s *Setup, d *streams.Device, values []T) (*streams.Memory, error) {
	m, err := streams.Upload(d, values)
	if err == nil {
		s.Add(m)
	}
	return m, err
}

// Problem is an example on the devices of a setup.
type Problem interface {
	fmt.Stringer // description of the problem, with the number of device ranks

	// Reset sets all memory to its initial content.
	Reset() error
	// Run runs iterations with device ranks and returns their time.
	Run(ctx context.Context, iterations int) (time.Duration, error)
	// Values returns the result after a number of iterations.
	Values(iterations int) ([]float64, error)
	// Check compares a result with an independent reference. The error describes the first difference.
	Check(values []float64, iterations int) (report string, err error)
}

// Ranks returns a program with device ranks and additional flags; the setup has the defaults of the common flags. It
// prints the time of an iteration, and compares the result with the reference.
func Ranks(name string, s Setup, flags func(f *flag.FlagSet), open func(s *Setup) (Problem, error)) Program {
	all := func(f *flag.FlagSet) {
		f.IntVar(&s.Iterations, "iterations", s.Iterations, "iterations, or time steps, per run")
		f.IntVar(&s.Samples, "samples", 3, "timed runs, after one that is not timed")
		f.IntVar(&s.Options.Ranks, "ranks", 0, "device ranks of each device; 0 for --per-multiprocessor")
		f.IntVar(&s.Options.PerMultiprocessor, "per-multiprocessor", s.Options.PerMultiprocessor,
			"device ranks on each multiprocessor, or core of a CPU device; 0 for as many as fit")
		f.IntVar(&s.Threads, "threads", 128, "threads of a device rank, a multiple of 32")
		f.DurationVar(&s.Options.Limit, "limit", 20*time.Second, "time limit of every wait of a device rank")
		f.BoolVar(&s.Verify, "verify", true, "compare the result with the reference")
		flags(f)
	}
	return Program{Name: name, Flags: all, MaxDevices: ranks.MaxDevices, Run: func(
		ctx context.Context, session *halo.Session, out io.Writer,
	) (sum uint32, err error) {
		if s.Iterations < 1 || s.Samples < 1 {
			return 0, errors.New("--iterations and --samples must be at least 1")
		}
		s.Session = session
		defer func() { err = errors.Join(err, s.Close()) }()
		p, err := open(&s)
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(out, "%s: %v, on %v\n", name, p, session)
		return s.run(ctx, p, out)
	}}
}

func (s *Setup) run(ctx context.Context, p Problem, out io.Writer) (sum uint32, err error) {
	us := make([]float64, s.Samples+1)
	for i := range us {
		if err := p.Reset(); err != nil {
			return 0, err
		}
		took, err := p.Run(ctx, s.Iterations)
		if err != nil {
			return 0, err
		}
		us[i] = took.Seconds() * 1e6 / float64(s.Iterations)
	}
	us = us[1:]
	slices.Sort(us)
	fmt.Fprintf(out, "%.4g us per iteration, %.4g to %.4g in %d runs of %d\n",
		us[len(us)/2], us[0], us[len(us)-1], len(us), s.Iterations)
	values, err := p.Values(s.Iterations)
	if err == nil && s.Verify {
		var report string
		report, err = p.Check(values, s.Iterations)
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
	for i := range w.Devices() {
		slowest = max(slowest, w.Timings(i)[0])
	}
	return slowest, nil
}

// Copy copies memory to or from a device, or within it, and waits until it is done.
func Copy(d *streams.Device, to, from streams.Span) error {
	s, err := d.NewStream(streams.Normal)
	if err != nil {
		return err
	}
	return errors.Join(s.Copy(to, from), s.Sync(streams.UploadLimit), s.Close())
}

// Read returns the values in memory of a device.
func Read[T any](from streams.Span) ([]T, error) {
	d := from.Memory.Device()
	host, err := d.AllocPinned(from.Length)
	if err != nil {
		return nil, err
	}
	err = Copy(d, host.All(), from)
	all := slices.Clone(streams.View[T](host.Bytes()))
	return all, errors.Join(err, host.Close())
}

// Part is part of ranks.cuh: the start of the i-th of several parts of n elements.
func Part(n, parts, i int64) int64 { return n * i / parts }

// BlockSum is block_sum of ranks.cuh: the sum of the values of all threads. It overwrites threads.
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

// Hash returns 64 pseudorandom bits that depend on two numbers: the finalizer of SplitMix64 (Steele, Lea and Flood
// 2014). Any part of a program can reproduce the data.
func Hash(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 + b*0xd1342543de82ef95 + 0x632be59bd9b4e019
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Uniform returns a number in [0, 1) for a hash.
func Uniform(hash uint64) float64 { return float64(hash>>11) / (1 << 53) }
