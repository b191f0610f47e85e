package halo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// LinkModel returns the measured times of messages between the devices, along every path that their links
// have. It reads earlier measurements from the cache folder; an empty folder name means the folder in
// HALOX_CACHE, or the user's cache. It measures, and saves if possible, whatever is missing, damaged, or from
// other devices or another driver. driver is the version of the GPU driver (see p2p.NVML), "" if unknown.
// With the result in Links.Model, plans choose their paths by it.
func LinkModel(
	ctx context.Context, devices []*streams.Device, links *p2p.Links, c *kernels.Compiler, driver, cache string,
) (*p2p.LinkModel, error) {
	if err := measurable(ctx, devices); err != nil {
		return nil, err
	}
	if r, err := p2p.LoadLinkModel(cache, devices, driver); err == nil && covers(r, devices, links) {
		return r, nil
	}
	r, err := Measure(ctx, devices, links, c, driver)
	if err == nil {
		_ = r.Save(cache) // the next call measures again
	}
	return r, err
}

// Measure times messages of several sizes between all devices, along every path that their links have. It
// takes about a second on four GPUs, and under 0.2 s on CPU devices, which are all alike. If the context
// ends, it stops before the next kind of message.
func Measure(
	ctx context.Context, devices []*streams.Device, links *p2p.Links, c *kernels.Compiler, driver string,
) (*p2p.LinkModel, error) {
	if err := measurable(ctx, devices); err != nil {
		return nil, err
	}
	r := p2p.NewLinkModel(devices, driver)
	trips := tripsOf(devices, links)
	ahead := begin(ctx, trips, links, c)
	defer ahead.Stop()
	for _, t := range trips {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("halo: measure the links: %w", err)
		}
		curve, err := t.measure(links, c, budgetOf(devices)/time.Duration(len(trips)))
		if err != nil {
			return nil, fmt.Errorf("halo: measure path %s from device %v to %v: %w", t.path, t.from, t.to, err)
		}
		r.Set(t.from, t.to, t.path, t.packed, curve)
	}
	return r, nil
}

// begin starts compiling what all kinds of messages need.
func begin(ctx context.Context, trips []trip, links *p2p.Links, c *kernels.Compiler) *kernels.Ahead {
	a := c.Ahead(ctx)
	for _, t := range trips {
		_ = t.begin(links, a.Compiler()) // errors are reported by the measurement
	}
	return a
}

// begin prepares one message on devices that only count allocations.
func (t trip) begin(links *p2p.Links, c *kernels.Compiler) (err error) {
	plan, err := t.plan(links, rowsOf(t.from)[0])
	if err != nil || t.from.GoKernels {
		return err
	}
	place := plan.Placement.DryRun()
	defer func() { err = errors.Join(err, streams.CloseAll(place.Devices)) }()
	field, err := NewField(place, plan.Specs[0])
	if err != nil {
		return err
	}
	_, err = NewExchanger(plan.On(place), c, field)
	return err
}

// measurable returns an error unless there are a context and devices.
func measurable(ctx context.Context, devices []*streams.Device) error {
	switch {
	case ctx == nil:
		return errNoContext
	case len(devices) == 0 || slices.Contains(devices, nil):
		return errors.New("halo: measuring messages needs devices, none of them nil")
	}
	return nil
}

// budgetOf returns the time budget of a measurement. A message in progress is still completed.
func budgetOf(devices []*streams.Device) time.Duration {
	if devices[0].HostMemory {
		return 100 * time.Millisecond
	}
	return time.Second
}

// trip is one kind of message to measure.
type trip struct {
	from, to *streams.Device
	path     p2p.Path
	packed   bool
}

// tripsOf returns all kinds of messages between the devices.
func tripsOf(devices []*streams.Device, links *p2p.Links) (all []trip) {
	for _, from := range devices {
		for _, to := range devices {
			all = append(all, tripsBetween(from, to, links)...)
		}
	}
	if devices[0].HostMemory && len(devices) > 1 {
		all = tripsBetween(devices[0], devices[1], links)
	}
	return all
}

func tripsBetween(from, to *streams.Device, links *p2p.Links) (all []trip) {
	if from == to {
		return []trip{{from, to, p2p.Direct, true}}
	}
	link := links.Between(from, to)
	for _, path := range p2p.Paths() {
		traits := path.Traits()
		if traits.Access && (link == nil || !link.Usable) {
			continue
		}
		if !traits.Stored {
			all = append(all, trip{from, to, path, false})
		}
		all = append(all, trip{from, to, path, true})
	}
	return all
}

// covers reports whether everything that can be measured has been measured.
func covers(r *p2p.LinkModel, devices []*streams.Device, links *p2p.Links) bool {
	return !slices.ContainsFunc(tripsOf(devices, links), func(t trip) bool {
		_, ok := r.Time(t.from, t.to, t.path, p2p.MessageShape{Bytes: 1, Packed: t.packed})
		return !ok
	})
}

