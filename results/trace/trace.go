package trace

import (
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/results"
)

// A Trace is the timeline of a run: what the streams of each device did, and when, in a
// few of its steps.
type Trace struct {
	About   About
	Devices []Device // no two of one name
}

// About says what was traced.
type About struct {
	Halox     results.Program `json:"halox"`
	Solver    string          `json:"solver,omitempty"`
	Size      []int           `json:"size,omitempty"` // of the grid, along x, y, z
	Precision string          `json:"precision,omitempty"`
	Scheme    string          `json:"scheme,omitempty"`
	Order     string          `json:"order,omitempty"`
	Path      string          `json:"path,omitempty"`
	Lost      int             `json:"lost,omitempty"`    // operations that are missing
	Failure   string          `json:"failure,omitempty"` // why there is no more
}

// A Device is what one device did.
type Device struct {
	Name    string        // "GPU 0, NVIDIA H200"
	Within  time.Duration // its times may be off those of other devices by so much, either way
	Streams []Stream
}

// A Stream is what one stream did: operations in order that do not overlap.
type Stream struct {
	Name       string
	Operations []Operation
}

// A Operation is one thing that a stream did.
type Operation struct {
	Name       string
	Category   string // see Categories
	Begin, End time.Duration
	Step       int64
	Bytes      int64  // of a copy
	With       string // the device at the other end, or that was waited for
}

// The categories of operations. Pack, Unpack, Copy and Exchange are communication.
const (
	Sweep    = "sweep"
	Pack     = "pack"
	Unpack   = "unpack"
	Copy     = "copy"
	Exchange = "exchange"
	Other    = "other"
	Wait     = "wait"
)

// Categories returns all of them.
func Categories() []string { return []string{Sweep, Pack, Unpack, Copy, Exchange, Other, Wait} }

// Traced reports whether there is any operation.
func (t *Trace) Traced() bool {
	return slices.ContainsFunc(t.Devices, func(d Device) bool { return len(d.Streams) > 0 })
}

// longest is how long after its begin a trace may tell of: times of devices can be added.
const longest = 1e6 * time.Second

// check refuses operations that do not come one after another, or too late.
func (t *Trace) check() error {
	for _, d := range t.Devices {
		for _, s := range d.Streams {
			last := time.Duration(0)
			for _, o := range s.Operations {
				if o.Begin < last || o.End < o.Begin {
					return fmt.Errorf("%s, %s: %s from %v to %v after what ended at %v", d.Name, s.Name, o.Name, o.Begin, o.End, last)
				}
				if o.End > longest {
					return fmt.Errorf("%s, %s: %s ends after %v; a trace is no longer than %v", d.Name, s.Name, o.Name, o.End, longest)
				}
				if !slices.Contains(Categories(), o.Category) {
					return fmt.Errorf("%s, %s: %s is of category %q", d.Name, s.Name, o.Name, o.Category)
				}
				last = o.End
			}
		}
	}
	return nil
}
