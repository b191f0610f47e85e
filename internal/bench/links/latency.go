package links

import (
	"context"
	"errors"
	"time"

	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/bench/timing"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/results"
	"github.com/halox/halox/streams"
)

// smallMessage is how many bytes a message has whose latency is measured.
const smallMessage = 8

// latencyRun is the devices that the smallest pieces of work are timed on.
type latencyRun struct {
	*fabric
	devices []*streams.Device
	budget  time.Duration
}

// Run measures the smallest pieces of work of all devices, and of every two of them.
func (o *LatencyOptions) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if err := to.Begin(results.KindLatency, on.Links); err != nil {
		return err
	}
	r := &latencyRun{newFabric(on.Links, on.Compiler, smallMessage), on.Devices, o.Budget}
	return to.Measure(ctx, r.tasks(o.Paths))
}

// tasks measure what one device does, then what two do.
func (r *latencyRun) tasks(paths []string) (all []bench.Task) {
	for _, d := range r.devices {
		all = append(all, r.alone(d)...)
	}
	for i, a := range r.devices {
		for _, b := range r.devices[i+1:] {
			all = append(all, r.pair(&pair{r.fabric, a, b}, paths)...)
		}
	}
	return all
}

// alone returns the tasks of one device.
func (r *latencyRun) alone(d *streams.Device) (all []bench.Task) {
	for _, t := range []struct {
		what string
		time func(p *timing.Probe) (float64, error)
	}{
		{"issue a kernel", (*timing.Probe).Issue},
		{"kernel and wait", (*timing.Probe).LaunchAndWait},
		{"kernel to kernel", (*timing.Probe).KernelToKernel},
		{"event and wait", (*timing.Probe).EventAndWait},
	} {
		labels := results.NewRow().Label("what", t.what).Label("device", d.ID)
		all = append(all, r.task(labels, onProbe(r.compiler, d, t.time)))
	}
	return all
}

// onProbe makes a probe ready for one of its times.
func onProbe(c *kernels.Compiler, d *streams.Device, time func(p *timing.Probe) (float64, error)) preparation {
	return func(open *streams.Resources) (func() (float64, error), error) {
		p, err := timing.NewProbe(c, d, open)
		return func() (float64, error) { return time(p) }, err
	}
}

// pair returns the tasks of two devices.
func (r *latencyRun) pair(p *pair, paths []string) (all []bench.Task) {
	labels := func(what, path string) results.Row {
		kind := r.kind(between(p2p.Path(path), p.a, p.b))
		return results.NewRow().Label("what", what).Label("from", p.a.ID).Label("to", p.b.ID).Label("link", kind).Label("path", path)
	}
	all = append(all, r.task(labels("event to device", ""), p.events), r.task(labels("flag", string(p2p.Direct)), p.flags))
	for _, path := range paths {
		all = append(all, r.task(labels("message", path), p.messages(p2p.Path(path))))
	}
	return all
}

// task measures what is prepared; a hop that carries nothing has a row that says so.
func (r *latencyRun) task(labels results.Row, prepare preparation) bench.Task {
	return bench.Task{Labels: labels, Measure: func(ctx context.Context) (rows []results.Row, err error) {
		var open streams.Resources
		defer func() { err = errors.Join(err, open.Close()) }()
		once, err := prepare(&open)
		if fault, ok := errors.AsType[*impassable](err); ok {
			labels.Note = fault.Error()
			return []results.Row{labels}, nil
		}
		if err != nil {
			return nil, err
		}
		budget := measure.Budget{Warm: 2, Min: timing.MinBatches, Max: timing.MaxBatches, Time: r.budget, Within: timing.Within}
		us, err := measure.Repeat(ctx, budget, once)
		if err != nil {
			return nil, err
		}
		return []results.Row{labels.Value(results.Latency, us)}, nil
	}}
}
