package main

import (
	"fmt"
	"io"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/streams"
)

// solverFields is how many fields a solver has, each with an exchanger: steps read
// one and write the other.
const solverFields = 2

func printNeeds(out io.Writer, needs []*halo.Need) {
	title := fmt.Sprintf("memory, for %d fields and their messages", solverFields)
	table(out, title, "device\tfields\tbuffers\tpinned on the host\tfree\ttotal", func(t io.Writer) {
		for _, n := range needs {
			free, total := "-", "-"
			if n.Total > 0 {
				free, total = streams.Size(n.Free), streams.Size(n.Total)
			}
			fmt.Fprintf(t, "%v\t%s\t%s\t%s\t%s\t%s\n", n.Device, streams.Size(n.Fields), streams.Size(n.Buffers), streams.Size(n.Pinned), free, total)
		}
	})
}
