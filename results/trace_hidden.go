package results

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// interval is a time [begin, end).
type interval struct{ begin, end time.Duration }

// Hidden returns for how long the devices communicated, and for how much of that they
// swept too, summed over devices. A device communicates while any of its streams packs,
// unpacks, copies or exchanges.
func (t *Trace) Hidden() (hidden, communication time.Duration) {
	for _, d := range t.Devices {
		both, all := d.Hidden()
		hidden += both
		communication += all
	}
	return hidden, communication
}

// Hidden is Trace.Hidden for one device.
func (d *TraceDevice) Hidden() (hidden, communication time.Duration) {
	sent, swept := d.communication(), d.intervals(traceSweep)
	return total(common(sent, swept)), total(sent)
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

// communication returns the times at which any stream communicates.
func (d *TraceDevice) communication() []interval {
	return d.intervals(tracePack, traceUnpack, traceCopy, traceExchange)
}

// intervals returns the union of the operations of the categories.
func (d *TraceDevice) intervals(categories ...string) []interval {
	var all []interval
	for _, s := range d.Streams {
		for _, o := range s.Operations {
			if slices.Contains(categories, o.Category) {
				all = append(all, interval{o.Begin, o.End})
			}
		}
	}
	return merged(all)
}

// merged returns the union of the intervals: in order, and with a gap between any two.
// None of it is empty. It reorders what it is given.
func merged(all []interval) (union []interval) {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.begin, b.begin) })
	for _, next := range all {
		switch last := len(union) - 1; {
		case next.end <= next.begin:
		case last >= 0 && next.begin <= union[last].end:
			union[last].end = max(union[last].end, next.end)
		default:
			union = append(union, next)
		}
	}
	return union
}

// common returns what two unions have in common, as a union.
func common(a, b []interval) (both []interval) {
	for len(a) > 0 && len(b) > 0 {
		x := interval{max(a[0].begin, b[0].begin), min(a[0].end, b[0].end)}
		if x.begin < x.end {
			both = append(both, x)
		}
		if a[0].end < b[0].end {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// total returns how long a union is.
func total(all []interval) (sum time.Duration) {
	for _, x := range all {
		sum += x.end - x.begin
	}
	return sum
}
