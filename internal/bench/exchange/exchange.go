// Package exchange measures halo exchanges of cubes of float64, all six faces, over every path.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/halo"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/option"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// Options say which exchanges are measured: every combination.
type Options struct {
	Devices int   // of each process; 0 for all
	Points  []int // of a device, along each axis
	Radii   []int // layers of ghost points
	Fields  []int // exchanged together
	Paths   []string
}

// Command returns halox bench exchange.
func Command() bench.Command {
	return bench.Command{
		Name: "exchange", Short: "Time halo exchanges of cubes of float64, all six faces, over every path",
		Options: &Options{Points: []int{64, 128, 256}, Radii: []int{1}, Fields: []int{1}, Paths: paths()},
		Example: `  halox bench exchange --record exchange.json --plot exchange.svg
  halox bench exchange --points 64,128 --radii 1,2 --fields 4 --paths direct`,
	}
}

func paths() []string { return option.Texts(p2p.Paths()) }

// Flags returns the flags.
func (o *Options) Flags() []option.Flag {
	return []option.Flag{
		{Name: "devices", Value: &o.Devices, Help: "number of devices per process; 0: all", To: option.NoLimit},
		{Name: "points", Value: &o.Points, Help: "points per device along each axis", From: 1, To: option.MaxPoints},
		{Name: "radii", Value: &o.Radii, Help: "layers of ghost points", From: 1, To: 1024},
		{Name: "fields", Value: &o.Fields, Help: "numbers of fields exchanged together", From: 1, To: 1024},
		option.Paths(&o.Paths, paths()),
	}
}

// Check accepts all options.
func (*Options) Check() error { return nil }

// Wants returns the devices of each process.
func (o *Options) Wants(*mpi.Processes) (bench.Wanted, error) {
	return bench.Wanted{Count: o.Devices}, nil
}

// combination is one exchange to time.
type combination struct {
	points, radius, fields int
	path                   p2p.Path
}

// labels begins the row of a combination.
func (c combination) labels() results.Row {
	return results.NewRow().Label("points", c.points).Label("radius", c.radius).
		Label("fields", c.fields).Label("path", c.path)
}

// combinations returns all of them.
func (o *Options) combinations() (all []combination) {
	for _, n := range o.Points {
		for _, r := range o.Radii {
			for _, f := range o.Fields {
				for _, p := range o.Paths {
					all = append(all, combination{n, r, f, p2p.Path(p)})
				}
			}
		}
	}
	return all
}

// run is the devices on which exchanges are timed.
type run struct{ *bench.Machine }

// Run measures the exchanges of all devices.
func (o *Options) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if err := to.Begin(results.KindExchange, on.Links); err != nil {
		return err
	}
	r := &run{on}
	var tasks []bench.Task
	for _, c := range r.distinct(o.combinations()) {
		tasks = append(tasks, bench.OneRow(c.labels(),
			func(ctx context.Context, open *streams.Resources) (results.Row, error) {
				return r.measure(ctx, c, open)
			}))
	}
	return to.Measure(ctx, tasks)
}

// measure times one combination: a periodic grid of cubes, one per device.
func (r *run) measure(ctx context.Context, c combination, open *streams.Resources) (row results.Row, err error) {
	place, err := r.place(ctx, c)
	if err != nil {
		return row, err
	}
	if err := place.Agree(ctx, "see whether the fields fit", r.fits(ctx, c, place)); err != nil {
		return row, err
	}
	x, plan, err := r.exchanger(ctx, c, place, open)
	if err != nil {
		return row, err
	}
	at, err := place.NewStreams()
	if err != nil {
		return row, err
	}
	open.Add(at)
	row, sent := describe(c, plan)
	row, best, err := r.drive(ctx, row, x, at)
	if err != nil || sent.message == 0 {
		return row, err
	}
	if !r.Processes.IsAlone() {
		return row.Value(results.Rate, best.Under(float64(sent.device)/1e3)), nil
	}
	plain, err := r.copies(ctx, sent.message, open)
	return sent.compare(row, best, plain), err
}

// drive times an exchange driven by one thread and, if possible, one driven by one thread per device. It also returns
// the faster time.
func (r *run) drive(ctx context.Context, row results.Row, x *halo.Exchanger,
	at []*streams.Stream) (results.Row, results.Sample, error) {
	batch := func(n int) (float64, error) {
		return timing.Batch(at, func(n int) error {
			return timing.Times(n, func() error { return x.Exchange(at) })
		}, n)
	}
	best, err := bench.Together(ctx, r.Processes, batch, func(batch bench.Batch) (results.Sample, error) {
		return timing.Batches(ctx, batch)
	})
	if err != nil {
		return row, best, err
	}
	row = row.Value(results.OneThread, best)
	if !x.IsDirect() {
		return row.Value(results.Time, best), best, nil
	}
	many, err := timing.Queued(ctx, at, func(n int) error { return byThreads(x, at, n) })
	if err != nil {
		return row, best, err
	}
	if many.Median < best.Median {
		best = many
	}
	return row.Value(results.Threads, many).Value(results.Time, best), best, nil
}

