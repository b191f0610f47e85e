package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// exchangeBench is what halox bench exchange is asked for.
type exchangeBench struct {
	backend               string
	count                 int
	points, radii, fields []int
	paths                 []string
	settings              any // all of them, for the record
	recorder
}

func newBenchExchangeCommand() *cobra.Command {
	var b exchangeBench
	cmd := &cobra.Command{
		Use:   "exchange",
		Short: "Time halo exchanges of cubes of float64, all six faces, over every path",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := untilInterrupted(cmd.Context())
			defer release()
			b.settings = settingsOf(cmd.Flags())
			return b.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.backend, "backend", configs.Auto, "auto, cuda or host")
	f.IntVar(&b.count, "devices", 0, "how many devices; 0 for all")
	f.IntSliceVar(&b.points, "points", []int{64, 128, 256}, "points a device, along each axis")
	f.IntSliceVar(&b.radii, "radius", []int{1}, "ghost layers")
	f.IntSliceVar(&b.fields, "fields", []int{1}, "fields exchanged together")
	f.StringSliceVar(&b.paths, "paths", []string{string(p2p.Direct), string(p2p.Peer), string(p2p.Staged)}, "paths: direct, peer, staged")
	b.addFlags(f)
	return cmd
}

// check refuses flags that make no sense. What is named twice is measured once.
func (b *exchangeBench) check() error {
	b.points, b.radii, b.fields, b.paths = distinct(b.points), distinct(b.radii), distinct(b.fields), distinct(b.paths)
	if b.count < 0 {
		return fmt.Errorf("--devices %d: give a number of devices, or 0 for all", b.count)
	}
	return cmp.Or(
		oneOf("backend", b.backend, configs.Auto, "cuda", "host"),
		checkPoints("points", b.points),
		allPositive("radius", b.radii), allPositive("fields", b.fields),
		eachOf("paths", b.paths, string(p2p.Direct), string(p2p.Peer), string(p2p.Staged)),
		b.recorder.check(),
	)
}