const (
	rowPoints  = 64 // of a float64
	rowBytes   = rowPoints * 8
	maxRepeats = 9
)

// rowsOf returns the numbers of rows of the measured messages, in the order of measurement: 1 KiB and 4 MiB
// (512 KiB between CPU devices), then sizes in between.
func rowsOf(d *streams.Device) []int {
	const kib = 1024 / rowBytes
	if d.HostMemory {
		return []int{1 * kib, 512 * kib, 64 * kib, 8 * kib}
	}
	return []int{1 * kib, 4096 * kib, 64 * kib, 512 * kib, 8 * kib}
}

// measure returns the curve of a kind of message. When the budget is spent it skips all sizes after the first
// two.
func (t trip) measure(links *p2p.Links, c *kernels.Compiler, budget time.Duration) (p2p.Curve, error) {
	var samples []p2p.Sample
	begin := time.Now()
	for _, rows := range rowsOf(t.from) {
		if len(samples) >= 2 && time.Since(begin) > budget {
			break
		}
		s, err := t.sample(links, c, rows, budget/8)
		if err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	return p2p.NewCurve(samples...), nil
}

// sample measures messages of a number of rows.
func (t trip) sample(links *p2p.Links, c *kernels.Compiler, rows int, budget time.Duration) (s p2p.Sample, err error) {
	plan, err := t.plan(links, rows)
	if err != nil {
		return s, err
	}
	var open streams.Resources
	defer func() { err = errors.Join(err, open.Close()) }()
	field, err := NewField(plan.Placement, plan.Specs[0])
	if err != nil {
		return s, err
	}
	open.Add(field)
	x, err := NewExchanger(plan, c, field)
	if err != nil {
		return s, err
	}
	open.Add(x)
	out, err := t.from.NewStream(streams.Urgent)
	if err != nil {
		return s, err
	}
	open.Add(out)
	in, err := t.to.NewStream(streams.Urgent)
	if err != nil {
		return s, err
	}
	open.Add(in)
	took, err := timed(x.Transfer(0), out, in, budget)
	return p2p.Sample{Bytes: plan.Messages[0].Bytes, Time: took}, err
}

// rowsPlan plans the faces of rows that two subdomains exchange along an axis: contiguous along z (2),
// separate rows along y (1). place assigns the subdomains to devices.
func rowsPlan(
	links *p2p.Links, path p2p.Path, rows, axis int, width domain.Radius,
	place func(*domain.Decomposition) (*Placement, error),
) (*Plan, error) {
	size, parts := []int{rowPoints, rows, rows}, domain.Vec{1, 1, 1}
	size[axis], parts[axis] = 2, 2
	grid, err := domain.NewGrid(size, nil)
	if err != nil {
		return nil, err
	}
	cut, err := domain.Decompose(grid, parts)
	if err != nil {
		return nil, err
	}
	p, err := place(cut)
	if err != nil {
		return nil, err
	}
	return NewPlan(p, links, path, Spec{Name: "measured", Element: Float64, Width: width})
}

// plan plans a single message: the lower of two subdomains sends its neighbor a face.
func (t trip) plan(links *p2p.Links, rows int) (*Plan, error) {
	var width domain.Radius
	axis := 2
	if t.packed {
		axis = 1
	}
	width.Minus[axis] = 1
	return rowsPlan(links, t.path, rows, axis, width, func(cut *domain.Decomposition) (*Placement, error) {
		return Place(cut, []*streams.Device{t.from, t.to})
	})
}

// timed returns the median time of a message, after one warm-up message.
func timed(t *Transfer, out, in *streams.Stream, budget time.Duration) (time.Duration, error) {
	group := streams.NewWorkerGroup(1, transferLimit)
	var times []time.Duration
	first := time.Now()
	for n := 0; n <= maxRepeats && (n < 4 || time.Since(first) < budget); n++ {
		took, err := timedOnce(t, group, out, in)
		if err != nil {
			return 0, err
		}
		times = append(times, took)
	}
	times = times[1:]
	slices.Sort(times)
	return max(1, times[len(times)/2]), nil
}

// timedOnce sends one message and returns the time until it has arrived.
func timedOnce(t *Transfer, group *streams.WorkerGroup, out, in *streams.Stream) (took time.Duration, err error) {
	begin := time.Now()
	if err := t.Send(out); err != nil {
		return 0, err // nothing was sent, so nothing can be received
	}
	if err := t.Receive(group, in); err != nil {
		return 0, err
	}
	if err := in.Sync(transferLimit); err != nil {
		return 0, err
	}
	took = time.Since(begin)
	return took, out.Sync(transferLimit)
}
