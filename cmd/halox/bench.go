package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/halox/halox/configs"
	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

func newBenchCommand() *cobra.Command {
	cmd := newGroup("bench", "Measure what the devices and their links do")
	cmd.AddCommand(newBenchExchangeCommand(), newBenchPackCommand(), newBenchPingPongCommand())
	return cmd
}

// exchangeBench is what halox bench exchange is asked for.
type exchangeBench struct {
	backend               string
	count                 int
	points, radii, fields []int
	paths                 []string
	record, plot          string
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
			return b.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.backend, "backend", configs.Auto, "auto, cuda or host")
	f.IntVar(&b.count, "devices", 0, "how many devices; 0 for all")
	f.IntSliceVar(&b.points, "points", []int{64, 128, 256}, "points a device, along each axis")
	f.IntSliceVar(&b.radii, "radius", []int{1}, "ghost layers")
	f.IntSliceVar(&b.fields, "fields", []int{1}, "fields exchanged together")
	f.StringSliceVar(&b.paths, "paths", []string{string(p2p.Direct), string(p2p.Peer), string(p2p.Staged)}, "paths")
	f.StringVar(&b.record, "record", "", "write the record to this JSON `file`")
	f.StringVar(&b.plot, "plot", "", "draw the times over the message size to this `file` (.png, .svg, .pdf)")
	return cmd
}

// run measures every combination and prints a line for each. Interrupted, it
// keeps what it had.
func (b *exchangeBench) run(ctx context.Context, out, notes io.Writer) (err error) {
	if err := errors.Join(oneOf("backend", b.backend, configs.Auto, "cuda", "host"), checkFiles(b.record, b.plot)); err != nil {
		return err
	}
	want := configs.Devices{Backend: b.backend, Count: configs.Count(b.count)}
	m, err := openDevices(want, notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	links, err := p2p.Discover(m.devices, m.topology())
	if err != nil {
		return err
	}
	record := newExchanges(m)
	if err := b.measureAll(ctx, &exchangeRun{devices: m.devices, links: links, compiler: kernels.CompilerFromEnv()}, record, out); err != nil {
		return err
	}
	return b.write(record)
}

// opened is a machine with those of its devices open that are measured.
type opened struct {
	*machine
	devices []*streams.Device
}

// openDevices opens the devices that are wanted.
func openDevices(want configs.Devices, notes io.Writer) (o *opened, err error) {
	m, err := openMachine(want, notes)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	ids, err := m.ids(want)
	if err != nil {
		return nil, err
	}
	devices, err := m.platform.Open(ids...)
	if err != nil {
		return nil, err
	}
	return &opened{m, devices}, nil
}

func (o *opened) close() error {
	return errors.Join(streams.CloseAll(o.devices), o.machine.close())
}

// host says what the devices are measured in.
func (o *opened) host() results.Host {
	h := results.Machine()
	h.CUDA, h.Driver = o.platform.Version(), o.driver()
	return h
}

// describeDevice says for a record which device this is.
func describeDevice(d *streams.Device) results.Device {
	return results.Device{ID: d.ID, Name: d.Name, Backend: string(d.Backend), MemoryBytes: d.Memory, PCIBusID: d.PCIBusID}
}

// newExchanges begins the record with what it is measured on.
func newExchanges(m *opened) *results.Exchanges {
	r := &results.Exchanges{
		Halox: results.Program{Version: version, Commit: builtFrom()}, Host: m.host(), Started: time.Now(),
	}
	for _, d := range m.devices {
		r.Devices = append(r.Devices, describeDevice(d))
	}
	return r
}

// measureAll adds a row for each combination to the record, and prints the table.
func (b *exchangeBench) measureAll(ctx context.Context, e *exchangeRun, record *results.Exchanges, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "points\tradius\tfields\tpath\tmessage\tus, one thread\tus, threads\tGB/s a device\tGB/s plain copy\tof copies\t")
	for _, c := range b.combinations() {
		if ctx.Err() != nil {
			break
		}
		row, err := e.measure(c)
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		record.Rows = append(record.Rows, row)
		fmt.Fprintf(w, "%d^3\t%d\t%d\t%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f%%\t\n", row.Points, row.Radius, row.Fields, row.Path,
			row.MessageBytes, row.OneThread, row.ManyThreads, row.RateGBs, row.LinkGBs, 100*row.ShareOfCopies)
	}
	return w.Flush()
}

// write writes the record and the plot that are wanted.
func (b *exchangeBench) write(r *results.Exchanges) error {
	if b.record != "" {
		if err := r.Write(b.record); err != nil {
			return err
		}
	}
	if b.plot == "" || len(r.Rows) == 0 {
		return nil
	}
	c := results.Curves{
		Title: fmt.Sprintf("Halo exchange of six faces, radius %d, %d float64 field(s), %d x %s",
			b.radii[0], b.fields[0], len(r.Devices), r.Devices[0].Name),
		XLabel: "largest message (bytes)", YLabel: "time of an exchange (us)",
	}
	for _, path := range b.paths {
		c.Curves = append(c.Curves, b.curve(r.Rows, path, path, best))
	}
	copies := b.curve(r.Rows, b.paths[0], "one plain peer copy", func(row results.Exchange) float64 { return row.CopyUS })
	copies.Dashed = true
	c.Curves = append(c.Curves, copies)
	return results.WriteCurves(b.plot, c)
}

