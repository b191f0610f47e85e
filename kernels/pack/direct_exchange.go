package pack

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// DirectExchangeRank is the part of one GPU in a direct exchange.
type DirectExchangeRank struct {
	Device    *streams.Device // the GPU
	Stores    []Copy          // copies into the memory of peers, or its own; default none
	Neighbors []int           // ranks that it sends to or receives from; must be mutual
}

// DirectExchange is one rank of a prepared exchange. Queue launches its kernel, which ends when the GPU has stored
// everything and all its neighbors have stored theirs. It may be queued repeatedly, by one thread, as often as
// those of the neighbors.
//
// Instead of Queue a rank may call Begin, queue launches that store everything it sends to other ranks, and call
// End. Stores to its own device are then omitted.
type DirectExchange struct {
	resources  streams.Resources
	whole      exchangeLaunch
	begin, end exchangeLaunch
	round      uint64 // number of exchanges begun
	device     *streams.Device
	failed     *streams.Memory // pinned: 1 + the index of the neighbor that timed out
	neighbors  []string
}

// exchangeLaunch is a kernel and the variable parts of its argument.
type exchangeLaunch struct {
	kernel *streams.Kernel
	round  *uint64
	limit  *int64 // in ns
}

func (e *exchangeLaunch) queue(at *streams.Stream, round uint64) error {
	*e.round = round
	return at.Launch(e.kernel)
}

// Queue queues the GPU's part of the next exchange.
func (d *DirectExchange) Queue(at *streams.Stream) error {
	d.round++
	return d.whole.queue(at, d.round)
}

// Begin queues the first half of the next exchange: work queued behind it may store into the ghosts of neighbors.
// Either all GPUs call it, or none, if stores are known to be safe already.
func (d *DirectExchange) Begin(at *streams.Stream) error { return d.begin.queue(at, d.round+1) }

// End queues the second half, behind the launches that store: work queued behind it sees the new ghosts of this
// GPU.
func (d *DirectExchange) End(at *streams.Stream) error {
	d.round++
	return d.end.queue(at, d.round)
}

// SetLimit sets how long the GPU waits for a neighbor in exchanges queued from now on.
func (d *DirectExchange) SetLimit(limit time.Duration) {
	for _, l := range []*exchangeLaunch{&d.whole, &d.begin, &d.end} {
		*l.limit = limit.Nanoseconds()
	}
}

// Err returns an error if a neighbor exceeded the limit.
func (d *DirectExchange) Err() error {
	if n := streams.View[uint64](d.failed.Bytes())[0]; n > 0 {
		return fmt.Errorf("pack: device %v timed out waiting for its neighbor on device %s in an exchange", d.device,
			d.neighbors[n-1])
	}
	return nil
}

// Limits of a launch of exchange.cu: strided copies passed by value, beyond which a table is used, and neighbors,
// as many as a host has other GPUs.
const (
	fewStores    = 8
	maxNeighbors = 8
)

// directExchangeArgs is struct DirectExchange of exchange.cu.
type directExchangeArgs struct {
	round, failed uint64
	degree, limit int64
	stores        int64
	table         uint64
	neighbors     [maxNeighbors]flags.Neighbor
	ready         [maxNeighbors]readyFlags
	sent          [maxNeighbors]int64
	few           [fewStores]store
}

func directExchangeProgram() kernels.Program {
	return kernels.Program{File: "exchange.cu", Mirrors: []kernels.Mirror{
		{Name: "DirectExchange", Value: directExchangeArgs{}}, {Name: "Store", Value: store{}},
	}}
}

// readyFlags is struct Ready of exchange.cu.
type readyFlags struct{ mine, its uint64 }

// store is struct Store of exchange.cu.
type store struct {
	blockRange `cu:"range"`
	neighbor   int64
}

