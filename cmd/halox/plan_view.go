package main

import (
	"context"
	"fmt"
	"time"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// view is a plan as it is shown, with what each process alone knows of its devices.
type view struct {
	*setup
	known    []knowledge  // by process; of one where this one is alone
	devices  []deviceView // by rank of the subdomain
	links    []linkView   // by message
	unfit    error        // of a device that has too little memory
	between  *halo.ProcessModel
	networks []halo.NetworkTrial // that were tried, to other processes
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

// memoryView is what a run holds on a device, and what that has, in bytes.
type memoryView struct {
	Device                                  string
	Field, Beside, Pinned, Own, Free, Total int64 // Own: of the host's memory
}

// exchangeTimes is what the messages of a step take one device.
type exchangeTimes struct {
	Device          string
	Sends, Receives time.Duration // one after the other
	Longest         time.Duration // a single message
	Abroad          time.Duration // what it sends to other hosts, one after the other
	Unknown         int           // messages without a measured time
}

// atMost returns the time if the device handles its messages one after the other,
// sending and receiving at once.
func (f *exchangeTimes) atMost() time.Duration { return max(f.Sends, f.Receives) }

func (f *exchangeTimes) add(took time.Duration, known bool, sum *time.Duration) {
	*sum += took
	f.Longest = max(f.Longest, took)
	if !known {
		f.Unknown++
	}
}

// view returns the plan with what all processes know. All call it. As a graph it needs no memory and no times.
func (w *setup) view(ctx context.Context, graph bool) (*view, error) {
	v := &view{setup: w}
	if !graph {
		var err error
		if v.networks, err = w.Session.TryNetworks(ctx); err != nil {
			return nil, err
		}
		if v.between, err = w.Session.MeasureProcesses(ctx); err != nil {
			return nil, err
		}
	}
	mine, err := w.knowledge(ctx, graph, v)
	if err := w.Place.Agree(ctx, "plan", err); err != nil {
		return nil, err
	}
	if v.known, err = mpi.Gather(context.Background(), w.Place.Processes, "plan", mine); err != nil {
		return nil, err
	}
	for rank := range w.Place.Subdomains {
		v.devices = append(v.devices, v.known[w.owner(rank)].Devices[rank])
	}
	for i := range w.Plan.Messages {
		m := &w.Plan.Messages[i]
		link := v.known[w.owner(m.From)].Links[i]
		m.Path, m.Why = link.Path, link.Why // also of messages within other processes
		v.links = append(v.links, link)
	}
	for process, k := range v.known {
		if k.Unfit != "" && v.unfit == nil {
			v.unfit = fmt.Errorf("%s: %s", w.Place.Processes.Name(process), k.Unfit)
		}
	}
	return v, nil
}

// owner returns the process of a subdomain, 0 where this one is alone.
func (w *setup) owner(rank int) int {
	if w.Place.Processes.IsAlone() {
		return 0
	}
	return w.Place.Owners[rank]
}

// knowledge returns what this process knows.
func (w *setup) knowledge(ctx context.Context, graph bool, v *view) (k knowledge, err error) {
	for _, d := range w.Place.Devices {
		if d == nil {
			k.Devices = append(k.Devices, deviceView{})
			continue
		}
		k.Devices = append(k.Devices, deviceView{w.nameOf(d), d.Name})
	}
	for _, m := range w.Plan.Messages {
		k.Links = append(k.Links, linkView{w.kindOf(m.From, m.To), m.Why, m.Path})
	}
	if graph {
		return k, nil
	}
	memory, err := w.Memory(ctx)
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
	case w.Place.Processes.IsAlone():
		v.unfit = err
	case err != nil:
		k.Unfit = err.Error()
	}
}

// nameOf names a device of this process.
func (w *setup) nameOf(d *streams.Device) string {
	if p := w.Place.Processes; !p.IsAlone() {
		return fmt.Sprintf("%v of rank %d", d, p.Rank)
	}
	return d.String()
}

// each is what the messages of one exchange are called: those of a step, or of several.
func (w *setup) each() string {
	if w.Problem.Group > 1 {
		return fmt.Sprintf("%d steps", w.Problem.Group)
	}
	return "one step"
}

// by says what an exchange is made for.
func (w *setup) by() string {
	if w.Problem.Group > 1 {
		return "every " + w.each()
	}
	return "a step"
}

// forecasts returns what a step's messages take by the link model, those between processes by theirs, by device of this
// process.
func (w *setup) forecasts(between *halo.ProcessModel, name func(*streams.Device) string) (all []*exchangeTimes) {
	found := map[*streams.Device]*exchangeTimes{}
	for _, d := range w.Place.Devices {
		if d != nil && found[d] == nil {
			found[d] = &exchangeTimes{Device: name(d)}
			all = append(all, found[d])
		}
	}
	for _, m := range w.Plan.Messages {
		from, to := w.Place.Devices[m.From], w.Place.Devices[m.To]
		took, known := time.Duration(0), false
		switch {
		case from != nil && to != nil:
			took, known = w.Session.Links.Model.Time(from, to, m.Path,
				p2p.MessageShape{Bytes: m.Bytes, Packed: !m.Contiguous})
		case from != nil || to != nil:
			took, known = between.Time(w.Place.Owners[m.From], w.Place.Owners[m.To], m.Bytes)
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

// memories returns what the devices of this process hold in a run and what they have.
func (w *setup) memories(all []scheme.Memory, name func(*streams.Device) string) (views []memoryView, err error) {
	for _, m := range all {
		v := memoryView{Device: name(m.Device), Field: m.Variables, Beside: m.Extra, Pinned: m.Pinned, Own: m.Pinned}
		if v.Free, v.Total, err = m.Device.MemoryInfo(); err != nil {
			return nil, err
		}
		if m.Device.HostMemory {
			v.Own += m.Variables + m.Extra
		}
		views = append(views, v)
	}
	return views, nil
}

// hostView is the memory of a host, and what the devices on it take of that.
type hostView struct {
	streams.HostInfo
	name string
	own  int64
}

// hosts returns those of all processes, each once.
func (w *view) hosts() (all []*hostView) {
	byNode := map[int]*hostView{}
	for process, k := range w.known {
		node, name := 0, "the host"
		if p := w.Place.Processes; !p.IsAlone() {
			node, name = p.Nodes[process], "host "+p.Hosts[process]+" itself"
		}
		h := byNode[node]
		if h == nil {
			h = &hostView{HostInfo: k.Host, name: name}
			byNode[node] = h
			all = append(all, h)
		}
		for _, m := range k.Memory {
			h.own += m.Own
		}
	}
	return all
}
