package ranks

import (
	"time"

	"github.com/halox/halox/streams"
)

// SetFirstCount sets the initial value of all counts of notifications, to make them wrap around soon.
func SetFirstCount(w *World, n uint64) {
	w.first = n
	w.laid, w.known = 0, 0
	for _, m := range w.members {
		if m.staging != nil {
			words := streams.View[uint64](m.staging.Bytes()[w.layout().counts():])
			for i := range words {
				words[i] = n
			}
		}
	}
}

// SetGrace sets how long ranks may take to end after the end of a run.
func SetGrace(w *World, grace time.Duration) { w.grace = grace }

// RunOnHost does what the stream of a CPU device does in a run.
func RunOnHost(w *World, device int) { w.host.runAll(device) }

// ChannelOf is the channel with a number, whether it exists or not.
func ChannelOf(number int) Channel { return Channel{number} }

var Reciprocal = reciprocal

var Checksum = checksum

// WindowAt is a window of all ranks with any slot.
func WindowAt(slot int) Window { return Window{slot, All} }
