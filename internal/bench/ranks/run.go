package ranks

import (
	"context"
	"slices"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
)

// mostPacket is how many bytes a packet has at most: got of bench.cu.
const mostPacket = 4096

// maxRounds is how many a lap has at most.
const maxRounds = 1 << 20

// Run measures ranks of the first device, of the first two, and barriers and collectives of all.
func (o *Options) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if err := to.Begin(results.KindRanks, on.Links); err != nil {
		return err
	}
	r := &run{on, o, measure.Pace{First: 10, Max: maxRounds, Batch: o.Budget / measure.MinBatches}}
	var tasks []bench.Task
	all := r.measurements(1)
	if len(on.Devices) > 1 {
		all = append(append(all, r.measurements(2)...), r.proxyMeasurements()...)
	}
	for _, devices := range slices.Compact([]int{1, min(2, len(on.Devices)), len(on.Devices)}) {
		all = append(all, r.barrierMeasurements(devices)...)
	}
	for _, devices := range slices.Compact([]int{1, len(on.Devices)}) {
		all = append(all, r.collectiveMeasurements(devices)...)
	}
	for _, m := range all {
		if slices.Contains(o.What, m.what) {
			tasks = append(tasks, m.task())
		}
	}
	if slices.Contains(o.What, overlaps) {
		tasks = append(tasks, r.overlapTasks()...)
	}
	for _, devices := range slices.Compact([]int{1, min(2, len(on.Devices)), len(on.Devices)}) {
		if slices.Contains(o.What, compare) {
			tasks = append(tasks, r.compareTasks(devices)...)
		}
	}
	return to.Measure(ctx, tasks)
}

// latency is that of half of a round trip, and whole that of a round.
func latency(row results.Row, us results.Sample, _ int) results.Row {
	return row.Value(results.Latency, us.Scale(0.5))
}
func whole(row results.Row, us results.Sample, _ int) results.Row {
	return row.Value(results.Latency, us)
}

// rate is that of so many ranks a device that each send a message a round.
func rate(bytes int64) func(row results.Row, us results.Sample, ranks int) results.Row {
	return func(row results.Row, us results.Sample, ranks int) results.Row {
		n := float64(ranks)
		return row.Value(results.Rate, us.Under(n*float64(bytes)/1e3)).Value(results.Messages, us.Under(n*1e6))
	}
}

// collectiveMeasurements returns those of all ranks of so many devices.
func (r *run) collectiveMeasurements(devices int) (all []measurement) {
	for _, each := range r.options.PerMultiprocessor {
		ranks := haloranks.Options{PerMultiprocessor: each}
		for which, name := range []string{aBroadcast: "broadcast", aReduce: "reduce", anAllreduce: "allreduce"} {
			for _, bytes := range r.options.Vectors {
				l := lap{Bytes: bytes, Work: int64(which)}
				all = append(all, measurement{r, collective, name, devices, collectives, ranks, l, whole})
			}
		}
	}
	return all
}

// proxyMeasurements returns those of two GPUs that reach each other by proxies; host devices have none.
func (r *run) proxyMeasurements() (all []measurement) {
	if r.Devices[0].GoKernels {
		return nil
	}
	for _, bytes := range r.options.Bytes {
		one := haloranks.Options{Ranks: 1, Proxy: true}
		all = append(all, measurement{r, proxies, "put and notify by proxy", 2, pingPong, one, lap{Bytes: bytes}, latency})
	}
	for _, bytes := range r.options.Messages {
		ranks := haloranks.Options{PerMultiprocessor: 1, Proxy: true}
		all = append(all, measurement{r, proxies, "one way by proxy", 2, oneWay, ranks, lap{Bytes: bytes}, rate(bytes)})
	}
	return all
}

// measurements returns those of so many devices.
func (r *run) measurements(devices int) (all []measurement) {
	o := r.options
	two := haloranks.Options{Ranks: 2 / devices}
	all = append(all, measurement{r, latencies, "notify", devices, pingPong, two, lap{}, latency})
	for _, bytes := range o.Bytes {
		all = append(all, measurement{r, latencies, "put and notify", devices, pingPong, two, lap{Bytes: bytes}, latency})
	}
	for _, bytes := range o.Bytes {
		if bytes%4 == 0 && bytes <= mostPacket {
			all = append(all, measurement{r, latencies, "packet", devices, packets, two, lap{Bytes: bytes}, latency})
		}
	}
	for _, bytes := range o.Bytes {
		if bytes%4 == 0 && bytes <= haloranks.MaxMessage {
			all = append(all, measurement{r, channels, "channel", devices, channelPingPong, two, lap{Bytes: bytes}, latency},
				measurement{r, channels, "channel one way", devices, channelOneWay, two, lap{Bytes: bytes},
					func(row results.Row, us results.Sample, _ int) results.Row {
						return rate(bytes)(row, us, 1) // one rank sends
					}})
		}
	}
	for _, each := range o.PerMultiprocessor {
		ranks := haloranks.Options{PerMultiprocessor: each}
		for _, bytes := range o.Messages {
			all = append(all, measurement{r, bandwidths, "one way", devices, oneWay, ranks, lap{Bytes: bytes}, rate(bytes)})
		}
	}
	return all
}

// barrierMeasurements returns those of all ranks of so many devices.
func (r *run) barrierMeasurements(devices int) (all []measurement) {
	comm, name := haloranks.All, "barrier of all devices"
	if devices == 1 {
		comm, name = haloranks.Device, "barrier of a device"
	}
	for _, each := range r.options.PerMultiprocessor {
		ranks := haloranks.Options{PerMultiprocessor: each}
		all = append(all, measurement{r, barrier, name, devices, barriers, ranks, lap{Comm: int64(comm)}, whole})
	}
	return all
}
