// Package trace stores the operations of the streams of each device in some steps of a run, with their times.
// Its files are in the Trace Event Format, which Perfetto reads.
package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/results"
)

// A Trace is the timeline of a run: the operations of the streams of each device, with their times, in a few
// of its steps.
type Trace struct {
	About   About    // description of the run
	Devices []Device // with distinct names
}

// About describes the traced run.
type About struct {
	Halox     results.Program `json:"halox"`               // version of halox
	Solver    string          `json:"solver,omitempty"`    // solver
	Size      []int           `json:"size,omitempty"`      // grid size along x, y, z
	Precision string          `json:"precision,omitempty"` // element type
	Scheme    string          `json:"scheme,omitempty"`    // scheme
	Order     string          `json:"order,omitempty"`     // order of exchanges, if any
	Path      string          `json:"path,omitempty"`      // path of messages
	Network   string          `json:"network,omitempty"`   // network of messages between processes
	Lost      int             `json:"lost,omitempty"`      // number of missing operations
	Failure   string          `json:"failure,omitempty"`   // error that ended the trace
}

// A Device is the operations of one device.
type Device struct {
	Name       string        // such as "GPU 0, NVIDIA H200"
	ClockError time.Duration // accuracy of its times relative to other devices, in either direction
	Streams    []Stream      // streams of the device
}

// A Stream is the operations of one stream, in order, without overlap.
type Stream struct {
	Name       string      // name in viewers
	Operations []Operation // in order of time
}

// An Operation is one operation of a stream.
type Operation struct {
	Name       string        // name in viewers
	Category   string        // one of Categories
	Begin, End time.Duration // time range
	Step       int64         // step, from 1
	Bytes      int64         // bytes of a copy
	With       string        // device at the other end, or waited for
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

// Categories returns all categories.
func Categories() []string { return []string{Sweep, Pack, Unpack, Copy, Exchange, Other, Wait} }

// Traced reports whether there is any operation.
func (t *Trace) Traced() bool {
	return slices.ContainsFunc(t.Devices, func(d Device) bool { return len(d.Streams) > 0 })
}

// longest is the maximum time in a trace: times of devices can be added.
const longest = 1e6 * time.Second

// check rejects operations that overlap, or are too late.
func (t *Trace) check() error {
	for _, d := range t.Devices {
		for _, s := range d.Streams {
			last := time.Duration(0)
			for _, o := range s.Operations {
				if o.Begin < last || o.End < o.Begin {
					return fmt.Errorf(
						"%s, %s: %s from %v to %v must begin after the previous operation, which ended at %v",
						d.Name, s.Name, o.Name, o.Begin, o.End, last)
				}
				if o.End > longest {
					return fmt.Errorf(
						"%s, %s: %s ends after %v, must be at most %v", d.Name, s.Name, o.Name, o.End,
						longest,
					)
				}
				if !slices.Contains(Categories(), o.Category) {
					return fmt.Errorf("%s, %s: %s has unknown category %q", d.Name, s.Name, o.Name, o.Category)
				}
				last = o.End
			}
		}
	}
	return nil
}

// An Interval is the time range [Begin, End).
type Interval struct {
	Begin, End time.Duration // since the start of the trace
}

// Hidden returns for how long the devices communicated, and for how much of that time they also swept, summed
// over devices. A device communicates while any of its streams packs, unpacks, copies or exchanges.
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

// HiddenText formats the share: "87.3 % of 123.4 us of communication"; "" without communication.
func (t *Trace) HiddenText() string {
	hidden, communication := t.Hidden()
	if communication == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%.1f %% of %s of communication", 100*hidden.Seconds()/communication.Seconds(), shortTime(communication),
	)
}

// shortTime formats a short time.
func shortTime(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%.1f us", d.Seconds()*1e6)
	}
	return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
}

// Communication returns the times at which any stream packs, unpacks, copies or exchanges, and the part of
// them at which the device also sweeps. Both are sorted, with a gap between any two.
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

// merged returns the union of the intervals: sorted, not empty, and with a gap between any two. It reorders
// its argument.
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

// common returns the intersection of two unions, as a union.
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

// total returns the length of a union.
func total(all []Interval) (sum time.Duration) {
	for _, x := range all {
		sum += x.End - x.Begin
	}
	return sum
}
