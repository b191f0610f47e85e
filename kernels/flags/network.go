// Package flags makes devices, streams and the host wait for each other by counts in memory. A Network lays out
// the counts of kernels that wait for other devices while they run. A Gate holds a stream until the host opens it,
// and a PingPong measures the latency of a flag between two devices.
package flags

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/halox/halox/streams"
)

// lineBytes keeps counts on separate lines.
const lineBytes = 128

// Network describes which ranks of a group of devices wait for which others, and the location of their counts.
// Each rank has some lines of its memory for each neighbor, to which the neighbor writes, followed by its own
// lines.
type Network struct {
	devices   []*streams.Device // by rank
	neighbors [][]int           // by rank: those that wait for it, for which it waits too
	each, own int               // lines per neighbor, and own lines
	memory    []*streams.Memory // by rank
	report    []*streams.Memory // by rank, pinned: 1 + the place of the neighbor that a wait timed out for
}

// Neighbor is struct Neighbor of neighbor.cuh.
type Neighbor struct {
	MyCount  uint64 `cu:"my_count"`  // address of the count of this rank
	ItsCount uint64 `cu:"its_count"` // address of the count of the neighbor
	Expected uint64 `cu:"expected"`  // increment of the neighbor's count
}

// NewNetwork returns a network without memory: each and own are the numbers of lines that a rank has per neighbor
// and for itself. Neighbors must be mutual, and no rank may have more than most.
func NewNetwork(devices []*streams.Device, neighbors [][]int, most, each, own int) (*Network, error) {
	n := &Network{
		devices: devices, neighbors: neighbors, each: each, own: own,
		memory: make([]*streams.Memory, len(devices)), report: make([]*streams.Memory, len(devices)),
	}
	for i, others := range neighbors {
		if len(others) > most {
			return nil, fmt.Errorf("flags: number of neighbors must be at most %d, got %d", most, len(others))
		}
		for _, k := range others {
			if k < 0 || k >= len(devices) || k == i || n.Place(i, k) < 0 {
				return nil, fmt.Errorf("flags: neighbors must be mutual, but rank %d does not name rank %d", k, i)
			}
		}
	}
	return n, nil
}

// Open allocates the memory of a rank, initialized to zero, and adds it to made.
func (n *Network) Open(rank int, made *streams.Resources) (err error) {
	lines := max(1, n.each*len(n.neighbors[rank])+n.own)
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

// Place returns the index of one rank among the neighbors of another, or -1.
func (n *Network) Place(rank, of int) int { return slices.Index(n.neighbors[of], rank) }

// Neighbors returns the neighbors of a rank.
func (n *Network) Neighbors(rank int) []int { return n.neighbors[rank] }

// Memory returns the lines of a rank.
func (n *Network) Memory(rank int) *streams.Memory { return n.memory[rank] }

// Report returns the pinned memory in which a rank reports the wait that timed out: 1 + the place of a neighbor;
// see Itself.
func (n *Network) Report(rank int) *streams.Memory { return n.report[rank] }

// Itself is THIS_DEVICE of flags.cuh: a report that the rank's own thread blocks waited for each other. NormsOf is
// NORMS_OF: with a rank added, a report that its norms were waited for.
const (
	Itself  = 1000
	NormsOf = 2000
)

// line returns one of the lines that a rank has for a neighbor, given by its place.
func (n *Network) line(rank, neighbor, which int) streams.Span {
	return n.memory[rank].Span(int64(n.each*neighbor+which)*lineBytes, 8)
}

// OwnLine returns one of the own lines of a rank.
func (n *Network) OwnLine(rank, which int) streams.Span {
	return n.line(rank, len(n.neighbors[rank]), which)
}

// Pair returns a line that a rank has for a neighbor, and the line that the neighbor has for it.
func (n *Network) Pair(rank, neighbor, which int) (mine, its streams.Span) {
	other := n.neighbors[rank][neighbor]
	return n.line(rank, neighbor, which), n.line(other, n.Place(rank, other), which)
}

// Counts returns the counts of a rank and a neighbor for kernels of the rank, and the increment of the neighbor's.
func (n *Network) Counts(rank, at, which int, expected int64) Neighbor {
	mine, its := n.Pair(rank, at, which)
	return Neighbor{mine.Address(), its.Address(), uint64(expected)}
}

// Err returns an error if a wait of a rank timed out; what describes the operation.
func (n *Network) Err(rank int, what string) error {
	switch at := atomic.LoadUint64(word(n.report[rank], 0)); {
	case at == 0:
		return nil
	case at >= NormsOf:
		return fmt.Errorf("flags: device %v timed out waiting for norms of device %v in %s", n.devices[rank],
			n.devices[at-NormsOf], what)
	case at == Itself:
		return fmt.Errorf(
			"flags: thread blocks of device %v timed out waiting for each other in %s: "+
				"other work occupies its multiprocessors",
			n.devices[rank], what)
	default:
		return fmt.Errorf("flags: device %v timed out waiting for its neighbor on device %s in %s",
			n.devices[rank], n.Names(rank)[at-1], what)
	}
}

// Names returns the devices of a rank's neighbors.
func (n *Network) Names(rank int) (all []string) {
	for _, k := range n.neighbors[rank] {
		all = append(all, n.devices[k].String())
	}
	return all
}

// word returns the 8 bytes at an offset of memory that the host can read, and shares with devices.
func word(m *streams.Memory, offset int64) *uint64 {
	return (*uint64)(unsafe.Pointer(&m.Bytes()[offset]))
}
