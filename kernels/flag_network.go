package kernels

import (
	"fmt"
	"slices"

	"github.com/halox/halox/streams"
)

// flagBytes keeps flags on lines of their own.
const flagBytes = 128

// flagNetwork says which ranks of a group of devices wait for which others, and where the flags and
// counts lie by which they do. Each rank has some lines of its own memory for each of its
// neighbours, to which that one writes, and then some that are its own.
type flagNetwork struct {
	devices    []*streams.Device // by rank
	neighbours [][]int           // by rank: who waits for it, and whom it waits for
	each, own  int               // lines for a neighbour, and its own
	memory     []*streams.Memory // by rank
	failed     []*streams.Memory // by rank, pinned: 1 + the place of the neighbour waited for in vain
}

// newFlagNetwork returns a network that has no memory yet. Of two neighbours each must name the
// other, and no rank more than most.
func newFlagNetwork(devices []*streams.Device, neighbours [][]int, most, each, own int) (*flagNetwork, error) {
	n := &flagNetwork{
		devices: devices, neighbours: neighbours, each: each, own: own,
		memory: make([]*streams.Memory, len(devices)), failed: make([]*streams.Memory, len(devices)),
	}
	for i, others := range neighbours {
		if len(others) > most {
			return nil, fmt.Errorf("kernels: %d neighbours; up to %d are possible", len(others), most)
		}
		for _, k := range others {
			if k < 0 || k >= len(devices) || k == i || n.place(i, k) < 0 {
				return nil, fmt.Errorf("kernels: rank %d exchanges with rank %d, which does not name it", i, k)
			}
		}
	}
	return n, nil
}

// open makes the memory of a rank, of zeros, to be closed with made.
func (n *flagNetwork) open(rank int, made *streams.Resources) (err error) {
	lines := max(1, n.each*len(n.neighbours[rank])+n.own)
	if n.memory[rank], err = zeros(n.devices[rank], int64(lines)*flagBytes); err != nil {
		return err
	}
	made.Add(n.memory[rank])
	if n.failed[rank], err = n.devices[rank].AllocPinned(8); err != nil {
		return err
	}
	made.Add(n.failed[rank])
	clear(n.failed[rank].Bytes())
	return nil
}

// zeros returns device memory of zeros.
func zeros(d *streams.Device, bytes int64) (*streams.Memory, error) {
	return upload(d, make([]byte, bytes))
}

// place returns the place of one rank among the neighbours of another, -1 if it is none.
func (n *flagNetwork) place(rank, of int) int { return slices.Index(n.neighbours[of], rank) }

// line returns one of the lines that a rank has for a neighbour, by its place among the rank's.
func (n *flagNetwork) line(rank, neighbour, which int) streams.Span {
	return n.memory[rank].Span(int64(n.each*neighbour+which)*flagBytes, 8)
}

// ownLine returns one of the lines that are a rank's own.
func (n *flagNetwork) ownLine(rank, which int) streams.Span {
	return n.line(rank, len(n.neighbours[rank]), which)
}

// pair returns a line that a rank has for a neighbour, and that which the neighbour has for it.
func (n *flagNetwork) pair(rank, neighbour, which int) (mine, its streams.Span) {
	other := n.neighbours[rank][neighbour]
	return n.line(rank, neighbour, which), n.line(other, n.place(rank, other), which)
}

// counts returns the counts of a rank and a neighbour, as kernels of the rank see them, and by how
// much the neighbour's grows.
func (n *flagNetwork) counts(rank, at, which int, expected int64) neighbour {
	mine, its := n.pair(rank, at, which)
	return neighbour{mine.Address(), its.Address(), uint64(expected)}
}

// names returns the devices of a rank's neighbours.
func (n *flagNetwork) names(rank int) (all []string) {
	for _, k := range n.neighbours[rank] {
		all = append(all, n.devices[k].String())
	}
	return all
}
