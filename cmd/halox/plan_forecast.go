package main

import (
	"fmt"
	"io"
	"time"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// exchangeTimes is what the messages of a step take one device.
type exchangeTimes struct {
	device          *streams.Device
	sends, receives time.Duration // one after the other
	longest         time.Duration // a single message
	unknown         int           // messages that nobody measured
}

// atMost returns the time if the device handles its messages one after the other,
// sending and receiving at once.
func (f *exchangeTimes) atMost() time.Duration { return max(f.sends, f.receives) }

func (f *exchangeTimes) add(took time.Duration, known bool, sum *time.Duration) {
	*sum += took
	f.longest = max(f.longest, took)
	if !known {
		f.unknown++
	}
}

// forecasts returns what a step's messages take by the link model, by device.
func (w *setup) forecasts() (all []*exchangeTimes) {
	found := map[*streams.Device]*exchangeTimes{}
	for _, d := range w.place.Devices {
		if found[d] == nil {
			found[d] = &exchangeTimes{device: d}
			all = append(all, found[d])
		}
	}
	for _, m := range w.plan.Messages {
		from, to := w.place.Devices[m.From], w.place.Devices[m.To]
		took, known := w.session.Links.Model.Time(from, to, m.Path, p2p.MessageShape{Bytes: m.Bytes, Packed: !m.Contiguous})
		found[from].add(took, known, &found[from].sends)
		found[to].add(took, known, &found[to].receives)
	}
	return all
}

func (w *setup) printForecast(out io.Writer) {
	if len(w.plan.Messages) == 0 {
		return
	}
	var least, most time.Duration
	unknown := 0
	title := "exchange of a step, predicted from the measured links"
	if w.problem.Group > 1 {
		title = "exchange of " + w.each() + ", predicted from the measured links"
	}
	table(out, title, "device\tall it sends\tall it receives\tits longest message", func(t io.Writer) {
		for _, f := range w.forecasts() {
			fmt.Fprintf(t, "%v\t%s\t%s\t%s\n", f.device, p2p.Microseconds(f.sends), p2p.Microseconds(f.receives), p2p.Microseconds(f.longest))
			least, most = max(least, f.longest), max(most, f.atMost())
			unknown += f.unknown
		}
	})
	fmt.Fprintf(out, "an exchange takes %s if all messages travel at once (the longest message), %s if each device\n"+
		"handles its messages one after the other, sending and receiving at once (the busiest device)\n", p2p.Microseconds(least), p2p.Microseconds(most))
	if unknown > 0 {
		fmt.Fprintln(out, "some messages have no measured time; they count as 0")
	}
}