// run measures every combination and prints a line for each. Interrupted or failed,
// it keeps what it had.
func (b *exchangeBench) run(ctx context.Context, out, notes io.Writer) (err error) {
	if err := b.check(); err != nil {
		return err
	}
	want := configs.Devices{Backend: b.backend, Count: configs.Count(b.count)}
	m, err := openDevices(want, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	links, record, err := b.beginLinked(ctx, m, results.KindExchange, b.settings)
	if err != nil {
		return err
	}
	tasks := b.tasks(&exchangeRun{devices: m.devices, links: links, compiler: kernels.CompilerFromEnv()})
	failure := b.measureAll(ctx, record, tasks, notes)
	return errors.Join(failure, b.keep(record, out, notes))
}

// tasks are a row for each combination.
func (b *exchangeBench) tasks(e *exchangeRun) (all []task) {
	for _, c := range b.combinations() {
		all = append(all, task{c.labels(), func(context.Context) ([]results.Row, error) {
			row, err := e.measure(c)
			return []results.Row{row}, err
		}})
	}
	return all
}

// combination is one exchange to be timed.
type combination struct {
	points, radius, fields int
	path                   p2p.Path
}

// labels begins the row of a combination.
func (c combination) labels() results.Row {
	return results.NewRow().Label("points", c.points).Label("radius", c.radius).Label("fields", c.fields).Label("path", c.path)
}

func (b *exchangeBench) combinations() (all []combination) {
	for _, n := range b.points {
		for _, r := range b.radii {
			for _, f := range b.fields {
				for _, p := range b.paths {
					all = append(all, combination{n, r, f, p2p.Path(p)})
				}
			}
		}
	}
	return all
}

// exchangeRun is the devices that exchanges are timed on.
type exchangeRun struct {
	devices  []*streams.Device
	links    *p2p.Links
	compiler *kernels.Compiler
}

// measure times one combination: a periodic grid of cubes, one a device.
func (e *exchangeRun) measure(c combination) (row results.Row, err error) {
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	place, err := e.place(c)
	if err != nil {
		return row, err
	}
	x, plan, err := e.exchanger(c, place, &open)
	if err != nil {
		return row, err
	}
	at, err := place.NewStreams()
	if err != nil {
		return row, err
	}
	open.Add(at)
	row, sent := describe(c, plan)
	row, best, err := drive(row, x, at)
	if err != nil || sent.message == 0 {
		return row, err
	}
	plain, err := e.copies(sent.message)
	return sent.compare(row, best, plain), err
}

// drive times an exchange that one thread drives, and where that can be one that a
// thread a device drives. It returns the faster time too.
func drive(row results.Row, x *halo.Exchanger, at []*streams.Stream) (results.Row, results.Sample, error) {
	best, err := timed(at, func(n int) error {
		for range n {
			if err := x.Exchange(at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return row, best, err
	}
	row = row.Value(results.OneThread, best)
	if !x.IsDirect() {
		return row.Value(results.Time, best), best, nil
	}
	many, err := timed(at, func(n int) error { return byThreads(x, at, n) })
	if err != nil {
		return row, best, err
	}
	if many.Median < best.Median {
		best = many
	}
	return row.Value(results.Threads, many).Value(results.Time, best), best, nil
}

// exchanger makes the fields of a combination and what exchanges them.
func (e *exchangeRun) exchanger(c combination, place *halo.Placement, open *streams.Resources) (*halo.Exchanger, *halo.Plan, error) {
	var specs []halo.Spec
	var fields []*halo.Field
	for i := range c.fields {
		spec := halo.Spec{Name: fmt.Sprintf("f%d", i), Element: halo.Float64, Width: domain.UniformRadius(3, c.radius)}
		f, err := halo.NewField(place, spec)
		if err != nil {
			return nil, nil, err
		}
		open.Add(f)
		specs, fields = append(specs, spec), append(fields, f)
	}
	plan, err := halo.NewPlan(place, e.links, c.path, specs...)
	if err != nil {
		return nil, nil, err
	}
	x, err := halo.NewExchanger(plan, e.compiler, fields...)
	if err != nil {
		return nil, nil, err
	}
	open.Add(x)
	return x, plan, nil
}

// traffic is what an exchange sends, in bytes.
type traffic struct {
	message int64 // the largest, of those of several directions what goes in one
	device  int64 // all that the busiest device sends to others
}

// describe begins the row of a combination with what it sends.
func describe(c combination, plan *halo.Plan) (row results.Row, sent traffic) {
	out := map[int]int64{}
	for _, m := range plan.Messages {
		if devices := plan.Placement.Devices; devices[m.From] != devices[m.To] {
			sent.message = max(sent.message, inOneDirection(m))
			out[m.From] += m.Bytes
			sent.device = max(sent.device, out[m.From])
		}
	}
	return c.labels().
		Label("messages", len(plan.Messages)).Label("message_bytes", sent.message).Label("device_bytes", sent.device), sent
}

// inOneDirection returns the most that a message carries in one direction.
func inOneDirection(m halo.Message) (most int64) {
	sums := map[domain.Direction]int64{}
	for _, p := range m.Parts {
		sums[p.Dir] += p.Bytes
		most = max(most, sums[p.Dir])
	}
	return most
}

// compare adds the rate out of the busiest device beside that of plain copies of the
// largest message.
func (t traffic) compare(row results.Row, best, plain results.Sample) results.Row {
	copyRate := plain.Under(float64(t.message) / 1e3)
	rate := best.Under(float64(t.device) / 1e3)
	return row.Value(results.Rate, rate).Value(results.CopyTime, plain).Value(results.CopyRate, copyRate).
		Value(results.Share, rate.Scale(1/copyRate.Median))
}

// copies times plain copies of so many bytes between the first two devices.
func (e *exchangeRun) copies(bytes int64) (plain results.Sample, err error) {
	from, to := e.devices[0], e.devices[1]
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	src, err := from.Alloc(bytes)
	if err != nil {
		return plain, err
	}
	open.Add(src)
	dst, err := to.Alloc(bytes)
	if err != nil {
		return plain, err
	}
	open.Add(dst)
	s, err := from.NewStream(streams.Normal)
	if err != nil {
		return plain, err
	}
	open.Add(s)
	return timed([]*streams.Stream{s}, func(n int) error {
		for range n {
			if err := s.Copy(dst.All(), src.All()); err != nil {
				return err
			}
		}
		return nil
	})
}

// place cuts a periodic grid into cubes, one a device.
func (e *exchangeRun) place(c combination) (*halo.Placement, error) {
	parts := cubes(3, len(e.devices))
	size := []int{c.points * parts[0], c.points * parts[1], c.points * parts[2]}
	g, err := domain.NewGrid(size, [3]bool{true, true, true})
	if err != nil {
		return nil, err
	}
	d, err := domain.Decompose(g, parts)
	if err != nil {
		return nil, err
	}
	return halo.Place(d, e.devices)
}

// byThreads has one thread a device queue n exchanges.
func byThreads(x *halo.Exchanger, at []*streams.Stream, n int) error {
	group := streams.NewWorkerGroup(min(len(at), runtime.GOMAXPROCS(0)), waitLimit)
	for rank, s := range at {
		group.Go(fmt.Sprintf("thread of %v", s.Device()), func() error {
			for range n {
				if err := x.ExchangeRank(rank, s); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
