package p2p

import (
	"maps"
	"slices"
	"time"

	"github.com/halox/halox/streams"
)

// MessageShape is what is known of a message before its path is chosen.
type MessageShape struct {
	Bytes  int64
	Packed bool // it is gathered from rows and scattered again, unless its path stores
}

// Model is what messages between some devices take, measured. Host devices are
// all alike and share their measurements.
type LinkModel struct {
	machine Machine
	curves  map[trip]Curve
}

// trip is a way for messages; devices have their names in a Machine.
type trip struct {
	from, to string
	path     Path
	packed   bool
}

// NewLinkModel returns a link model of the devices without any measurement. The driver's
// version may be empty.
func NewLinkModel(devices []*streams.Device, driver string) *LinkModel {
	return &LinkModel{machine: newMachine(devices, driver), curves: map[trip]Curve{}}
}

// Set keeps the curve of messages from one device to another, or to itself.
func (r *LinkModel) Set(from, to *streams.Device, path Path, packed bool, c Curve) {
	r.curves[tripOf(from, to, path, packed)] = c
}

// Time returns how long a message takes from one device to another, or to itself,
// from its first call on the host to its arrival. ok is false where that was not
// measured.
func (r *LinkModel) Time(from, to *streams.Device, path Path, shape MessageShape) (t time.Duration, ok bool) {
	if r == nil {
		return 0, false
	}
	c, ok := r.curves[tripOf(from, to, path, shape.Packed)]
	return c.Time(shape.Bytes), ok
}

// A path that stores knows no packed messages: one kernel moves any of them.
func tripOf(from, to *streams.Device, path Path, packed bool) trip {
	return trip{nameOf(from.Info), nameOf(to.Info), path, packed && !path.Traits().Stored}
}

// Machine says whose a link model they are: they hold for no other devices, and for no
// other driver.
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

func (m Machine) equal(n Machine) bool {
	return m.Driver == n.Driver && slices.Equal(m.Devices, n.Devices)
}
