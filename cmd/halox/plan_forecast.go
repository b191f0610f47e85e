package main

import (
	"fmt"
	"io"
	"time"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// forecasts returns what a step's messages take by the link model, by device of this process.
func (w *setup) forecasts(name func(*streams.Device) string) (all []*exchangeTimes) {
	found := map[*streams.Device]*exchangeTimes{}
	for _, d := range w.place.Devices {
		if d != nil && found[d] == nil {
			found[d] = &exchangeTimes{Device: name(d)}
			all = append(all, found[d])
		}
	}
	for _, m := range w.plan.Messages {
		from, to := w.place.Devices[m.From], w.place.Devices[m.To]
		took, known := time.Duration(0), false
		if from != nil && to != nil {
			took, known = w.session.Links.Model.Time(from, to, m.Path, p2p.MessageShape{Bytes: m.Bytes, Packed: !m.Contiguous})
		}
		if from != nil {
			found[from].add(took, known, &found[from].Sends)
		}
		if to != nil {
			found[to].add(took, known, &found[to].Receives)
		}
	}
	return all
}

func (w *view) printForecast(out io.Writer) {
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
		for _, k := range w.known {
			for _, f := range k.Times {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.Device, p2p.Microseconds(f.Sends), p2p.Microseconds(f.Receives), p2p.Microseconds(f.Longest))
				least, most = max(least, f.Longest), max(most, f.atMost())
				unknown += f.Unknown
			}
		}
	})
	fmt.Fprintf(out, "an exchange takes %s if all messages travel at once (the longest message), %s if each device\n"+
		"handles its messages one after the other, sending and receiving at once (the busiest device)\n", p2p.Microseconds(least), p2p.Microseconds(most))
	switch {
	case unknown > 0 && w.place.Processes != nil:
		fmt.Fprintln(out, "messages between processes count as 0: under the same launcher, halox bench links measures them")
	case unknown > 0:
		fmt.Fprintln(out, "some messages have no measured time; they count as 0")
	}
}