// NewDirectExchanges prepares an exchange between GPUs, one rank each, on different devices that reach each other.
// limit is how long a GPU waits for a neighbor.
func NewDirectExchanges(c *kernels.Compiler, ranks []DirectExchangeRank,
	limit time.Duration) (exchanges []*DirectExchange, err error) {
	n := &directExchangeGroup{ranks: ranks, stores: make([][]store, len(ranks))}
	if n.flags, err = networkOf(ranks); err != nil {
		return nil, err
	}
	var made streams.Resources
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	for i, rank := range ranks {
		s := &DirectExchange{device: rank.Device, neighbors: n.flags.Names(i)}
		exchanges = append(exchanges, s)
		made.Add(s)
		if err := n.flags.Open(i, &s.resources); err != nil {
			return nil, err
		}
		s.failed = n.flags.Report(i)
	}
	for i := range ranks {
		if n.stores[i], err = n.storesOf(i); err != nil {
			return nil, err
		}
	}
	for i, s := range exchanges {
		if err := makeDirectExchange(c, s, n, i, limit); err != nil {
			return nil, err
		}
	}
	return exchanges, nil
}

// The lines of a rank for each neighbor.
const (
	readyLine  = iota // the neighbor is ready
	storedLine        // number of its blocks that have stored
	exchangeLines
)

// networkOf returns the flags of an exchange.
func networkOf(ranks []DirectExchangeRank) (*flags.Network, error) {
	var devices []*streams.Device
	var neighbors [][]int
	for _, r := range ranks {
		devices, neighbors = append(devices, r.Device), append(neighbors, r.Neighbors)
	}
	return flags.NewNetwork(devices, neighbors, maxNeighbors, exchangeLines, 0)
}

// directExchangeGroup holds the ranks of an exchange, their flags and their stores.
type directExchangeGroup struct {
	ranks  []DirectExchangeRank
	flags  *flags.Network
	stores [][]store
}

// makeDirectExchange prepares the launches of one rank.
func makeDirectExchange(c *kernels.Compiler, s *DirectExchange, n *directExchangeGroup, i int,
	limit time.Duration) error {
	rank := n.ranks[i]
	found, err := c.LoadSteps(rank.Device, directExchangeProgram(), "direct_exchange", "exchange_begin", "exchange_end")
	if err != nil {
		return err
	}
	spec := streams.KernelSpec{Name: "direct exchange", Work: streams.Exchange, Function: found[0],
		Block: [3]int{launch.BlockSize, 1, 1}}
	arg := directExchangeArgs{degree: int64(len(rank.Neighbors)), limit: limit.Nanoseconds(),
		stores: int64(len(n.stores[i]))}
	n.neighbors(&arg, i, &spec)
	for _, c := range rank.Stores {
		spec.Uses = append(spec.Uses, c.Src.Data)
		spec.Reaches = append(spec.Reaches, c.Dst.Data)
	}
	stores := n.stores[i]
	if copy(arg.few[:], stores) < len(stores) {
		table, err := streams.Upload(rank.Device, stores)
		if err != nil {
			return err
		}
		s.resources.Add(table)
		arg.table = table.Address()
	}
	arg.failed = s.failed.Address()
	last := stores[len(stores)-1]
	spec.Grid = [3]int{int(last.first + last.blocks), 1, 1}
	if s.whole, err = s.launch(spec, &arg); err != nil {
		return err
	}
	spec.Grid = [3]int{1, 1, 1}
	for half, to := range []*exchangeLaunch{&s.begin, &s.end} {
		spec.Name, spec.Function = []string{"begin exchange", "end exchange"}[half], found[1+half]
		if *to, err = s.launch(spec, &arg); err != nil {
			return err
		}
	}
	return nil
}

