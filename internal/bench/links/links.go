// Package links measures the links between devices: messages of all sizes over every path, by
// [Command], and the smallest pieces of work, by [LatencyCommand].
package links

import (
	"context"
	"slices"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// run is the devices whose links are timed, and the settings.
type run struct {
	*fabric
	devices []*streams.Device
	sizes   []int64
	pace    measure.Pace
	record  *results.Record // stores measured ceilings
}

// Run measures messages of all sizes over the links between all devices.
func (o *Options) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if !on.Processes.IsAlone() {
		return o.among(ctx, on, to)
	}
	if err := to.Begin(results.KindLinks, on.Links); err != nil {
		return err
	}
	r := &run{
		fabric: newFabric(on.Links, on.Compiler, slices.Max(o.Sizes)), devices: on.Devices, sizes: o.Sizes,
		pace: measure.Pace{First: 2, Max: maxMessages, Batch: o.Budget / measure.MinBatches}, record: to.Record,
	}
	return to.Measure(ctx, r.tasks(o))
}

// tasks returns the tasks: first the copies that bound links, then each mode of each path.
func (r *run) tasks(o *Options) (all []bench.Task) {
	for _, d := range r.devices {
		at, host := end{d, false}, end{d, true}
		all = append(all,
			r.task(oneWayMode, hop{devicePath, at, at}),
			r.task(oneWayMode, hop{pinnedPath, host, at}),
			r.task(oneWayMode, hop{pinnedPath, at, host}))
		if slices.Contains(o.Modes, bothWaysMode) {
			all = append(all, r.task(bothWaysMode, hop{pinnedPath, host, at}, hop{pinnedPath, at, host}))
		}
	}
	for _, path := range o.Paths {
		for _, mode := range modes() {
			if slices.Contains(o.Modes, mode) {
				all = append(all, r.between(path, mode)...)
			}
		}
	}
	return all
}

// between returns the tasks of one mode of a path.
func (r *run) between(path, mode string) (all []bench.Task) {
	n := len(r.devices)
	link := func(i, k int) hop { return between(p2p.Path(path), r.devices[i], r.devices[k%n]) }
	var ring []hop
	for i := range n {
		ring = append(ring, link(i, i+1))
		for k := range n {
			switch {
			case mode == oneWayMode && i != k:
				all = append(all, r.task(mode, link(i, k)))
			case mode == bothWaysMode && i < k:
				all = append(all, r.task(mode, link(i, k), link(k, i)))
			}
		}
	}
	if mode == ringBothMode {
		for i := range n {
			ring = append(ring, link(i, i+n-1))
		}
	}
	if n > 2 && (mode == ringMode || mode == ringBothMode) {
		all = append(all, r.task(mode, ring...))
	}
	return all
}

// task measures messages of all sizes, by all hops at once.
func (r *run) task(mode string, hops ...hop) bench.Task {
	labels := r.labels(mode, hops)
	return bench.Task{Labels: labels,
		Measure: func(ctx context.Context, open *streams.Resources) ([]results.Row, error) {
			return r.measure(ctx, mode, labels, hops, open)
		}}
}

// labels returns the labels of a task's rows. A ring has no first and last device.
func (r *run) labels(mode string, hops []hop) results.Row {
	row := results.NewRow()
	if mode == oneWayMode || mode == bothWaysMode {
		row = row.Label("from", hops[0].from.label()).Label("to", hops[0].to.label())
	} else {
		row = row.Label("devices", len(r.devices))
	}
	return row.Label("link", r.kind(hops...)).Label("path", hops[0].path).Label("mode", mode)
}

// measure returns a row for each size. It is left out if a hop is not usable or corrupts data.
func (r *run) measure(
	ctx context.Context, mode string, labels results.Row, hops []hop, open *streams.Resources,
) (rows []results.Row, err error) {
	t, err := r.newSenderGroup(hops, open)
	if err != nil {
		return nil, err
	}
	for _, bytes := range r.sizes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		time, err := t.time(ctx, bytes, r.pace)
		if err != nil {
			return nil, err
		}
		row := r.rated(mode, labels.Label("bytes", bytes), hops[0], bytes, time)
		row.Checked = true
		rows = append(rows, row)
	}
	return rows, nil
}

// rated adds the time, the rate and their bounds to a row.
func (r *run) rated(mode string, row results.Row, h hop, bytes int64, time results.Sample) results.Row {
	plain := r.ceiling(h, bytes)
	switch mode {
	case bothWaysMode:
		bytes *= 2 // each device has its own memory
	case ringBothMode:
		bytes, plain = bytes*2, plain.Scale(2)
	}
	return row.Transfer(bytes, time, plain)
}

// ceiling returns the time of the plain copy that bounds a hop: within the sender's memory, or to or from pinned
// memory. Those copies have no ceiling.
func (r *run) ceiling(h hop, bytes int64) results.Sample {
	time := func(h hop) results.Sample {
		row, _ := r.record.Find(r.labels(oneWayMode, []hop{h}).Label("bytes", bytes))
		s, _ := row.Get(results.Time)
		return s
	}
	switch {
	case h.path == devicePath || h.path == pinnedPath:
		return results.Sample{}
	case p2p.Path(h.path).Traits().Pinned > 0:
		out := time(hop{pinnedPath, h.from, end{h.from.device, true}})
		in := time(hop{pinnedPath, end{h.to.device, true}, h.to})
		if in.Median > out.Median {
			return in
		}
		return out
	}
	return time(hop{devicePath, h.from, h.from})
}