// fits returns an error if a combination takes more memory than is free.
func (r *run) fits(ctx context.Context, c combination, place *halo.Placement) (err error) {
	dry := place.DryRun()
	defer func() { err = errors.Join(err, streams.CloseAll(dry.Devices)) }()
	var open streams.Resources // closed with the devices
	if _, _, err := r.exchanger(ctx, c, dry, &open); err != nil {
		return err
	}
	var all []streams.Demand
	for _, d := range dry.Devices { // one per subdomain
		if d == nil {
			continue // another process's
		}
		most := d.Peak()
		all = append(all, streams.Demand{Device: d.Real(), Held: most})
	}
	return streams.Fit(all)
}

// exchanger makes the fields of a combination and their exchanger.
func (r *run) exchanger(ctx context.Context, c combination, place *halo.Placement,
	open *streams.Resources) (*halo.Exchanger, *halo.Plan, error) {
	var specs []halo.Spec
	var fields []*halo.Field
	for i := range c.fields {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		spec := halo.Spec{Name: fmt.Sprintf("f%d", i), Element: halo.Float64, Width: domain.UniformRadius(3, c.radius)}
		f, err := halo.NewField(place, spec)
		if err != nil {
			return nil, nil, err
		}
		open.Add(f)
		specs, fields = append(specs, spec), append(fields, f)
	}
	plan, err := halo.NewPlan(place, r.Links, c.planned(), specs...)
	if err != nil {
		return nil, nil, err
	}
	var x *halo.Exchanger
	streams.Into(open, &x)(halo.NewExchanger(plan, r.Compiler, fields...))
	return x, plan, open.Err()
}

// copies times plain copies of the given number of bytes between the first two devices.
func (r *run) copies(ctx context.Context, bytes int64, open *streams.Resources) (plain results.Sample, err error) {
	from, to := r.Devices[0], r.Devices[1]
	src, dst, s := open.Alloc(from, bytes), open.Alloc(to, bytes), open.NewStream(from, streams.Normal)
	if err := open.Err(); err != nil {
		return plain, err
	}
	return timing.Queued(ctx, []*streams.Stream{s}, func(n int) error {
		return timing.Times(n, func() error { return s.Copy(dst.All(), src.All()) })
	})
}

// distinct returns the combinations that differ: where no process has several devices, all messages take path mpi.
func (r *run) distinct(all []combination) (some []combination) {
	if r.Processes.IsAlone() || r.All() > r.Processes.Size() {
		return all
	}
	for _, c := range all {
		if c.path = p2p.MPI; !slices.Contains(some, c) {
			some = append(some, c)
		}
	}
	return some
}

// planned returns the path to request from a plan: a plan does not choose the path between processes.
func (c combination) planned() p2p.Path {
	if c.path == p2p.MPI {
		return p2p.Auto
	}
	return c.path
}

// place cuts a periodic grid into cubes, one per device.
func (r *run) place(ctx context.Context, c combination) (*halo.Placement, error) {
	parts := bench.Cubes(3, r.All())
	size := []int{c.points * parts[0], c.points * parts[1], c.points * parts[2]}
	g, err := domain.NewGrid(size, []bool{true, true, true})
	if err != nil {
		return nil, err
	}
	if !r.Processes.IsAlone() {
		// measures nothing
		place, err := r.Cut(ctx, halo.Cutting{Size: size, Periodic: g.Periodic[:], Parts: parts[:], Path: p2p.Staged})
		if err == nil {
			place.Path = "" // each plan says its own
		}
		return place, err
	}
	d, err := domain.Decompose(g, parts)
	if err != nil {
		return nil, err
	}
	return halo.Place(d, r.Devices)
}

// byThreads has one thread per device queue n exchanges.
func byThreads(x *halo.Exchanger, at []*streams.Stream, n int) error {
	group := streams.NewWorkerGroup(min(len(at), runtime.GOMAXPROCS(0)), timing.Limit)
	for rank, s := range at {
		group.Go(fmt.Sprintf("thread of %v", s.Device()), func() error {
			return timing.Times(n, func() error { return x.ExchangeRank(rank, s) })
		})
	}
	return group.Wait()
}

// traffic is the bytes that an exchange sends.
type traffic struct {
	message int64 // the largest message, counting one direction
	device  int64 // sent by the busiest device to others
}

// describe adds the traffic to the row of a combination.
func describe(c combination, plan *halo.Plan) (row results.Row, sent traffic) {
	out := map[int]int64{}
	for _, m := range plan.Messages {
		if m.From != m.To { // a device has one subdomain
			sent.message = max(sent.message, inOneDirection(m))
			out[m.From] += m.Bytes
			sent.device = max(sent.device, out[m.From])
		}
	}
	return c.labels().
		Label("messages", len(plan.Messages)).Label("message_bytes", sent.message).
		Label("device_bytes", sent.device), sent
}

// inOneDirection returns the maximum bytes of a message in one direction.
func inOneDirection(m halo.Message) (most int64) {
	sums := map[domain.Direction]int64{}
	for _, p := range m.Parts {
		sums[p.Dir] += p.Bytes
		most = max(most, sums[p.Dir])
	}
	return most
}

// compare adds the rate out of the busiest device, and that of plain copies of the
// largest message.
func (t traffic) compare(row results.Row, best, plain results.Sample) results.Row {
	copyRate := plain.Under(float64(t.message) / 1e3)
	rate := best.Under(float64(t.device) / 1e3)
	return row.Value(results.Rate, rate).Value(results.CopyTime, plain).Value(results.CopyRate, copyRate).
		Value(results.Share, rate.Over(copyRate))
}
