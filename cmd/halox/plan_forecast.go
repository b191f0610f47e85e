package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// forecasts returns what a step's messages take by the link model, those between processes by theirs, by device of this
// process.
func (w *setup) forecasts(between *halo.ProcessModel, name func(*streams.Device) string) (all []*exchangeTimes) {
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
		switch {
		case from != nil && to != nil:
			took, known = w.session.Links.Model.Time(from, to, m.Path, p2p.MessageShape{Bytes: m.Bytes, Packed: !m.Contiguous})
		case from != nil || to != nil:
			took, known = between.Time(w.place.Owners[m.From], w.place.Owners[m.To], m.Bytes)
		}
		if from != nil {
			found[from].add(took, known, &found[from].Sends)
			if w.kindOf(m.From, m.To) == linkOfHosts {
				found[from].Abroad += took
			}
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
	unknown, byHost := 0, map[int]time.Duration{}
	title := "exchange of a step, predicted from the measured links"
	if w.problem.Group > 1 {
		title = "exchange of " + w.each() + ", predicted from the measured links"
	}
	table(out, title, "device\tall it sends\tall it receives\tits longest message", func(t io.Writer) {
		for process, k := range w.known {
			for _, f := range k.Times {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.Device, p2p.Microseconds(f.Sends), p2p.Microseconds(f.Receives), p2p.Microseconds(f.Longest))
				least, most = max(least, f.Longest), max(most, f.atMost())
				unknown += f.Unknown
				if p := w.place.Processes; !p.IsAlone() {
					byHost[p.Nodes[process]] += f.Abroad
					most = max(most, byHost[p.Nodes[process]])
				}
			}
		}
	})
	also := ""
	if p := w.place.Processes; !p.IsAlone() && slices.Max(p.Nodes) > 0 {
		also = ",\nand each host those to other hosts one after the other"
	}
	fmt.Fprintf(out, "an exchange takes %s if all messages travel at once (the longest message), %s if each device\n"+
		"handles its messages one after the other, sending and receiving at once (the busiest device)%s\n", p2p.Microseconds(least), p2p.Microseconds(most), also)
	w.printBetween(out)
	if unknown > 0 {
		fmt.Fprintln(out, "some messages have no measured time; they count as 0")
	}
}

// printBetween says between which processes messages were measured, as which all others count.
func (w *view) printBetween(out io.Writer) {
	if w.between == nil {
		return
	}
	for _, kind := range []struct {
		what string
		*halo.ProcessCurve
	}{{"processes of one host", w.between.Within}, {"hosts", w.between.Across}} {
		if kind.ProcessCurve == nil {
			continue
		}
		first, last := kind.Curve[0], kind.Curve[len(kind.Curve)-1]
		p := w.place.Processes
		fmt.Fprintf(out, "messages between %s count as those between %s and %s: %s for %s, %s for %s, packed, sent and unpacked\n",
			kind.what, p.Name(kind.From), p.Name(kind.To), p2p.Microseconds(first.Time), streams.Size(first.Bytes), p2p.Microseconds(last.Time), streams.Size(last.Bytes))
	}
}
