package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/halox/halox/halo"
	"github.com/halox/halox/p2p"
	"github.com/halox/halox/streams"
)

// need is the memory that a run needs of one device.
type need struct {
	device string
	halo.Memory
	free, total int64 // of the device; 0 where that is not known
	shared      bool  // it is a host device: all have the memory of the machine together
}

// solverFields is how many fields a solver has, each with an exchanger: steps read
// one and write the other.
const solverFields = 2

// needs returns what the fields of a run and their exchanges need, by device.
func (w *setup) needs() (all []*need, err error) {
	found := map[*streams.Device]*need{}
	for rank, d := range w.devices {
		n := found[d]
		if n == nil {
			n = &need{device: d.String(), shared: d.Backend == streams.Host}
			if n.free, n.total, err = d.MemoryInfo(); err != nil {
				return nil, err
			}
			found[d] = n
			all = append(all, n)
		}
		m, err := w.plan.Memory(rank)
		if err != nil {
			return nil, err
		}
		for range solverFields {
			n.Memory = n.Add(m)
		}
	}
	return all, nil
}

func printNeeds(out io.Writer, needs []*need) {
	title := fmt.Sprintf("memory, for %d fields and their messages", solverFields)
	table(out, title, "device\tfields\tbuffers\tpinned on the host\tfree\ttotal", func(t io.Writer) {
		for _, n := range needs {
			free, total := "-", "-"
			if n.total > 0 {
				free, total = p2p.Size(n.free), p2p.Size(n.total)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", n.device, p2p.Size(n.Fields), p2p.Size(n.Buffers), p2p.Size(n.Pinned), free, total)
		}
	})
}

// fit returns an error for every device that has too little free memory, and one for
// all host devices together.
func fit(needs []*need) error {
	var errs []error
	host := need{device: "all host devices together"}
	for _, n := range needs {
		if n.shared {
			host.Memory, host.free, host.total = host.Add(n.Memory), n.free, n.total
			continue
		}
		errs = append(errs, n.fit())
	}
	return errors.Join(append(errs, host.fit())...)
}

func (n *need) fit() error {
	sum := n.Fields + n.Buffers
	if n.total == 0 || sum <= n.free {
		return nil
	}
	return fmt.Errorf("%s: the run needs %s, %s for fields and %s for buffers; %s of %s are free: use more devices, float32 or a smaller grid",
		n.device, p2p.Size(sum), p2p.Size(n.Fields), p2p.Size(n.Buffers), p2p.Size(n.free), p2p.Size(n.total))
}
