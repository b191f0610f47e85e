package main

import (
	"context"
	"fmt"
	"io"

	"github.com/halox/halox/p2p"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// view is a plan as it is shown, with what each process alone knows of its devices.
type view struct {
	*setup
	known   []knowledge  // by process; of one where this one is alone
	devices []deviceView // by rank of the subdomain
	links   []linkView   // by message
	unfit   error        // of a device that has too little memory
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

// view returns the plan with what all processes know. All call it. As a graph it needs no memory and no times.
func (w *setup) view(ctx context.Context, graph bool) (*view, error) {
	v := &view{setup: w}
	mine, err := w.knowledge(ctx, graph, v)
	if err := w.place.Agree(ctx, "plan", err); err != nil {
		return nil, err
	}
	if v.known, err = gather(w.place.Processes, "plan", mine); err != nil {
		return nil, err
	}
	for rank := range w.place.Subdomains {
		v.devices = append(v.devices, v.known[w.owner(rank)].Devices[rank])
	}
	for i := range w.plan.Messages {
		m := &w.plan.Messages[i]
		link := v.known[w.owner(m.From)].Links[i]
		m.Path, m.Why = link.Path, link.Why // also of messages within other processes
		v.links = append(v.links, link)
	}
	for process, k := range v.known {
		if k.Unfit != "" && v.unfit == nil {
			v.unfit = fmt.Errorf("%s: %s", w.place.Processes.Name(process), k.Unfit)
		}
	}
	return v, nil
}

// owner returns the process of a subdomain, 0 where this one is alone.
func (w *setup) owner(rank int) int {
	if w.place.Processes == nil {
		return 0
	}
	return w.place.Owners[rank]
}

// knowledge returns what this process knows.
func (w *setup) knowledge(ctx context.Context, graph bool, v *view) (k knowledge, err error) {
	for _, d := range w.place.Devices {
		if d == nil {
			k.Devices = append(k.Devices, deviceView{})
			continue
		}
		k.Devices = append(k.Devices, deviceView{w.nameOf(d), d.Name})
	}
	for _, m := range w.plan.Messages {
		k.Links = append(k.Links, linkView{w.kindOf(m.From, m.To), m.Why, m.Path})
	}
	if graph {
		return k, nil
	}
	memory, err := w.memory(ctx)
	if err != nil {
		return k, err
	}
	if k.Memory, err = w.memories(memory, w.nameOf); err != nil {
		return k, err
	}
	if k.Host, err = memory[0].Device.HostMemoryInfo(); err != nil {
		return k, err
	}
	k.Times = w.forecasts(w.nameOf)
	switch err := scheme.Fit(memory); {
	case w.place.Processes == nil:
		v.unfit = err
	case err != nil:
		k.Unfit = err.Error()
	}
	return k, nil
}

// nameOf names a device of this process.
func (w *setup) nameOf(d *streams.Device) string {
	if p := w.place.Processes; p != nil {
		return fmt.Sprintf("%v of rank %d", d, p.Rank)
	}
	return d.String()
}

// kindOf says what links two subdomains, as far as this process knows.
func (w *setup) kindOf(from, to int) string {
	if p := w.place.Processes; p != nil {
		a, b := w.place.Owners[from], w.place.Owners[to]
		switch {
		case p.Nodes[a] != p.Nodes[b]:
			return "network"
		case a != b:
			return "processes"
		}
	}
	if link := w.session.Links.Between(w.place.Devices[from], w.place.Devices[to]); link != nil {
		return orDash(link.Kind)
	}
	return "itself"
}

// printCrossing says what goes from one process to another, and from one host to another.
func (w *view) printCrossing(out io.Writer) {
	p := w.place.Processes
	if p == nil {
		return
	}
	for _, between := range []struct{ kind, what string }{{"processes", "between processes of one host"}, {"network", "between hosts"}} {
		messages, bytes := 0, int64(0)
		sent := map[int]int64{} // by host
		most := int64(0)
		for i, m := range w.plan.Messages {
			if w.links[i].Kind == between.kind {
				messages, bytes = messages+1, bytes+m.Bytes
				node := p.Nodes[w.place.Owners[m.From]]
				sent[node] += m.Bytes
				most = max(most, sent[node])
			}
		}
		if messages == 0 {
			continue
		}
		fmt.Fprintf(out, "%s: %d messages, %s %s, of one host at most %s; packed on the device, through pinned memory, sent by %s\n",
			between.what, messages, streams.Size(bytes), w.by(), streams.Size(most), p.Library)
	}
}
