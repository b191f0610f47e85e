// Package trace keeps what the streams of each device did in some steps of a run, and when.
// Its files are in the Trace Event Format, which Perfetto reads.
package trace

import (
	"cmp"
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
	Network   string          `json:"network,omitempty"` // of messages between processes
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
					return fmt.Errorf(
						"%s, %s: %s from %v to %v after what ended at %v", d.Name, s.Name, o.Name, o.Begin, o.End, last,
					)
				}
				if o.End > longest {
					return fmt.Errorf(
						"%s, %s: %s ends after %v; a trace is no longer than %v", d.Name, s.Name, o.Name, o.End,
						longest,
					)
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

// An Interval is a time [Begin, End).
type Interval struct{ Begin, End time.Duration }

// Hidden returns for how long the devices communicated, and for how much of that they
// swept too, summed over devices. A device communicates while any of its streams packs,
// unpacks, copies or exchanges.
func (t *Trace) Hidden() (hidden, communication time.Duration) {
	for _, d := range t.Devices {
		both, all := d.hidden()
		hidden += both
		communication += all
	}
	return hidden, communication
}

// hidden is Trace.Hidden for one device.
func (d *Device) hidden() (hidden, communication time.Duration) {
	all, both := d.Communication()
	return total(both), total(all)
}

// HiddenText says the share for people: "87.3 % of 123.4 us of communication"; "" where
// there was no communication.
func (t *Trace) HiddenText() string {
	hidden, communication := t.Hidden()
	if communication == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%.1f %% of %s of communication", 100*hidden.Seconds()/communication.Seconds(), shortTime(communication),
	)
}

// shortTime writes a short time.
func shortTime(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%.1f us", d.Seconds()*1e6)
	}
	return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
}

// Communication returns the times at which any stream packs, unpacks, copies or exchanges,
// and those among them at which the device sweeps too. Both are in order, with a gap
// between any two.
func (d *Device) Communication() (all, hidden []Interval) {
	all = d.intervals(Pack, Unpack, Copy, Exchange)
	return all, common(all, d.intervals(Sweep))
}

// intervals returns the union of the operations of the categories.
func (d *Device) intervals(categories ...string) []Interval {
	var all []Interval
	for _, s := range d.Streams {
		for _, o := range s.Operations {
			if slices.Contains(categories, o.Category) {
				all = append(all, Interval{o.Begin, o.End})
			}
		}
	}
	return merged(all)
}

// merged returns the union of the intervals: in order, and with a gap between any two.
// None of it is empty. It reorders what it is given.
func merged(all []Interval) (union []Interval) {
	slices.SortFunc(all, func(a, b Interval) int { return cmp.Compare(a.Begin, b.Begin) })
	for _, next := range all {
		switch last := len(union) - 1; {
		case next.End <= next.Begin:
		case last >= 0 && next.Begin <= union[last].End:
			union[last].End = max(union[last].End, next.End)
		default:
			union = append(union, next)
		}
	}
	return union
}

// common returns what two unions have in common, as a union.
func common(a, b []Interval) (both []Interval) {
	for len(a) > 0 && len(b) > 0 {
		x := Interval{max(a[0].Begin, b[0].Begin), min(a[0].End, b[0].End)}
		if x.Begin < x.End {
			both = append(both, x)
		}
		if a[0].End < b[0].End {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// total returns how long a union is.
func total(all []Interval) (sum time.Duration) {
	for _, x := range all {
		sum += x.End - x.Begin
	}
	return sum
}
