package ranks

import (
	"context"
	"slices"

	haloranks "github.com/halox/halox/halo/ranks"
	"github.com/halox/halox/internal/bench"
	"github.com/halox/halox/internal/measure"
	"github.com/halox/halox/results"
)

// mostPacket is the maximum number of bytes of a packet: got of bench.cu.
const mostPacket = 4096

// maxRounds is the maximum number of rounds of a lap.
const maxRounds = 1 << 20

// Run measures ranks on the first device and on the first two, and barriers and collectives on all.
func (o *Options) Run(ctx context.Context, on *bench.Machine, to *bench.Recorder) error {
	if err := to.Begin(results.KindRanks, on.Links); err != nil {
		return err
	}
	r := &run{on, o, measure.Pace{First: 10, Max: maxRounds, Batch: o.Budget / measure.MinBatches}}
	var tasks []bench.Task
	for _, m := range r.measurements() {
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

// latency records half of a round trip, whole a round.
func latency(row results.Row, us results.Sample, _ int) results.Row {
	return row.Value(results.Latency, us.Scale(0.5))
}
func whole(row results.Row, us results.Sample, _ int) results.Row {
	return row.Value(results.Latency, us)
}

// rate records the rate of the given number of ranks per device that each send one message per round.
func rate(bytes int64) func(row results.Row, us results.Sample, ranks int) results.Row {
	return func(row results.Row, us results.Sample, ranks int) results.Row {
		n := float64(ranks)
		return row.Value(results.Rate, us.Under(n*float64(bytes)/1e3)).Value(results.Messages, us.Under(n*1e6))
	}
}

// fromOne records the rate of messages from one rank.
func fromOne(bytes int64) func(row results.Row, us results.Sample, ranks int) results.Row {
	return func(row results.Row, us results.Sample, _ int) results.Row { return rate(bytes)(row, us, 1) }
}

// measurements returns all measurements except overlap and comparisons: messages within one device, between two
// devices, and through proxies of two GPUs, barriers and collectives.
func (r *run) measurements() (all []measurement) {
	o, last := r.options, len(r.Devices)
	add := func(
		what, name string, devices int, k kernel, ranks haloranks.Options, l lap,
		value func(row results.Row, us results.Sample, ranks int) results.Row,
	) {
		all = append(all, measurement{r, what, name, devices, k, ranks, l, value})
	}
	for devices := 1; devices <= min(2, last); devices++ {
		two := haloranks.Options{Ranks: 2 / devices}
		add(latencies, "notify", devices, pingPong, two, lap{}, latency)
		for _, bytes := range o.Bytes {
			add(latencies, "put and notify", devices, pingPong, two, lap{Bytes: bytes}, latency)
		}
		for _, bytes := range o.Bytes {
			if l := (lap{Bytes: bytes}); bytes%4 == 0 && bytes <= min(mostPacket, haloranks.MaxMessage) {
				add(latencies, "packet", devices, packets, two, l, latency)
				add(channels, "channel", devices, channelPingPong, two, l, latency)
				add(channels, "channel one way", devices, channelOneWay, two, l, fromOne(bytes))
			}
		}
		for _, each := range o.PerMultiprocessor {
			for _, bytes := range o.Messages {
				ranks := haloranks.Options{PerMultiprocessor: each}
				add(bandwidths, "one way", devices, oneWay, ranks, lap{Bytes: bytes}, rate(bytes))
			}
		}
	}
	if last > 1 && !r.Devices[0].GoKernels { // CPU devices have no proxies
		one, each := haloranks.Options{Ranks: 1, Proxy: true}, haloranks.Options{PerMultiprocessor: 1, Proxy: true}
		for _, bytes := range o.Bytes {
			add(proxies, "put and notify by proxy", 2, pingPong, one, lap{Bytes: bytes}, latency)
		}
		for _, bytes := range o.Messages {
			add(proxies, "one way by proxy", 2, oneWay, each, lap{Bytes: bytes}, rate(bytes))
		}
	}
	for _, devices := range slices.Compact([]int{1, min(2, last), last}) {
		comm, name := haloranks.All, "barrier of all devices"
		if devices == 1 {
			comm, name = haloranks.Device, "barrier of a device"
		}
		for _, each := range o.PerMultiprocessor {
			ranks := haloranks.Options{PerMultiprocessor: each}
			add(barrier, name, devices, barriers, ranks, lap{Comm: int64(comm)}, whole)
		}
	}
	for _, devices := range slices.Compact([]int{1, last}) {
		for _, each := range o.PerMultiprocessor {
			for which, name := range []string{aBroadcast: "broadcast", aReduce: "reduce", anAllreduce: "allreduce"} {
				for _, bytes := range o.Vectors {
					ranks := haloranks.Options{PerMultiprocessor: each}
					add(collective, name, devices, collectives, ranks, lap{Bytes: bytes, Work: int64(which)}, whole)
				}
			}
		}
	}
	return all
}
