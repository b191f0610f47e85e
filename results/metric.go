package results

import (
	"slices"

	"github.com/halox/halox/results/internal/wording"
)

// A Metric names what a number of a row measures.
type Metric string

// The metrics. All times are medians of one of what is measured.
const (
	Time          Metric = "time"       // of one exchange, packing, message: whatever the record is of
	OneThread     Metric = "one_thread" // of an exchange that one host thread drives
	Threads       Metric = "threads"    // of one that a thread a device drives
	Step          Metric = "step"
	Latency       Metric = "latency"
	Rate          Metric = "rate"
	Updates       Metric = "updates"
	GFLOPS        Metric = "gflops"
	CopyTime      Metric = "copy_time" // of a plain copy of as many bytes, measured beside
	CopyRate      Metric = "copy_rate"
	PeerRate      Metric = "peer_rate"       // of a plain copy between two devices, measured beside
	Share         Metric = "share"           // of the rate of the plain copy, from 0 to 1
	SpeedUp       Metric = "speedup"         // over fewer devices, one where they were measured
	OverBaseline  Metric = "over_baseline"   // speed-up over the baseline scheme on as many devices
	OverTwoStream Metric = "over_two_stream" // over the best two-stream scheme on as many
	Efficiency    Metric = "efficiency"      // the speed-up over how many times the devices are, from 0 to 1
	BusyLost      Metric = "busy_lost"       // slowdown of the concurrent workload: the part of its rate that it lost, up to 1; it may be below 0
	Setup         Metric = "setup"
	Loop          Metric = "loop"
	MaxError      Metric = "max_error" // the largest distance from the exact solution
)

// A Direction says which numbers of a metric are better.
type Direction int

// The directions.
const (
	Neither Direction = iota
	Lower
	Higher
)

// MetricInfo is what is known of a metric.
type MetricInfo struct {
	Metric  Metric
	Title   string // what an axis says, without its unit
	Unit    string // of the numbers in a record; 1 for a plain number
	Better  Direction
	Ceiling Metric // what bounds it, in the same unit and measured beside; "" for none

	// Numbers are shown to people in another unit, times a factor, where these are given.
	ShownUnit   string
	ShownFactor float64
}

// metrics is the one table of them.
var metrics = [...]MetricInfo{
	{Metric: Time, Title: "time", Unit: "us", Better: Lower, Ceiling: CopyTime},
	{Metric: OneThread, Title: "time, driven by one thread", Unit: "us", Better: Lower, Ceiling: CopyTime},
	{Metric: Threads, Title: "time, driven by a thread a device", Unit: "us", Better: Lower, Ceiling: CopyTime},
	{Metric: Step, Title: "time of a step", Unit: "us", Better: Lower},
	{Metric: Latency, Title: "latency", Unit: "us", Better: Lower},
	{Metric: Rate, Title: "rate", Unit: "GB/s", Better: Higher, Ceiling: CopyRate},
	{Metric: Updates, Title: "updated points", Unit: "1/s", Better: Higher, ShownUnit: "G/s", ShownFactor: 1e-9},
	{Metric: GFLOPS, Title: "arithmetic", Unit: "GFLOP/s", Better: Higher},
	{Metric: CopyTime, Title: "time of a plain copy", Unit: "us", Better: Lower},
	{Metric: CopyRate, Title: "rate of a plain copy", Unit: "GB/s", Better: Higher},
	{Metric: PeerRate, Title: "rate of a plain peer copy", Unit: "GB/s", Better: Higher},
	{Metric: Share, Title: "share of a plain copy", Unit: "1", Better: Higher, ShownUnit: "%", ShownFactor: 100},
	{Metric: SpeedUp, Title: "speed-up", Unit: "1", Better: Higher},
	{Metric: OverBaseline, Title: "speed-up over the baseline scheme", Unit: "1", Better: Higher},
	{Metric: OverTwoStream, Title: "speed-up over the best two-stream scheme", Unit: "1", Better: Higher},
	{Metric: Efficiency, Title: "efficiency", Unit: "1", Better: Higher, ShownUnit: "%", ShownFactor: 100},
	{Metric: BusyLost, Title: "what else ran lost", Unit: "1", Better: Lower, ShownUnit: "%", ShownFactor: 100},
	{Metric: Setup, Title: "time before the loop", Unit: "s", Better: Lower},
	{Metric: Loop, Title: "time of the loop", Unit: "s", Better: Lower},
	{Metric: MaxError, Title: "largest error", Unit: "1", Better: Lower},
}

// Metrics returns what is known of all of them.
func Metrics() []MetricInfo { return slices.Clone(metrics[:]) }

// Info returns what is known of the metric. Of one that is in no table it is the
// name alone.
func (m Metric) Info() MetricInfo {
	for _, info := range metrics {
		if info.Metric == m {
			return info
		}
	}
	return MetricInfo{Metric: m, Title: wording.Spaced(string(m))}
}

// Shown returns the unit and the factor by which numbers in a unit are shown. A unit
// that is not the table's own, of a record that says so, stays as it is.
func (i MetricInfo) Shown(unit string) (string, float64) {
	if i.ShownUnit != "" && unit == i.Unit {
		return i.ShownUnit, i.ShownFactor
	}
	if unit == "1" {
		return "", 1
	}
	return unit, 1
}
