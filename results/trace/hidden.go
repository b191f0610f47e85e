package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

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
	return fmt.Sprintf("%.1f %% of %s of communication", 100*hidden.Seconds()/communication.Seconds(), shortTime(communication))
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
