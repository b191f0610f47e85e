package main

import (
	"fmt"
	"io"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/p2p/mpi"
	"github.com/halox/halox/streams"
)

// printCrossing says what goes from one process to another, and from one host to another.
func (w *view) printCrossing(out io.Writer) {
	p := w.place.Processes
	if p == nil {
		return
	}
	within, across := p.Used()
	for _, between := range []struct {
		kind, what string
		network    mpi.Network
	}{{linkOfProcesses, "between processes of one host", within}, {linkOfHosts, "between hosts", across}} {
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
		fmt.Fprintf(out, "%s: %d messages, %s %s, of one host at most %s; network %s: packed on the device, %s\n",
			between.what, messages, streams.Size(bytes), w.by(), streams.Size(most), between.network, carried(p, between.network))
	}
	w.printNetworks(out)
}

// carried says how a network carries what was packed.
func carried(p *mpi.Processes, n mpi.Network) string {
	switch n {
	case mpi.Device:
		return "as device memory, sent by " + p.Library
	case mpi.NCCL:
		return "as device memory, sent by " + p.NCCL()
	}
	return "through pinned memory, sent by " + p.Library
}

// printNetworks says which networks were tried, and what messages take.
func (w *view) printNetworks(out io.Writer) {
	if len(w.networks) == 0 {
		return
	}
	table(out, "networks between processes, from the first call to the arrival", "network\tbetween\t64 KiB\t1 MiB\t4 MiB\twhy not", func(t io.Writer) {
		for _, n := range w.networks {
			if n.Why != "" {
				fmt.Fprintf(t, "%s\t\t\t\t\t%s\n", n.Network, n.Why)
			}
			printCurve(t, n.Network, "processes of one host", n.Within)
			printCurve(t, n.Network, "hosts", n.Across)
		}
	})
}

// printCurve writes what messages of some sizes take.
func printCurve(out io.Writer, n mpi.Network, between string, c *halo.ProcessCurve) {
	if c == nil {
		return
	}
	fmt.Fprintf(out, "%s\t%s", n, between)
	for _, bytes := range []int64{64 << 10, 1 << 20, 4 << 20} {
		took := c.Curve.Time(bytes)
		fmt.Fprintf(out, "\t%s, %.2f GB/s", p2p.Microseconds(took), float64(bytes)/took.Seconds()/1e9)
	}
	fmt.Fprintln(out, "\t")
}
