package p2p

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/halox/halox/streams"
)

// Sample is the time that one message took, from its first call on the host to
// its arrival.
type Sample struct {
	Bytes int64         `json:"bytes"`
	Time  time.Duration `json:"nanoseconds"`
}

// Curve is the time of messages by their size: samples of growing size, whose
// times never fall. Between two of them the time is a latency and a bandwidth.
type Curve []Sample

// NewCurve makes a curve of samples in any order. A message that seemed slower than
// a larger one was disturbed, and counts as fast as that; of several of one size the
// fastest counts.
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

// Time returns the time of a message: a straight line between the samples next to
// it. A message smaller than all samples takes as long as the smallest; beyond the
// largest, the last line goes on, up to 2^53 ns. A curve without samples gives 0.
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

// maxTime is so long that no message takes it, and so short that times can be added.
const maxTime = 1 << 53

// valid reports whether the samples are those of a curve.
func (c Curve) valid() bool {
	for i, s := range c {
		if s.Bytes < 1 || s.Time < 1 || s.Time > maxTime || i > 0 && (s.Bytes <= c[i-1].Bytes || s.Time < c[i-1].Time) {
			return false
		}
	}
	return len(c) > 0
}

// MessageShape is what is known of a message before its path is chosen.
type MessageShape struct {
	Bytes  int64
	Packed bool // it is gathered from rows and scattered again, unless its path stores
}

// LinkModel is the measured time of messages between some devices. CPU devices are all alike and share their
// measurements.
type LinkModel struct {
	machine Machine
	curves  map[trip]Curve
}

// trip is what the time of a message depends on, besides its size. Devices have their names in a Machine.
type trip struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Path   Path   `json:"path"`
	Packed bool   `json:"packed"`
}

// NewLinkModel returns a link model of the devices without any measurement. The driver's
// version may be empty.
func NewLinkModel(devices []*streams.Device, driver string) *LinkModel {
	return &LinkModel{machine: newMachine(devices, driver), curves: map[trip]Curve{}}
}

// Set keeps the curve of messages from one device to another, or to itself.
func (l *LinkModel) Set(from, to *streams.Device, path Path, packed bool, c Curve) {
	l.curves[tripOf(from, to, path, packed)] = c
}

// Time returns how long a message takes from one device to another, or to itself,
// from its first call on the host to its arrival. ok is false where that was not
// measured.
func (l *LinkModel) Time(from, to *streams.Device, path Path, shape MessageShape) (t time.Duration, ok bool) {
	if l == nil {
		return 0, false
	}
	c, ok := l.curves[tripOf(from, to, path, shape.Packed)]
	return c.Time(shape.Bytes), ok
}

// A path that stores knows no packed messages: one kernel moves any of them.
func tripOf(from, to *streams.Device, path Path, packed bool) trip {
	return trip{nameOf(from.Info), nameOf(to.Info), path, packed && !path.Traits().Stored}
}

// Machine says which devices and driver a link model holds for.
type Machine struct {
	Driver  string   `json:"driver"`
	Devices []string `json:"devices"` // names with bus ids, sorted, each once
}

// newMachine describes devices with their driver's version.
func newMachine(devices []*streams.Device, driver string) Machine {
	names := map[string]bool{}
	for _, d := range devices {
		names[nameOf(d.Info)] = true
	}
	return Machine{driver, slices.Sorted(maps.Keys(names))}
}

// nameOf names a device so that devices of one name are alike.
func nameOf(d streams.Info) string {
	if d.HostMemory {
		return string(d.Backend) + " " + d.Name
	}
	return d.Name + " " + d.PCIBusID
}
