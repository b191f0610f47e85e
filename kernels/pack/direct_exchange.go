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

// DirectExchangeRank is one GPU's part of a direct exchange: the copies into the
// memory of peers, or its own, and the other ranks that it exchanges with, either
// way. If one rank names another, that one names it too.
type DirectExchangeRank struct {
	Device     *streams.Device
	Stores     []Copy
	Neighbours []int // ranks
}

// DirectExchange is one rank of a prepared exchange. Queue launches its kernel, which ends
// when the GPU has stored all and all its neighbours have stored theirs. It may be
// queued any number of times, by one thread, as often as those of the neighbours.
//
// In place of Queue a rank may call Begin, queue launches that store all that it sends to other ranks, and call End.
// What it would store on its own device is then not stored.
type DirectExchange struct {
	resources  streams.Resources
	whole      exchangeLaunch
	begin, end exchangeLaunch
	round      uint64 // exchanges that were begun
	device     *streams.Device
	failed     *streams.Memory // pinned: 1 + the index of the neighbour that did not come in time
	neighbours []string
}

// exchangeLaunch is a kernel with what changes in its argument.
type exchangeLaunch struct {
	kernel *streams.Kernel
	round  *uint64
	limit  *int64 // ns
}

func (e *exchangeLaunch) queue(at *streams.Stream, round uint64) error {
	*e.round = round
	return at.Launch(e.kernel)
}

// Queue queues the GPU's part in the next exchange.
func (d *DirectExchange) Queue(at *streams.Stream) error {
	d.round++
	return d.whole.queue(at, d.round)
}

// Begin queues the first half of the next exchange: what is queued on the stream behind it may store into the ghosts of
// neighbours. All GPUs leave it out, or none, where that is known to be so already.
func (d *DirectExchange) Begin(at *streams.Stream) error { return d.begin.queue(at, d.round+1) }

// End queues the second half, behind the launches that store: what is queued behind it finds the ghosts of this GPU.
func (d *DirectExchange) End(at *streams.Stream) error {
	d.round++
	return d.end.queue(at, d.round)
}

// SetLimit sets how long the GPU waits for a neighbour in exchanges that are queued from now on.
func (d *DirectExchange) SetLimit(limit time.Duration) {
	for _, l := range []*exchangeLaunch{&d.whole, &d.begin, &d.end} {
		*l.limit = limit.Nanoseconds()
	}
}

// Err returns an error if a neighbour did not come within the limit.
func (d *DirectExchange) Err() error {
	if n := streams.View[uint64](d.failed.Bytes())[0]; n > 0 {
		return fmt.Errorf("pack: device %v timed out waiting for its neighbour on device %s to exchange", d.device,
			d.neighbours[n-1])
	}
	return nil
}

// What comes with a launch of exchange.cu: that many strided copies, else a table, and at
// most that many neighbours, as many as a host has other GPUs.
const (
	fewStores     = 8
	maxNeighbours = 8
)

// directExchangeArgs is struct DirectExchange of exchange.cu.
type directExchangeArgs struct {
	round, failed uint64
	degree, limit int64
	stores        int64
	table         uint64
	neighbours    [maxNeighbours]flags.Neighbour
	ready         [maxNeighbours]readyFlags
	sent          [maxNeighbours]int64
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
	neighbour  int64
}

// NewDirectExchanges prepares an exchange among GPUs, one rank each, on different devices
// that reach each other. limit is how long a GPU waits for a neighbour.
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
		s := &DirectExchange{device: rank.Device, neighbours: n.flags.Names(i)}
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

// The lines that a rank has for each neighbour.
const (
	readyLine  = iota // the neighbour is ready
	storedLine        // how many of its blocks have stored
	exchangeLines
)

// networkOf returns the flags of an exchange.
func networkOf(ranks []DirectExchangeRank) (*flags.Network, error) {
	var devices []*streams.Device
	var neighbours [][]int
	for _, r := range ranks {
		devices, neighbours = append(devices, r.Device), append(neighbours, r.Neighbours)
	}
	return flags.NewNetwork(devices, neighbours, maxNeighbours, exchangeLines, 0)
}

// directExchangeGroup is the ranks of an exchange, with their flags and what each stores.
type directExchangeGroup struct {
	ranks  []DirectExchangeRank
	flags  *flags.Network
	stores [][]store
}

