package main

import (
	"context"
	"fmt"
	"io"

	"github.com/halox/halox/solvers"
	"github.com/halox/halox/solvers/scheme"
	"github.com/halox/halox/streams"
)

// memory returns what a run holds on each device.
func (w *setup) memory(ctx context.Context) ([]scheme.Memory, error) {
	o := solverOptions(w.config)
	o.Scheme = w.scheme
	return solvers.DryRun(ctx, w.problem, w.plan, w.session.Compiler, o)
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

// printMemory writes what devices hold in a run and what they have, and the same of each host.
func (w *view) printMemory(out io.Writer) {
	table(out, "memory of a run in bytes", "device\tfield\tbeside it\tpinned on the host\tfree\ttotal", func(t io.Writer) {
		for _, k := range w.known {
			for _, m := range k.Memory {
				fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\n", m.Device, m.Field, m.Beside, m.Pinned, sizeOf(m.Free, m.Total), sizeOf(m.Total, m.Total))
			}
		}
		for _, h := range w.hosts() {
			fmt.Fprintf(t, "%s\t\t\t%d\t%s\t%s\n", h.name, h.own, sizeOf(h.Free, h.Total), sizeOf(h.Total, h.Total))
		}
	})
	if source := w.known[0].Host.Source; source != "" {
		fmt.Fprintf(out, "what is free on the host is %s\n", source)
	}
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
		if p := w.place.Processes; !p.IsAlone() {
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

// sizeOf writes a number of bytes, "-" where the total is not known.
func sizeOf(bytes, total int64) string {
	if total == 0 {
		return "-"
	}
	return streams.Size(bytes)
}
