package sweep

import (
	"fmt"

	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/streams"
)

// tileGroup is ranks whose arrays stay on the multiprocessors as tiles.
type tileGroup interface {
	PrepareChecks() (ok bool, err error)
	Tiles(rank int) int64
	Steps(rank int, norms [2]streams.Span) (*step.TileSteps, error)
	Close() error
}

// onTiles makes the steps of all ranks ready as tiles that stay on the multiprocessors: steps of one stage
// that leads by a star from one of two arrays to the other. It returns step.ErrNoTiles where that cannot
// be.
func (g *stageGroup) onTiles(group int, checks bool) (all []*ResidentRank, err error) {
	tiles, err := g.newTiles(group)
	if err != nil {
		return nil, err
	}
	g.resources.Add(tiles)
	if checks {
		if _, err := tiles.PrepareChecks(); err != nil {
			return nil, err
		}
	}
	for rank, d := range g.devices {
		one := &ResidentRank{group: g, rank: rank}
		var norms [2]streams.Span
		var totals [2]*Totals
		for field := range norms {
			if totals[field], norms[field], err = g.tileTotals(d, g.ranks[field][0][rank].Sweeper, tiles.Tiles(rank)); err != nil {
				return nil, err
			}
		}
		for phase := range g.ranks {
			one.totals = append(one.totals, []*Totals{totals[phase%2]})
		}
		if one.tiles, err = tiles.Steps(rank, norms); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// newTiles cuts the arrays of all ranks into tiles.
func (g *stageGroup) newTiles(group int) (tileGroup, error) {
	ranks, err := g.tileRanks()
	if err != nil {
		return nil, err
	}
	s := g.ranks[0][0][0].Sweeper
	linear, real, mode := *s.plan.point.linear, kernels.Real(s.plan.writes[0].element), s.plan.point.Sums
	if group > 1 {
		return orNone(step.NewWideTileGroup(s.compiler, linear, real, mode, ranks, group, g.limit))
	}
	return orNone(step.NewTileGroup(s.compiler, linear, real, mode, ranks, g.limit))
}

// orNone returns no group with an error.
func orNone[G tileGroup](made G, err error) (tileGroup, error) {
	if err != nil {
		return nil, err
	}
	return made, nil
}

// tileTotals makes the totals of so many tiles, and returns where the tiles leave their norms. Where nobody
// asks for norms there are no totals, and the kernel has a place for norms all the same.
func (g *stageGroup) tileTotals(d *streams.Device, s *Sweeper, tiles int64) (t *Totals, place streams.Span, err error) {
	if s.plan.totals() > 0 {
		if t, err = g.newTotals(d, s, tiles, tiles); err != nil {
			return nil, place, err
		}
		return t, t.slots(tiles), nil
	}
	m, err := d.Alloc(tiles * int64(normBytes))
	if err != nil {
		return nil, place, err
	}
	g.resources.Add(m)
	return nil, m.All(), nil
}

// tileRanks returns the ranks as step.TileGroup has them, or step.ErrNoTiles where the steps are others. Stores are those of phase 0, which ends a group.
func (g *stageGroup) tileRanks() (all []step.TileRank, err error) {
	others := fmt.Errorf("%w: tiles make steps of one stage, which leads by a linear stencil from one array to another, on GPUs", step.ErrNoTiles)
	if len(g.ranks)%2 > 0 || len(g.ranks[0]) != 1 {
		return nil, others
	}
	for rank, d := range g.devices {
		one := step.TileRank{Device: d}
		for phase, stages := range g.ranks {
			r := stages[0][rank]
			n := r.Sweeper.plan
			if n.point.linear == nil || len(n.point.Reductions) > 0 {
				return nil, others
			}
			if phase < 2 {
				one.Fields[phase] = r.Arrays[1][0]
			}
		}
		for phase, stages := range g.ranks {
			if a := stages[0][rank].Arrays; a[1][0] != one.Fields[phase%2] || a[0][0] != one.Fields[1-phase%2] {
				return nil, others
			}
		}
		for _, s := range g.ranks[0][0][rank].Stores {
			one.Stores = append(one.Stores, kernels.GhostStore{Send: s.Send, Ghost: s.Ghost, To: s.To, Odd: s.Odd})
		}
		all = append(all, one)
	}
	return all, nil
}
