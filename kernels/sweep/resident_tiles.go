package sweep

import (
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/kernels/step"
	"github.com/halox/halox/streams"
)

// onTiles makes the steps of all ranks ready as tiles that stay on the multiprocessors: steps of one stage
// that leads by a star from one of two arrays to the other. It returns step.ErrNoTiles where that cannot
// be.
func (g *stageGroup) onTiles(checks bool) (all []*ResidentRank, err error) {
	ranks, ok := g.tileRanks()
	if !ok {
		return nil, step.ErrNoTiles
	}
	first := g.ranks[0][0][0].Sweeper
	tiles, err := step.NewTileGroup(first.compiler, *first.plan.point.linear, kernels.Real(first.plan.writes[0].element), first.plan.point.Sums, ranks, g.limit)
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
		for phase := range norms {
			totals, place, err := g.tileTotals(d, g.ranks[phase][0][rank].Sweeper, tiles.Tiles(rank))
			if err != nil {
				return nil, err
			}
			one.totals, norms[phase] = append(one.totals, []*Totals{totals}), place
		}
		if one.tiles, err = tiles.Steps(rank, norms); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
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

// tileRanks returns the ranks as step.TileGroup has them; ok is false where the steps are others.
func (g *stageGroup) tileRanks() (all []step.TileRank, ok bool) {
	if len(g.ranks) != 2 || len(g.ranks[0]) != 1 {
		return nil, false
	}
	for rank, d := range g.devices {
		one := step.TileRank{Device: d}
		for phase := range one.Fields {
			r := g.ranks[phase][0][rank]
			n := r.Sweeper.plan
			if d.GoKernels || n.point.linear == nil || len(n.point.Reductions) > 0 {
				return nil, false
			}
			one.Fields[phase] = r.Arrays[1][0]
		}
		for phase := range one.Fields {
			if r := g.ranks[phase][0][rank]; r.Arrays[0][0] != one.Fields[1-phase] {
				return nil, false
			}
		}
		for _, s := range g.ranks[0][0][rank].Stores {
			one.Stores = append(one.Stores, kernels.GhostStore{Send: s.Send, Ghost: s.Ghost, To: s.To, Odd: s.Odd})
		}
		all = append(all, one)
	}
	return all, true
}
