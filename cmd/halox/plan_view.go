package main

import (
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// view is a plan as it is shown, with what each process alone knows of its devices.
type view struct {
	*setup
	known    []knowledge  // by process; of one where this one is alone
	devices  []deviceView // by rank of the subdomain
	links    []linkView   // by message
	unfit    error        // of a device that has too little memory
	between  *halo.ProcessModel
	networks []halo.NetworkTrial // that were tried, to other processes
}

// knowledge is what one process tells the others for a plan.
type knowledge struct {
	Devices []deviceView // by rank of the subdomain, empty where another process owns it
	Links   []linkView   // by message, empty where its sender is another process's
	Memory  []memoryView
	Host    streams.HostInfo
	Times   []*exchangeTimes
	Unfit   string
}

// deviceView is a device by its names.
type deviceView struct{ Name, Model string }

// linkView is how a message goes.
type linkView struct {
	Kind, Why string
	Path      p2p.Path
}

// memoryView is what a run holds on a device, and what that has, in bytes.
type memoryView struct {
	Device                                  string
	Field, Beside, Pinned, Own, Free, Total int64 // Own: of the host's memory
}

// exchangeTimes is what the messages of a step take one device.
type exchangeTimes struct {
	Device          string
	Sends, Receives time.Duration // one after the other
	Longest         time.Duration // a single message
	Abroad          time.Duration // what it sends to other hosts, one after the other
	Unknown         int           // messages that nobody measured
}

// atMost returns the time if the device handles its messages one after the other,
// sending and receiving at once.
func (f *exchangeTimes) atMost() time.Duration { return max(f.Sends, f.Receives) }

func (f *exchangeTimes) add(took time.Duration, known bool, sum *time.Duration) {
	*sum += took
	f.Longest = max(f.Longest, took)
	if !known {
		f.Unknown++
	}
}
