package main

import (
	"fmt"
	"io"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
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
				free, total = p2p.Size(n.Free), p2p.Size(n.Total)
			}
			fmt.Fprintf(t, "%v\t%s\t%s\t%s\t%s\t%s\n", n.Device, p2p.Size(n.Fields), p2p.Size(n.Buffers), p2p.Size(n.Pinned), free, total)
		}
	})
}