// curve draws the rows of a path with the first radius and number of fields.
func (b *exchangeBench) curve(rows []results.Exchange, path, name string, y func(results.Exchange) float64) results.Curve {
	c := results.Curve{Name: name}
	for _, row := range rows {
		if row.Path == path && row.Radius == b.radii[0] && row.Fields == b.fields[0] && row.MessageBytes > 0 {
			c.X, c.Y = append(c.X, float64(row.MessageBytes)), append(c.Y, y(row))
		}
	}
	return c
}

// best returns the time of the faster way to drive an exchange.
func best(r results.Exchange) float64 {
	if r.ManyThreads > 0 {
		return min(r.OneThread, r.ManyThreads)
	}
	return r.OneThread
}

// combination is one exchange to be timed.
type combination struct {
	points, radius, fields int
	path                   p2p.Path
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
func (e *exchangeRun) measure(c combination) (row results.Exchange, err error) {
	var open streams.Closers
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
	row = describe(c, plan)
	if row.OneThread, err = timed(at, func(n int) error {
		for range n {
			if err := x.Exchange(at); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return row, err
	}
	if x.Swaps() {
		if row.ManyThreads, err = timed(at, func(n int) error { return byThreads(x, at, n) }); err != nil {
			return row, err
		}
	}
	return e.compare(row)
}

// exchanger makes the fields of a combination and what exchanges them.
func (e *exchangeRun) exchanger(c combination, place *halo.Placement, open *streams.Closers) (*halo.Exchanger, *halo.Plan, error) {
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

// describe begins the row of a combination with what it sends.
func describe(c combination, plan *halo.Plan) results.Exchange {
	row := results.Exchange{Points: c.points, Radius: c.radius, Fields: c.fields, Path: string(c.path), Messages: len(plan.Messages)}
	out := map[int]int64{}
	for _, m := range plan.Messages {
		if devices := plan.Placement.Devices; devices[m.From] != devices[m.To] {
			row.MessageBytes = max(row.MessageBytes, m.Bytes)
			out[m.From] += m.Bytes
			row.DeviceBytes = max(row.DeviceBytes, out[m.From])
		}
	}
	return row
}

// compare adds what plain copies of the same messages take.
func (e *exchangeRun) compare(row results.Exchange) (results.Exchange, error) {
	if row.MessageBytes == 0 {
		return row, nil
	}
	from, to := e.devices[0], e.devices[1]
	var open streams.Closers
	defer open.Close()
	src, err := from.Alloc(row.MessageBytes)
	if err != nil {
		return row, err
	}
	open.Add(src)
	dst, err := to.Alloc(row.MessageBytes)
	if err != nil {
		return row, err
	}
	open.Add(dst)
	s, err := from.NewStream(streams.Normal)
	if err != nil {
		return row, err
	}
	open.Add(s)
	row.CopyUS, err = timed([]*streams.Stream{s}, func(n int) error {
		for range n {
			if err := s.Copy(dst.All(), src.All()); err != nil {
				return err
			}
		}
		return nil
	})
	us := best(row)
	row.LinkGBs = float64(row.MessageBytes) / row.CopyUS / 1e3
	row.RateGBs = float64(row.DeviceBytes) / us / 1e3
	row.ShareOfCopies = row.RateGBs / row.LinkGBs
	return row, err
}

// place cuts a periodic grid into cubes, one a device.
func (e *exchangeRun) place(c combination) (*halo.Placement, error) {
	parts := domain.Vec{1, 1, 1}
	for n, a := len(e.devices), 2; n > 1; a = (a + 2) % 3 {
		factor := 2
		for n%factor != 0 {
			factor++
		}
		parts[a] *= factor
		n /= factor
	}
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

// pace says how a median over batches is measured.
type pace struct {
	first, most int     // runs of the first batch, and of any
	length      float64 // of a batch, in microseconds
}

// batches is how many a median is over.
const batches = 9

// timed returns the time of one of what queue queues, in microseconds: the median
// over batches that are waited for, each of some milliseconds, so that to begin one
// and to wait for it counts little.
func timed(at []*streams.Stream, queue func(n int) error) (float64, error) {
	return pace{first: 20, most: 400, length: 4000}.median(func(n int) (float64, error) { return batch(at, queue, n) })
}

// median returns the median of what batch returns: the time of one of n, in
// microseconds.
func (p pace) median(batch func(n int) (float64, error)) (float64, error) {
	if _, err := batch(p.first); err != nil { // warms up
		return 0, err
	}
	one, err := batch(p.first)
	if err != nil {
		return 0, err
	}
	n := int(max(float64(p.first), min(float64(p.most), p.length/one)))
	var us []float64
	for range batches {
		t, err := batch(n)
		if err != nil {
			return 0, err
		}
		us = append(us, t)
	}
	slices.Sort(us)
	return us[len(us)/2], nil
}

// batch queues n and waits for them; it returns the time of one in microseconds.
func batch(at []*streams.Stream, queue func(n int) error, n int) (float64, error) {
	start := time.Now()
	if err := queue(n); err != nil {
		return 0, err
	}
	for _, s := range at {
		if err := s.Sync(waitLimit); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() * 1e6 / float64(n), nil
}

// byThreads has one thread a device queue n exchanges.
func byThreads(x *halo.Exchanger, at []*streams.Stream, n int) error {
	crew := streams.NewCrew(min(len(at), runtime.GOMAXPROCS(0)), waitLimit)
	for rank, s := range at {
		crew.Go(fmt.Sprintf("thread of %v", s.Device()), func() error {
			for range n {
				if err := x.ExchangeOn(rank, s); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return crew.Wait()
}
