package kernels

import (
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/streams"
)

// SwapEnd is what one GPU does in an exchange by stores: the copies into the
// memory of peers, or its own, and the other ends that it exchanges with, either
// way. If one end names another, that one names it too.
type SwapEnd struct {
	Device     *streams.Device
	Stores     []Copy
	Neighbours []int // ends
}

// Swap is one end of an exchange, made ready. Its kernel ends when the GPU has
// stored all and all its neighbours have stored theirs; it may be launched any
// number of times, on one stream, as often as those of the neighbours.
type Swap struct {
	*streams.Kernel
	streams.Closers
	device     *streams.Device
	failed     *streams.Memory // pinned: 1 + the place of the neighbour waited for in vain
	neighbours []string
}

// Close frees the launch and what it uses.
func (s *Swap) Close() error { return s.Closers.Close() }

// Err returns an error if the GPU has waited for a neighbour in vain.
func (s *Swap) Err() error {
	if n := streams.View[uint64](s.failed.Bytes())[0]; n > 0 {
		return fmt.Errorf("kernels: device %v waited in vain for its neighbour on device %s to exchange", s.device, s.neighbours[n-1])
	}
	return nil
}

// What comes with a launch of swap.cu: that many segments, else a table, and at
// most that many neighbours, as many as a host has other GPUs.
const (
	fewSegments    = 40
	mostNeighbours = 8
)

// swapArgs is struct Swap of swap.cu.
type swapArgs struct {
	rounds, finished, failed uint64
	degree, limit            int64
	table                    uint64
	neighbours               [mostNeighbours]neighbourFlags
	few                      [fewSegments]segment
}

// neighbourFlags is struct Neighbour of swap.cu.
type neighbourFlags struct {
	myReady, mySent, itsReady, itsSent uint64
}

// flagBytes keeps flags on lines of their own.
const flagBytes = 128

// Swaps makes an exchange among GPUs ready, an end each, on different devices
// that reach each other. limit is how long a GPU waits for a neighbour.
func (c *Compiler) Swaps(ends []SwapEnd, limit time.Duration) (swaps []*Swap, err error) {
	var made streams.Closers
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	flags := make([]*streams.Memory, len(ends))
	for i, end := range ends {
		if flags[i], err = zeros(end.Device, int64(2+2*len(end.Neighbours))*flagBytes); err != nil {
			return nil, err
		}
		made.Add(flags[i])
	}
	for i := range ends {
		s := &Swap{device: ends[i].Device}
		s.Add(flags[i])
		swaps = append(swaps, s)
		made.Add(s)
		if err := c.makeSwap(s, ends, i, flags, limit); err != nil {
			return nil, err
		}
	}
	return swaps, nil
}

// zeros returns device memory of zeros.
func zeros(d *streams.Device, bytes int64) (*streams.Memory, error) {
	return upload(d, make([]byte, bytes))
}

// makeSwap makes the tables and the launch of one end.
func (c *Compiler) makeSwap(s *Swap, ends []SwapEnd, i int, flags []*streams.Memory, limit time.Duration) error {
	end := ends[i]
	found, err := c.load(end.Device, Program{File: "swap.cu"}, "swap")
	if err != nil {
		return err
	}
	spec := streams.KernelSpec{Name: "swap", Function: found[0], Block: [3]int{blockSize, 1, 1}}
	segments, words, err := storeSegments(end, &spec)
	if err != nil {
		return err
	}
	arg := swapArgs{
		rounds: flags[i].Address(), finished: flags[i].Address() + flagBytes,
		degree: int64(len(end.Neighbours)), limit: limit.Nanoseconds(),
	}
	if err := flagsOf(&arg, ends, i, flags, &spec); err != nil {
		return err
	}
	if copy(arg.few[:], segments) < len(segments) {
		table, err := upload(end.Device, segments)
		if err != nil {
			return err
		}
		s.Add(table)
		arg.table = table.Address()
	}
	if s.failed, err = end.Device.AllocPinned(8); err != nil {
		return err
	}
	clear(s.failed.Bytes())
	s.Add(s.failed)
	for _, n := range end.Neighbours {
		s.neighbours = append(s.neighbours, ends[n].Device.String())
	}
	spec.Grid = [3]int{swapBlocks(words, len(segments)), len(segments), 1}
	arg.failed = s.failed.Address()
	spec.Argument = argument(&arg)
	if s.Kernel, err = end.Device.NewKernel(spec); err != nil {
		return err
	}
	s.Add(s.Kernel)
	return nil
}

// swapBlocks returns the blocks for each of the segments: in all enough to fill
// the links, and far from enough to fill a GPU, on which other kernels must get
// on.
func swapBlocks(words int64, segments int) int {
	const most, wordsAThread = 288, 2
	return int(max(1, min(most/int64(segments), words/(blockSize*wordsAThread))))
}

// storeSegments returns the segments of an end, and the size of the largest.
func storeSegments(end SwapEnd, spec *streams.KernelSpec) (segments []segment, words int64, err error) {
	for _, c := range end.Stores {
		if err := c.check(); err != nil {
			return nil, 0, err
		}
		s := c.segment()
		if s.nx*s.ny*s.nz >= 1<<31 {
			return nil, 0, fmt.Errorf("kernels: a store of %d words; less than %d are possible", s.nx*s.ny*s.nz, int64(1)<<31)
		}
		segments = append(segments, s)
		words = max(words, s.nx*s.ny*s.nz)
		spec.Uses = append(spec.Uses, c.Src.Data)
		spec.Reaches = append(spec.Reaches, c.Dst.Data)
	}
	if len(segments) == 0 { // an end that only receives
		segments = []segment{{nx: 1, word: 1}}
	}
	return segments, words, nil
}

// flagsOf says where an end and its neighbours keep the flags of each other. An
// end has two lines for itself, then two a neighbour.
func flagsOf(arg *swapArgs, ends []SwapEnd, i int, flags []*streams.Memory, spec *streams.KernelSpec) error {
	if n := len(ends[i].Neighbours); n > mostNeighbours {
		return fmt.Errorf("kernels: %d neighbours; up to %d are possible", n, mostNeighbours)
	}
	line := func(end, neighbour, which int) uint64 {
		return flags[end].Address() + uint64(2+2*neighbour+which)*flagBytes
	}
	spec.Uses = append(spec.Uses, flags[i].All())
	for mine, n := range ends[i].Neighbours {
		its := -1
		for k, back := range ends[n].Neighbours {
			if back == i {
				its = k
			}
		}
		if its < 0 || n == i {
			return fmt.Errorf("kernels: end %d exchanges with end %d, which does not name it", i, n)
		}
		spec.Reaches = append(spec.Reaches, flags[n].All())
		arg.neighbours[mine] = neighbourFlags{line(i, mine, 0), line(i, mine, 1), line(n, its, 0), line(n, its, 1)}
	}
	return nil
}

// Store is the copy of a box of one array to a box of equal size of another.
func Store(dst Array, to domain.Box, src Array, from domain.Box) Copy {
	return Copy{dst.In(to), src.In(from), from.Size(), src.Layout.ElementSize}
}
