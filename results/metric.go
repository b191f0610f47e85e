package results

import (
	"math"

	"github.com/halox/halox/results/internal/wording"
)

// Number makes v fit for a record: nil where v is NaN or infinite, which JSON
// cannot hold, and a pointer to v else. Zero is a number like any other.
func Number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// A Metric names what a number of a row measures.
type Metric string

// The metrics. All times are medians of one of what is measured.
const (
	Time          Metric = "time"       // of one exchange, packing, message: whatever the record is of
	OneThread     Metric = "one_thread" // of an exchange that one host thread drives
	Threads       Metric = "threads"    // of one that one thread per device drives
	Step          Metric = "step"
	Latency       Metric = "latency"
	Rate          Metric = "rate"
	Updates       Metric = "updates"
	GFLOPS        Metric = "gflops"
	CopyTime      Metric = "copy_time" // of a plain copy of as many bytes, measured in the same run
	CopyRate      Metric = "copy_rate"
	PeerRate      Metric = "peer_rate"       // of a plain copy between two devices, in the same run
	Messages      Metric = "messages"        // a second
	Compute       Metric = "compute"         // of a round without an exchange
	Hidden        Metric = "hidden"          // share of the shorter of compute and exchange that the other hides
	Share         Metric = "share"           // of the rate of the plain copy, from 0 to 1
	SpeedUp       Metric = "speedup"         // over fewer devices, one where they were measured
	OverBaseline  Metric = "over_baseline"   // speed-up over the baseline scheme on as many devices
	OverTwoStream Metric = "over_two_stream" // over the best two-stream scheme on as many
	Efficiency    Metric = "efficiency"      // the speed-up over how many times the devices are, from 0 to 1
	BusyLost      Metric = "busy_lost"       // part of its rate that the concurrent work lost, at most 1
	Setup         Metric = "setup"
	Loop          Metric = "loop"
	MaxError      Metric = "max_error"   // the largest distance from the exact solution
	ModelError    Metric = "model_error" // how far a model is from what was measured, as a part of that: the median
	WorstError    Metric = "worst_error" // and the largest
	HostsAt90     Metric = "hosts_at_90" // how many hosts there are where the efficiency falls below 90%
)

// metricInfo is what is known of a metric.
type metricInfo struct {
	metric  Metric
	title   string // what an axis says, without its unit
	unit    string // of the numbers in a record; 1 for a plain number
	better  direction
	ceiling Metric // what bounds it, in the same unit and of the same run; "" for none

	// Numbers are shown to people in another unit, times a factor, where these are given.
	shownUnit   string
	shownFactor float64
}

// A direction says which numbers of a metric are better.
type direction int

const (
	lower direction = iota + 1
	higher
)

// metrics is the one table of them.
var metrics = [...]metricInfo{
	{metric: Time, title: "time", unit: "us", better: lower, ceiling: CopyTime},
	{metric: OneThread, title: "time, driven by one thread", unit: "us", better: lower, ceiling: CopyTime},
	{metric: Threads, title: "time, driven by a thread a device", unit: "us", better: lower, ceiling: CopyTime},
	{metric: Step, title: "time of a step", unit: "us", better: lower},
	{metric: Latency, title: "latency", unit: "us", better: lower},
	{metric: Rate, title: "rate", unit: "GB/s", better: higher, ceiling: CopyRate},
	{metric: Updates, title: "updated points", unit: "1/s", better: higher, shownUnit: "G/s", shownFactor: 1e-9},
	{metric: GFLOPS, title: "arithmetic", unit: "GFLOP/s", better: higher},
	{metric: CopyTime, title: "time of a plain copy", unit: "us", better: lower},
	{metric: CopyRate, title: "rate of a plain copy", unit: "GB/s", better: higher},
	{metric: PeerRate, title: "rate of a plain peer copy", unit: "GB/s", better: higher},
	{metric: Messages, title: "messages", unit: "1/s", better: higher, shownUnit: "M/s", shownFactor: 1e-6},
	{metric: Compute, title: "time of the computing alone", unit: "us", better: lower},
	{metric: Hidden, title: "hidden share", unit: "1", better: higher, shownUnit: "%", shownFactor: 100},
	{metric: Share, title: "share of a plain copy", unit: "1", better: higher, shownUnit: "%", shownFactor: 100},
	{metric: SpeedUp, title: "speed-up", unit: "1", better: higher},
	{metric: OverBaseline, title: "speed-up over the baseline scheme", unit: "1", better: higher},
	{metric: OverTwoStream, title: "speed-up over the best two-stream scheme", unit: "1", better: higher},
	{metric: Efficiency, title: "efficiency", unit: "1", better: higher, shownUnit: "%", shownFactor: 100},
	{metric: BusyLost, title: "what else ran lost", unit: "1", better: lower, shownUnit: "%", shownFactor: 100},
	{metric: Setup, title: "time before the loop", unit: "s", better: lower},
	{metric: Loop, title: "time of the loop", unit: "s", better: lower},
	{metric: MaxError, title: "largest error", unit: "1", better: lower},
	{metric: ModelError, title: "error of the model", unit: "1", better: lower, shownUnit: "%", shownFactor: 100},
	{metric: HostsAt90, title: "hosts where the efficiency falls below 90%", unit: "1", better: higher},
	{
		metric: WorstError, title: "largest error of the model", unit: "1", better: lower, shownUnit: "%",
		shownFactor: 100,
	},
}

// info returns what is known of the metric. Of one that is in no table it is the name alone.
func (m Metric) info() metricInfo {
	for _, info := range metrics {
		if info.metric == m {
			return info
		}
	}
	return metricInfo{metric: m, title: wording.Spaced(string(m))}
}

// Title returns what an axis says, without the unit.
func (m Metric) Title() string { return m.info().title }

// Ceiling returns the metric that bounds this one, "" for none. It has the same unit and was measured in the same run.
func (m Metric) Ceiling() Metric { return m.info().ceiling }

// LowerIsBetter reports whether a lower number is the better one, as with times.
func (m Metric) LowerIsBetter() bool { return m.info().better == lower }

// Shown returns the unit and the factor by which people are shown numbers that a record has
// in a unit. A record may have a metric in another unit than this halox writes: that one
// stays as it is.
func (m Metric) Shown(unit string) (string, float64) {
	i := m.info()
	if i.shownUnit != "" && unit == i.unit {
		return i.shownUnit, i.shownFactor
	}
	if unit == "1" {
		return "", 1
	}
	return unit, 1
}
