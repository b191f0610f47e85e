package step

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/flags"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// NewTileGroup cuts the fields of ranks, on different GPUs that reach each other, into tiles. It returns
// ErrNoTiles unless the stencil is a star that reaches one point, every store is of one whole side and to
// whoever stores back, and every field fits. Sums of norms are taken in a mode. limit is how long a device waits for a neighbour.
func NewTileGroup(c *kernels.Compiler, s stencil.Stencil, real kernels.Real, mode sums.Mode, ranks []TileRank, limit time.Duration) (n *TileGroup, err error) {
	n = &TileGroup{tileRanks: newTileRanks(c, s, real, mode, ranks, limit)}
	if err := n.cut(); err != nil {
		return nil, err
	}
	if err := n.connect(n.neighbours(), maxFaces); err != nil {
		return nil, err
	}
	made := n
	defer func() {
		if err != nil {
			n, err = nil, errors.Join(err, made.Close())
		}
	}()
	for i, rank := range ranks {
		if err := n.flags.Open(i, &n.resources); err != nil {
			return nil, err
		}
		if n.inbox[i], err = streams.Upload(rank.Device, n.emptyInbox(i)); err != nil {
			return nil, err
		}
		n.resources.Add(n.inbox[i])
		programs := n.programs(i)
		c.BeginSteps(rank.Device, programs[:]...)
	}
	return n, nil
}

func newTileRanks(c *kernels.Compiler, s stencil.Stencil, real kernels.Real, mode sums.Mode, ranks []TileRank, limit time.Duration) tileRanks {
	return tileRanks{compiler: c, stencil: s, real: real, mode: mode, ranks: ranks, limit: limit, inbox: make([]*streams.Memory, len(ranks))}
}

// connect makes the network of ranks, of which each has no more neighbours than most.
func (n *tileRanks) connect(neighbours [][]int, most int) (err error) {
	var devices []*streams.Device
	for _, rank := range n.ranks {
		if slices.Contains(devices, rank.Device) {
			return fmt.Errorf("step: two ranks of a step on device %v", rank.Device)
		}
		devices = append(devices, rank.Device)
	}
	n.flags, err = flags.NewNetwork(devices, neighbours, most, 1, 0)
	return err
}

// cut cuts all fields into tiles.
func (n *TileGroup) cut() error {
	if _, ok := n.stencil.AsStar(); !ok || n.real.Size() == 0 {
		return ErrNoTiles
	}
	for i, rank := range n.ranks {
		if rank.Device == nil {
			return fmt.Errorf("step: rank %d has no device", i)
		}
		sides, ok := n.sideStores(i)
		if !ok || rank.Device.GoKernels || rank.Fields[0].Layout != rank.Fields[1].Layout || !rank.Fields[0].Layout.Padded() {
			return ErrNoTiles
		}
		room := tileRoom{int64(rank.Device.Cores), rank.Device.Shared - tileReserve}
		box, ok := bestTiling(n.stencil.Dims, n.size(i), int64(n.real.Size()), room)
		if !ok {
			return ErrNoTiles
		}
		n.boxes, n.sides = append(n.boxes, box), append(n.sides, sides)
	}
	for i := range n.sides {
		for axis := range n.sides[i] {
			for high, s := range n.sides[i][axis] {
				if s.store < 0 {
					continue
				}
				if back := n.sides[s.to][axis][side(s.high)]; back.store < 0 || back.to != i || side(back.high) != high {
					return ErrNoTiles
				}
			}
		}
	}
	return nil
}

// neighbours returns those of each rank: the ranks that it stores into, which store into it.
func (n *TileGroup) neighbours() [][]int {
	neighbours := make([][]int, len(n.ranks))
	for i, rank := range n.ranks {
		for _, s := range rank.Stores {
			if s.To != i && !slices.Contains(neighbours[i], s.To) {
				neighbours[i] = append(neighbours[i], s.To)
			}
		}
	}
	return neighbours
}