// launch prepares a kernel with a separate argument.
func (d *DirectExchange) launch(spec streams.KernelSpec, arg *directExchangeArgs) (l exchangeLaunch, err error) {
	spec.Argument = launch.Argument(arg)
	if l.kernel, err = launch.New(d.device, spec); err != nil {
		return l, err
	}
	d.resources.Add(l.kernel)
	l.round = &streams.View[uint64](l.kernel.Argument()[unsafe.Offsetof(arg.round):][:8])[0]
	l.limit = &streams.View[int64](l.kernel.Argument()[unsafe.Offsetof(arg.limit):][:8])[0]
	return l, nil
}

// storesOf returns the stores of a rank, and the neighbors whose ghosts they write. Its blocks suffice to saturate
// the links, but are far from filling a GPU, so that other kernels can run. There is at least one store: an empty
// one for a rank that only receives.
func (n *directExchangeGroup) storesOf(i int) (all []store, err error) {
	const most, wordsAThread = 288, 2
	to := map[int64][]run{} // by neighbor
	var neighbors []int64
	for _, c := range n.ranks[i].Stores {
		if err := c.check(); err != nil {
			return nil, err
		}
		at, err := n.receiver(i, c)
		if err != nil {
			return nil, err
		}
		if to[at] == nil {
			neighbors = append(neighbors, at)
		}
		to[at] = append(to[at], c.run())
	}
	var ranges []blockRange
	for _, at := range neighbors {
		for _, p := range stridedCopies(joinPairs(to[at]), false) {
			ranges = append(ranges, blockRange{stridedCopy: p})
			all = append(all, store{neighbor: at})
		}
	}
	if len(all) == 0 {
		return []store{{blockRange: blockRange{stridedCopy: stridedCopy{nx: 1, word: 1}, blocks: 1},
			neighbor: noNeighbor}}, nil
	}
	share(ranges, NoLoop, most, wordsAThread)
	for i := range all {
		all[i].blockRange = ranges[i]
	}
	return all, nil
}

// noNeighbor marks a store within its GPU.
const noNeighbor = -1

// receiver returns the index, among the neighbors of a rank, of the owner of a copy's destination; noNeighbor if
// it is the rank itself.
func (n *directExchangeGroup) receiver(i int, c Copy) (int64, error) {
	to := n.owner(c.Dst.Data.Memory.Device())
	switch to {
	case i:
		return noNeighbor, nil
	case -1:
		return 0, fmt.Errorf("pack: rank %d: destination must be on the device of a rank, got %v", i, c.Dst.Data)
	}
	at := n.flags.Place(to, i)
	if at < 0 {
		return 0, fmt.Errorf("pack: rank %d: neighbors must include rank %d, into which it stores", i, to)
	}
	return int64(at), nil
}

// owner returns the rank on a device.
func (n *directExchangeGroup) owner(d *streams.Device) int {
	return slices.IndexFunc(n.ranks, func(e DirectExchangeRank) bool { return e.Device == d })
}

// neighbors sets the locations of the flags of a rank and its neighbors, and the number of blocks of each neighbor
// that store into this rank.
func (n *directExchangeGroup) neighbors(arg *directExchangeArgs, i int, spec *streams.KernelSpec) {
	spec.Uses = append(spec.Uses, n.flags.Memory(i).All())
	for at, k := range n.ranks[i].Neighbors {
		spec.Reaches = append(spec.Reaches, n.flags.Memory(k).All())
		mine, its := n.flags.Pair(i, at, readyLine)
		arg.neighbors[at] = n.flags.Counts(i, at, storedLine, n.blocks(k, i))
		arg.ready[at] = readyFlags{mine.Address(), its.Address()}
		arg.sent[at] = n.blocks(i, k)
	}
}

// blocks returns how many blocks of a rank store into another one.
func (n *directExchangeGroup) blocks(from, to int) (count int64) {
	for _, s := range n.stores[from] {
		if s.neighbor == int64(n.flags.Place(to, from)) {
			count += s.blocks
		}
	}
	return count
}

// Close frees the memory. Closing twice is allowed.
func (d *DirectExchange) Close() error { return d.resources.Close() }