// makeDirectExchange makes the launches of one rank.
func makeDirectExchange(c *kernels.Compiler, s *DirectExchange, n *directExchangeGroup, i int,
	limit time.Duration) error {
	rank := n.ranks[i]
	found, err := c.LoadSteps(rank.Device, directExchangeProgram(), "direct_exchange", "exchange_begin", "exchange_end")
	if err != nil {
		return err
	}
	spec := streams.KernelSpec{Name: "direct exchange", Work: streams.Exchange, Function: found[0],
		Block: [3]int{launch.BlockSize, 1, 1}}
	arg := directExchangeArgs{degree: int64(len(rank.Neighbours)), limit: limit.Nanoseconds(),
		stores: int64(len(n.stores[i]))}
	n.neighbours(&arg, i, &spec)
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

// launch makes a kernel with a separate argument.
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

// storesOf returns what a rank stores, and into the ghosts of which neighbour. Its blocks are enough to fill the links,
// and far from enough to fill a GPU, on which other kernels must get on. There is at least one store: for an rank that
// only receives, an empty one.
func (n *directExchangeGroup) storesOf(i int) (all []store, err error) {
	const most, wordsAThread = 288, 2
	to := map[int64][]run{} // by neighbour
	var neighbours []int64
	for _, c := range n.ranks[i].Stores {
		if err := c.check(); err != nil {
			return nil, err
		}
		at, err := n.receiver(i, c)
		if err != nil {
			return nil, err
		}
		if to[at] == nil {
			neighbours = append(neighbours, at)
		}
		to[at] = append(to[at], c.run())
	}
	var ranges []blockRange
	for _, at := range neighbours {
		for _, p := range stridedCopies(joinTwins(to[at]), false) {
			ranges = append(ranges, blockRange{stridedCopy: p})
			all = append(all, store{neighbour: at})
		}
	}
	if len(all) == 0 {
		return []store{{blockRange: blockRange{stridedCopy: stridedCopy{nx: 1, word: 1}, blocks: 1},
			neighbour: noNeighbour}}, nil
	}
	share(ranges, NoLoop, most, wordsAThread)
	for i := range all {
		all[i].blockRange = ranges[i]
	}
	return all, nil
}

// noNeighbour is what a store has that stays on its GPU.
const noNeighbour = -1

// receiver returns the place, among the neighbours of a rank, of who owns the destination of a
// copy; noNeighbour if the rank does itself.
func (n *directExchangeGroup) receiver(i int, c Copy) (int64, error) {
	to := n.owner(c.Dst.Data.Memory.Device())
	switch to {
	case i:
		return noNeighbour, nil
	case -1:
		return 0, fmt.Errorf("pack: rank %d stores into %v, on a device that is no rank", i, c.Dst.Data)
	}
	at := n.flags.Place(to, i)
	if at < 0 {
		return 0, fmt.Errorf("pack: rank %d stores into rank %d, which it does not name", i, to)
	}
	return int64(at), nil
}

// owner returns the rank on a device.
func (n *directExchangeGroup) owner(d *streams.Device) int {
	return slices.IndexFunc(n.ranks, func(e DirectExchangeRank) bool { return e.Device == d })
}

// neighbours says where a rank and its neighbours keep the flags of each other,
// and how many blocks of each neighbour store into this rank.
func (n *directExchangeGroup) neighbours(arg *directExchangeArgs, i int, spec *streams.KernelSpec) {
	spec.Uses = append(spec.Uses, n.flags.Memory(i).All())
	for at, k := range n.ranks[i].Neighbours {
		spec.Reaches = append(spec.Reaches, n.flags.Memory(k).All())
		mine, its := n.flags.Pair(i, at, readyLine)
		arg.neighbours[at] = n.flags.Counts(i, at, storedLine, n.blocks(k, i))
		arg.ready[at] = readyFlags{mine.Address(), its.Address()}
		arg.sent[at] = n.blocks(i, k)
	}
}

// blocks returns how many blocks of a rank store into another one.
func (n *directExchangeGroup) blocks(from, to int) (count int64) {
	for _, s := range n.stores[from] {
		if s.neighbour == int64(n.flags.Place(to, from)) {
			count += s.blocks
		}
	}
	return count
}

// Close frees its memory. Closing twice is not an error.
func (d *DirectExchange) Close() error { return d.resources.Close() }
