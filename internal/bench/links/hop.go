package links

import (
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// end is where a message begins or ends: the memory of a device, or host memory that the
// device has pinned.
type end struct {
	device *streams.Device
	pinned bool
}

// label is what rows call it.
func (e end) label() any {
	if e.pinned {
		return "host"
	}
	return e.device.ID
}

func (e end) alloc(bytes int64) (*streams.Memory, error) {
	if e.pinned {
		return e.device.AllocPinned(bytes)
	}
	return e.device.Alloc(bytes)
}

// The paths that are no links: their rates are what bounds the others.
const (
	devicePath = "device" // a copy within the memory of a device
	pinnedPath = "pinned" // between pinned host memory and a device
)

// hop is a way for messages: a path, or one of devicePath and pinnedPath.
type hop struct {
	path     string
	from, to end
}

// between returns the hop by a path from one device to another.
func between(path p2p.Path, from, to *streams.Device) hop {
	return hop{string(path), end{from, false}, end{to, false}}
}

// back returns the hop the other way.
func (h hop) back() hop { return hop{h.path, h.to, h.from} }

// impassable is why a hop carries nothing.
type impassable struct{ error }
