// Package flags has devices, streams and the host wait for each other by counts in memory. A Network
// lays out those of kernels that wait for other devices while they run. A Gate holds a stream until
// the host opens it, and a PingPong measures how long a flag takes from one device to another.
package flags

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/streams"
)

// lineBytes keeps counts on lines of their own.
const lineBytes = 128

// Network says which ranks of a group of devices wait for which others, and where the counts lie by
// which they do. Each rank has some lines of its own memory for each of its neighbours, to which that
// one writes, and then some that are its own.
type Network struct {
	devices    []*streams.Device // by rank
	neighbours [][]int           // by rank: those that wait for it, for which it waits too
	each, own  int               // lines for a neighbour, and its own
	memory     []*streams.Memory // by rank
	report     []*streams.Memory // by rank, pinned: 1 + the place of the neighbour that a wait timed out for
}

// Neighbour is struct Neighbour of neighbour.cuh.
type Neighbour struct {
	MyCount  uint64 `cu:"my_count"`
	ItsCount uint64 `cu:"its_count"`
	Expected uint64 `cu:"expected"`
}

// NewNetwork returns a network that has no memory yet: each and own are the lines that a rank has for a
// neighbour and for itself. Of two neighbours each must name the other, and no rank more than most.
func NewNetwork(devices []*streams.Device, neighbours [][]int, most, each, own int) (*Network, error) {
	n := &Network{
		devices: devices, neighbours: neighbours, each: each, own: own,
		memory: make([]*streams.Memory, len(devices)), report: make([]*streams.Memory, len(devices)),
	}
	for i, others := range neighbours {
		if len(others) > most {
			return nil, fmt.Errorf("flags: %d neighbours; must be at most %d", len(others), most)
		}
		for _, k := range others {
			if k < 0 || k >= len(devices) || k == i || n.Place(i, k) < 0 {
				return nil, fmt.Errorf("flags: rank %d exchanges with rank %d, which does not name it", i, k)
			}
		}
	}
	return n, nil
}

// Open makes the memory of a rank, of zeros, to be closed with made.
func (n *Network) Open(rank int, made *streams.Resources) (err error) {
	lines := max(1, n.each*len(n.neighbours[rank])+n.own)
	if n.memory[rank], err = streams.Upload(n.devices[rank], make([]byte, lines*lineBytes)); err != nil {
		return err
	}
	made.Add(n.memory[rank])
	if n.report[rank], err = n.devices[rank].AllocPinned(8); err != nil {
		return err
	}
	made.Add(n.report[rank])
	clear(n.report[rank].Bytes())
	return nil
}

// Place returns the place of one rank among the neighbours of another, -1 if it is none.
func (n *Network) Place(rank, of int) int { return slices.Index(n.neighbours[of], rank) }

// Neighbours returns those of a rank.
func (n *Network) Neighbours(rank int) []int { return n.neighbours[rank] }

// Memory returns the lines of a rank.
func (n *Network) Memory(rank int) *streams.Memory { return n.memory[rank] }

// Report returns where a rank says, in pinned memory, which wait timed out: 1 + the place of a neighbour; see Itself.
func (n *Network) Report(rank int) *streams.Memory { return n.report[rank] }

// Itself is THIS_DEVICE of flags.cuh: a report that the rank's own thread blocks waited for each other. NormsOf is
// NORMS_OF: with a rank added, a report that its norms were waited for.
const (
	Itself  = 1000
	NormsOf = 2000
)

// line returns one of the lines that a rank has for a neighbour, by its place among the rank's.
func (n *Network) line(rank, neighbour, which int) streams.Span {
	return n.memory[rank].Span(int64(n.each*neighbour+which)*lineBytes, 8)
}

// OwnLine returns one of the lines that are a rank's own.
func (n *Network) OwnLine(rank, which int) streams.Span {
	return n.line(rank, len(n.neighbours[rank]), which)
}

// Pair returns a line that a rank has for a neighbour, and that which the neighbour has for it.
func (n *Network) Pair(rank, neighbour, which int) (mine, its streams.Span) {
	other := n.neighbours[rank][neighbour]
	return n.line(rank, neighbour, which), n.line(other, n.Place(rank, other), which)
}

// Counts returns the counts of a rank and a neighbour, as kernels of the rank see them, and by how
// much the neighbour's grows.
func (n *Network) Counts(rank, at, which int, expected int64) Neighbour {
	mine, its := n.Pair(rank, at, which)
	return Neighbour{mine.Address(), its.Address(), uint64(expected)}
}

// Err returns an error if a wait of a rank timed out, in what it was to do.
func (n *Network) Err(rank int, what string) error {
	switch at := atomic.LoadUint64(word(n.report[rank], 0)); {
	case at == 0:
		return nil
	case at >= NormsOf:
		return fmt.Errorf("flags: device %v timed out waiting for norms of device %v to make %s", n.devices[rank],
			n.devices[at-NormsOf], what)
	case at == Itself:
		return fmt.Errorf(
			"flags: thread blocks of device %v timed out waiting for each other to make %s: "+
				"something else keeps its multiprocessors",
			n.devices[rank], what)
	default:
		return fmt.Errorf("flags: device %v timed out waiting for its neighbour on device %s to make %s",
			n.devices[rank], n.Names(rank)[at-1], what)
	}
}

// Names returns the devices of a rank's neighbours.
func (n *Network) Names(rank int) (all []string) {
	for _, k := range n.neighbours[rank] {
		all = append(all, n.devices[k].String())
	}
	return all
}

// word returns the 8 bytes at an offset into memory that the host can read, and shares with devices.
func word(m *streams.Memory, offset int64) *uint64 {
	return (*uint64)(unsafe.Pointer(&m.Bytes()[offset]))
}
