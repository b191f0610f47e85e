package step

import (
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// NewWideTileGroup is NewTileGroup with so many steps between two exchanges, from 2 on. Ghosts of neighbours are at least as wide, with edges and
// corners; stores are those after the last step of a group. Behind walls, ghosts beside those of neighbours are as those beside owned points: they keep
// their values, or all of a side are the points before it. The fields have whole ghosts before and after each launch.
// The error says what of this is not there, or does not fit.
func NewWideTileGroup(c *kernels.Compiler, s stencil.Stencil, real kernels.Real, mode sums.Mode, ranks []TileRank, steps int, limit time.Duration) (n *WideTileGroup, err error) {
	n = &WideTileGroup{tileRanks: newTileRanks(c, s, real, mode, ranks, limit), steps: steps}
	if err := n.cut(); err != nil {
		return nil, err
	}
	ghosts, err := n.findGhosts()
	if err != nil {
		return nil, err
	}
	if err := n.connect(n.neighbours(ghosts), maxWideNeighbours); err != nil {
		return nil, err
	}
	if err := n.list(ghosts); err != nil {
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
		if n.inbox[i], err = streams.Upload(rank.Device, n.emptyInbox()); err != nil {
			return nil, err
		}
		n.resources.Add(n.inbox[i])
		programs := n.programs(i)
		c.BeginSteps(rank.Device, programs[:]...)
	}
	n.tables = make([]wideTables, len(ranks))
	for i := range ranks {
		if err := n.upload(i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// cut cuts all fields into tiles.
func (n *WideTileGroup) cut() error {
	if _, ok := n.stencil.AsStar(); !ok || n.real.Size() == 0 {
		return fmt.Errorf("%w: tiles are of stars of radius 1 and of reals", ErrNoTiles)
	}
	if n.steps < 2 {
		return fmt.Errorf("step: %d steps between two exchanges of tiles with wide ghosts", n.steps)
	}
	for i, rank := range n.ranks {
		if rank.Device == nil {
			return fmt.Errorf("step: rank %d has no device", i)
		}
		if rank.Device.GoKernels || rank.Fields[0].Layout != rank.Fields[1].Layout || !rank.Fields[0].Layout.Padded() {
			return fmt.Errorf("%w: tiles are of GPUs, and of fields of one layout", ErrNoTiles)
		}
		if most := 64; len(rank.Stores) > most {
			return fmt.Errorf("%w: rank %d has %d stores; %d are possible", ErrNoTiles, i, len(rank.Stores), most)
		}
		r, err := n.wideRank(i)
		if err != nil {
			return fmt.Errorf("%w: rank %d: %w", ErrNoTiles, i, err)
		}
		room := tileRoom{int64(rank.Device.Cores), rank.Device.Shared - wideReserve}
		box, ok := bestWideTiling(n.stencil.Dims, n.size(i), r.wide(), int64(n.real.Size()), int64(n.steps), room)
		if !ok {
			return fmt.Errorf("%w: %v points on device %v do not fit twice into the shared memory of %d multiprocessors, with ghosts %d wide around each tile",
				ErrNoTiles, rank.Fields[0].Layout.Owned.Size(), rank.Device, rank.Device.Cores, n.steps)
		}
		r.cut(box.tiles)
		n.ranksOf, n.boxes = append(n.ranksOf, r), append(n.boxes, box)
	}
	return nil
}

// emptyInbox returns the words of an inbox in which no packet is of an exchange that its place waits for: places of even exchanges
// begin with an odd number.
func (n *WideTileGroup) emptyInbox() []uint64 {
	even := n.odd * n.packetBytes() / 8
	words := make([]uint64, 2*even)
	for w := range even {
		words[w] = 1 << 32
	}
	return words
}
