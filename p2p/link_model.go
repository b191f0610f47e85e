package p2p

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/halox/halox/streams"
)

// Sample is the time of one message, from its first call on the host to its arrival.
type Sample struct {
	Bytes int64         `json:"bytes"`       // size of the message
	Time  time.Duration `json:"nanoseconds"` // at least 1 ns
}

// Curve is the time of messages as a function of their size: samples in ascending order of size, with
// non-decreasing times. Between two samples the time is linear, with a latency and a bandwidth.
type Curve []Sample

// NewCurve returns a curve of samples in any order. A message that took longer than a larger one was disturbed,
// and gets the time of the larger one. Of several samples of one size, the fastest counts.
func NewCurve(samples ...Sample) Curve {
	c := slices.Clone(Curve(samples))
	slices.SortFunc(c, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Bytes, b.Bytes),
			cmp.Compare(a.Time, b.Time))
	})
	c = slices.CompactFunc(c, func(a, b Sample) bool { return a.Bytes == b.Bytes })
	for i := len(c) - 2; i >= 0; i-- {
		c[i].Time = min(c[i].Time, c[i+1].Time)
	}
	return c
}

// Time returns the time of a message by linear interpolation. A message smaller than all samples takes as long as
// the smallest. Beyond the largest sample the last line is extrapolated, up to 2^53 ns. A curve without samples
// gives 0.
func (c Curve) Time(bytes int64) time.Duration {
	if len(c) == 0 {
		return 0
	}
	if bytes <= c[0].Bytes || len(c) == 1 {
		return c[0].Time
	}
	i := 1
	for i < len(c)-1 && c[i].Bytes < bytes {
		i++
	}
	low, high := c[i-1], c[i]
	slope := float64(high.Time-low.Time) / float64(high.Bytes-low.Bytes)
	return low.Time + time.Duration(min(slope*float64(bytes-low.Bytes), float64(max(0, maxTime-low.Time))))
}

// maxTime exceeds the time of any message, and is small enough that times can be added.
const maxTime = 1 << 53

// valid reports whether the samples form a curve.
func (c Curve) valid() bool {
	for i, s := range c {
		if s.Bytes < 1 || s.Time < 1 || s.Time > maxTime || i > 0 && (s.Bytes <= c[i-1].Bytes || s.Time < c[i-1].Time) {
			return false
		}
	}
	return len(c) > 0
}

// MessageShape holds what is known about a message before its path is chosen.
type MessageShape struct {
	Bytes  int64 // size
	Packed bool  // gathered from rows and scattered again, unless the path stores directly; default false
}

// LinkModel holds measured times of messages between some devices. All CPU devices are equal and share their
// measurements.
type LinkModel struct {
	machine Machine
	curves  map[trip]Curve
}

// trip is what the time of a message depends on, apart from its size. Devices have their names in a Machine.
type trip struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Path   Path   `json:"path"`
	Packed bool   `json:"packed"`
}

// NewLinkModel returns a link model without measurements. driver is the version of the driver, and may be empty.
func NewLinkModel(devices []*streams.Device, driver string) *LinkModel {
	return &LinkModel{machine: newMachine(devices, driver), curves: map[trip]Curve{}}
}

// Set stores the curve of messages from one device to another, or to itself.
func (l *LinkModel) Set(from, to *streams.Device, path Path, packed bool, c Curve) {
	l.curves[tripOf(from, to, path, packed)] = c
}

// Time returns the time of a message from one device to another, or to itself, from its first call on the host to
// its arrival. ok is false if it was not measured.
func (l *LinkModel) Time(from, to *streams.Device, path Path, shape MessageShape) (t time.Duration, ok bool) {
	if l == nil {
		return 0, false
	}
	c, ok := l.curves[tripOf(from, to, path, shape.Packed)]
	return c.Time(shape.Bytes), ok
}

// On a path that stores directly, packed messages are like others: a single kernel moves both.
func tripOf(from, to *streams.Device, path Path, packed bool) trip {
	return trip{nameOf(from.Info), nameOf(to.Info), path, packed && !path.Traits().Stored}
}

// Machine identifies the devices and the driver of a link model.
type Machine struct {
	Driver  string   `json:"driver"`  // version
	Devices []string `json:"devices"` // names with bus ids, sorted, without duplicates
}

// newMachine describes devices and the version of their driver.
func newMachine(devices []*streams.Device, driver string) Machine {
	names := map[string]bool{}
	for _, d := range devices {
		names[nameOf(d.Info)] = true
	}
	return Machine{driver, slices.Sorted(maps.Keys(names))}
}

// nameOf returns a name that is the same for equal devices.
func nameOf(d streams.Info) string {
	if d.HostMemory {
		return string(d.Backend) + " " + d.Name
	}
	return d.Name + " " + d.PCIBusID
}
