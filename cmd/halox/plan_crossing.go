package main

import (
	"fmt"
	"io"

	"github.com/halox/halox/streams"
)

// printCrossing says what goes from one process to another, and from one host to another.
func (w *view) printCrossing(out io.Writer) {
	p := w.place.Processes
	if p == nil {
		return
	}
	for _, between := range []struct{ kind, what string }{{linkOfProcesses, "between processes of one host"}, {linkOfHosts, "between hosts"}} {
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
