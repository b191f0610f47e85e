package main

import (
	"context"
	"fmt"

	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// view returns the plan with what all processes know. All call it. As a graph it needs no memory and no times.
func (w *setup) view(ctx context.Context, graph bool) (*view, error) {
	v := &view{setup: w}
	if !graph {
		var err error
		if v.networks, err = w.session.TryNetworks(ctx); err != nil {
			return nil, err
		}
		if v.between, err = w.session.MeasureProcesses(ctx); err != nil {
			return nil, err
		}
	}
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
	if w.place.Processes.IsAlone() {
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
		k.unfit(w, v, err)
		return k, nil
	}
	if k.Memory, err = w.memories(memory, w.nameOf); err != nil {
		return k, err
	}
	if k.Host, err = memory[0].Device.HostMemoryInfo(); err != nil {
		return k, err
	}
	k.Times = w.forecasts(v.between, w.nameOf)
	k.unfit(w, v, scheme.Fit(memory))
	return k, nil
}

// unfit keeps why a run does not fit.
func (k *knowledge) unfit(w *setup, v *view, err error) {
	switch {
	case w.place.Processes.IsAlone():
		v.unfit = err
	case err != nil:
		k.Unfit = err.Error()
	}
}

// nameOf names a device of this process.
func (w *setup) nameOf(d *streams.Device) string {
	if p := w.place.Processes; !p.IsAlone() {
		return fmt.Sprintf("%v of rank %d", d, p.Rank)
	}
	return d.String()
}
