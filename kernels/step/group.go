package step

import (
	"errors"
	"fmt"
	"time"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/sums"
	"github.com/halox/halox/stencil"
	"github.com/halox/halox/streams"
)

// TileGroup is a set of ranks that run steps together, as tiles that stay on the multiprocessors.
type TileGroup struct {
	*tileRanks
	tiles cutTiles
	wide  int64 // steps between exchanges if more than one; 0 otherwise
}

// cutTiles are the tiles of all ranks: faceTiles or wideTiles.
type cutTiles interface {
	count(rank int) int64
	emptyInbox(rank int) []uint64
	program(rank int, v variant) kernels.Program
	canCheck(rank int) bool
	launch(rank int, v variant, norms [2]streams.Span) (tileKernel, error)
}

// NewTileGroup divides the fields of ranks, on different GPUs that reach each other, into tiles. exchange is the
// number of steps between exchanges, limit how long a device waits for a neighbor, and mode selects how sums of
// norms are computed. The error is ErrNoTiles unless the stencil is a star of radius 1 and every field fits.
//
// With an exchange after each step every store must be of one whole side, and between ranks that store into each
// other. With several steps, the ghosts of neighbors must be at least as wide, with edges and corners, and stores
// are those after the last step of a group. Ghosts behind physical faces and next to ghosts of neighbors are like
// those next to owned points: they keep their values, or all ghosts of a side mirror the points inside. All ghosts
// of the fields are valid before and after each launch.
func NewTileGroup(
	c *kernels.Compiler, s stencil.Stencil, real domain.Element, mode sums.Mode, ranks []TileRank, exchange int,
	limit time.Duration,
) (*TileGroup, error) {
	if exchange < 1 {
		return nil, fmt.Errorf("step: exchange interval: must be at least 1 step, got %d", exchange)
	}
	g := &TileGroup{tileRanks: &tileRanks{
		compiler: c, stencil: s, real: real, mode: mode, ranks: ranks, limit: limit,
		inbox: make([]*streams.Memory, len(ranks)),
	}}
	err := g.check()
	switch {
	case err != nil:
	case exchange == 1:
		g.tiles, err = newFaceTiles(g.tileRanks)
	default:
		g.wide = int64(exchange)
		g.tiles, err = newWideTiles(g.tileRanks, exchange)
	}
	if err == nil {
		err = g.open()
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// open allocates the buffers between tiles, and begins to compile the programs.
func (g *TileGroup) open() error {
	for i, rank := range g.ranks {
		if err := g.flags.Open(i, &g.resources); err != nil {
			return err
		}
		streams.Into(&g.resources, &g.inbox[i])(streams.Upload(rank.Device, g.tiles.emptyInbox(i)))
		g.compiler.BeginSteps(rank.Device, g.tiles.program(i, onlySteps), g.tiles.program(i, lastNorms))
	}
	if w, ok := g.tiles.(*wideTiles); ok && g.resources.Err() == nil {
		return w.upload()
	}
	return g.resources.Err()
}

// Tiles returns the number of thread blocks of a rank, one per tile.
func (g *TileGroup) Tiles(rank int) int64 { return g.tiles.count(rank) }

// PrepareChecks prepares checks on all ranks. It must be called before Steps of a rank. ok is false if tiles have
// no space for them. If ok, QueueChecked may be called.
func (g *TileGroup) PrepareChecks() (ok bool, err error) {
	if g.checks != nil {
		return true, nil
	}
	for i := range g.ranks {
		if !g.tiles.canCheck(i) {
			return false, nil
		}
	}
	for i, rank := range g.ranks {
		g.compiler.BeginSteps(rank.Device, g.tiles.program(i, allNorms))
	}
	return true, g.makeChecks(g.tiles.count)
}

// Steps prepares the steps of a rank. norms are the destinations of the norms of steps that write Fields[0] and
// Fields[1], one reduce.Norms per tile.
func (g *TileGroup) Steps(rank int, norms [2]streams.Span) (s *TileSteps, err error) {
	s = &TileSteps{group: g.tileRanks, rank: rank, wide: g.wide, launches: -1}
	if s.plain, err = g.tiles.launch(rank, onlySteps, norms); err != nil {
		return nil, err
	}
	if s.measured, err = g.tiles.launch(rank, lastNorms, norms); err != nil {
		return nil, err
	}
	if g.checks != nil {
		s.checked, err = g.tiles.launch(rank, allNorms, norms)
	}
	return s, err
}
