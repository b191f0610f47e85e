package results

import (
	"math"

	"github.com/halox/halox/results/internal/wording"
)

// Number returns a pointer to v, or nil if v is NaN or infinite, which JSON cannot represent.
func Number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// A Metric names the quantity of a number of a row.
type Metric string

// The metrics. All times are medians for one operation.
const (
	Time          Metric = "time"       // of one exchange, packing or message, depending on the record
	OneThread     Metric = "one_thread" // of an exchange driven by one host thread
	Threads       Metric = "threads"    // of an exchange driven by one thread per device
	Step          Metric = "step"
	StepAlone     Metric = "step_alone" // of a step without the events that step includes, in the same run
	Slowdown      Metric = "slowdown"   // additional time per time without these events
	Latency       Metric = "latency"
	Rate          Metric = "rate"
	Updates       Metric = "updates"
	GFLOPS        Metric = "gflops"
	CopyTime      Metric = "copy_time" // of a plain copy of the same size, measured in the same run
	CopyRate      Metric = "copy_rate"
	FileTime      Metric = "file_time" // of plain writing or reading of the same bytes of files, in the same run
	FileRate      Metric = "file_rate"
	Finding       Metric = "find"            // of a checkpoint, whose files are verified
	Reading       Metric = "read"            // of the fields of a checkpoint that was found
	PeerRate      Metric = "peer_rate"       // of a plain copy between two devices, in the same run
	Messages      Metric = "messages"        // per second
	Compute       Metric = "compute"         // of a round without an exchange
	Hidden        Metric = "hidden"          // hidden share of the shorter of compute and exchange
	Share         Metric = "share"           // relative to the rate of a plain copy, from 0 to 1
	SpeedUp       Metric = "speedup"         // relative to the fewest devices measured, usually one
	OverBaseline  Metric = "over_baseline"   // speed-up over the baseline scheme on the same devices
	OverTwoStream Metric = "over_two_stream" // speed-up over the best two-stream scheme on the same devices
	Efficiency    Metric = "efficiency"      // speed-up divided by the ratio of devices, from 0 to 1
	BusyLost      Metric = "busy_lost"       // share of its rate that concurrent work lost, at most 1
	Setup         Metric = "setup"
	Loop          Metric = "loop"
	MaxError      Metric = "max_error"   // largest deviation from the exact solution
	ModelError    Metric = "model_error" // relative error of a model: median
	WorstError    Metric = "worst_error" // relative error of a model: maximum
	HostsAt90     Metric = "hosts_at_90" // number of hosts at which the efficiency falls below 90%
)

// metricInfo has the properties of a metric.
type metricInfo struct {
	metric  Metric
	title   string // title of an axis, without its unit
	unit    string // unit in records; 1 for a plain number
	better  direction
	ceiling Metric // metric that bounds it, in the same unit and run; "" for none

	// If set, numbers are displayed in another unit, multiplied by a factor.
	shownUnit   string
	shownFactor float64
}

// A direction defines which numbers of a metric are better.
type direction int

const (
	lower direction = iota + 1
	higher
)

// metrics is the table of all metrics.
var metrics = [...]metricInfo{
	{metric: Time, title: "time", unit: "us", better: lower, ceiling: CopyTime},
	{metric: OneThread, title: "time with one host thread", unit: "us", better: lower, ceiling: CopyTime},
	{metric: Threads, title: "time with one host thread per device", unit: "us", better: lower, ceiling: CopyTime},
	{metric: Step, title: "time of a step", unit: "us", better: lower},
	{metric: StepAlone, title: "time of a step alone", unit: "us", better: lower},
	{metric: Slowdown, title: "slowdown of steps", unit: "1", better: lower, shownUnit: "%", shownFactor: 100},
	{metric: Latency, title: "latency", unit: "us", better: lower},
	{metric: Rate, title: "rate", unit: "GB/s", better: higher, ceiling: CopyRate},
	{metric: Updates, title: "throughput", unit: "1/s", better: higher, shownUnit: "GPts/s", shownFactor: 1e-9},
	{metric: GFLOPS, title: "arithmetic", unit: "GFLOP/s", better: higher},
	{metric: CopyTime, title: "time of a plain copy", unit: "us", better: lower},
	{metric: CopyRate, title: "rate of a plain copy", unit: "GB/s", better: higher},
	{metric: FileTime, title: "time of plain files", unit: "us", better: lower},
	{metric: FileRate, title: "rate of plain files", unit: "GB/s", better: higher},
	{metric: Finding, title: "time to find and verify a checkpoint", unit: "us", better: lower},
	{metric: Reading, title: "time to read a checkpoint", unit: "us", better: lower},
	{metric: PeerRate, title: "rate of a plain peer copy", unit: "GB/s", better: higher},
	{metric: Messages, title: "messages", unit: "1/s", better: higher, shownUnit: "M/s", shownFactor: 1e-6},
	{metric: Compute, title: "time without an exchange", unit: "us", better: lower},
	{metric: Hidden, title: "hidden share", unit: "1", better: higher, shownUnit: "%", shownFactor: 100},
	{metric: Share, title: "share of a plain copy", unit: "1", better: higher, shownUnit: "%", shownFactor: 100},
	{metric: SpeedUp, title: "speed-up", unit: "1", better: higher},
	{metric: OverBaseline, title: "speed-up over the baseline scheme", unit: "1", better: higher},
	{metric: OverTwoStream, title: "speed-up over the best two-stream scheme", unit: "1", better: higher},
	{metric: Efficiency, title: "efficiency", unit: "1", better: higher, shownUnit: "%", shownFactor: 100},
	{
		metric: BusyLost, title: "slowdown of concurrent work", unit: "1", better: lower, shownUnit: "%",
		shownFactor: 100,
	},
	{metric: Setup, title: "time before the loop", unit: "s", better: lower},
	{metric: Loop, title: "time of the loop", unit: "s", better: lower},
	{metric: MaxError, title: "largest error", unit: "1", better: lower},
	{metric: ModelError, title: "error of the model", unit: "1", better: lower, shownUnit: "%", shownFactor: 100},
	{metric: HostsAt90, title: "hosts at which the efficiency falls below 90%", unit: "1", better: higher},
	{
		metric: WorstError, title: "largest error of the model", unit: "1", better: lower, shownUnit: "%",
		shownFactor: 100,
	},
}

// info returns the properties of the metric; for an unknown one only the name.
func (m Metric) info() metricInfo {
	for _, info := range metrics {
		if info.metric == m {
			return info
		}
	}
	return metricInfo{metric: m, title: wording.Spaced(string(m))}
}

// Title returns the title of an axis, without the unit.
func (m Metric) Title() string { return m.info().title }

// Ceiling returns the metric that bounds this one, "" for none. It has the same unit and was measured in the same run.
func (m Metric) Ceiling() Metric { return m.info().ceiling }

// LowerIsBetter reports whether lower numbers are better, as for times.
func (m Metric) LowerIsBetter() bool { return m.info().better == lower }

// Shown returns the display unit, and the factor to it, for numbers in a unit of a record. A unit that this
// halox does not write is unchanged.
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
