package step

import (
	"github.com/halox/halox/streams"
)

// canCheck reports whether all tiles have room for checks.
func (n *TileGroup) canCheck() bool {
	for i, rank := range n.ranks {
		b := &n.boxes[i]
		_, ok := b.checking(rank.Device.Shared - tileReserve)
		if !ok || b.size[0]*b.size[1]*b.size[2] > checkedSum {
			return false
		}
	}
	return true
}

// PrepareChecks makes ready what checks need, on all ranks, before the Steps of a rank are. ok is false where tiles have no room for
// them. Otherwise QueueChecked may be called.
func (n *TileGroup) PrepareChecks() (ok bool, err error) {
	if n.checks != nil || !n.canCheck() {
		return n.checks != nil, nil
	}
	for i, rank := range n.ranks {
		n.compiler.BeginSteps(rank.Device, n.checkedProgram(i))
	}
	return true, n.makeChecks(n.Tiles)
}

// makeChecks makes what the checks of all ranks leave, which have so many tiles.
func (n *tileRanks) makeChecks(tiles func(rank int) int64) (err error) {
	ranks := int64(len(n.ranks))
	addresses, checks := make([]uint64, ranks), make([]checkRoom, ranks)
	for i, rank := range n.ranks {
		if checks[i].votes, err = streams.Upload(rank.Device, make([]byte, checkSlots*ranks*checkPacketBytes)); err != nil {
			return err
		}
		n.resources.Add(checks[i].votes)
		addresses[i] = checks[i].votes.Address()
	}
	for i, rank := range n.ranks {
		c := &checks[i]
		packets := make([]byte, checkSlots*tiles(i)*normsBytes/8*checkPacketBytes)
		if c.tiles, err = streams.Upload(rank.Device, packets); err != nil {
			return err
		}
		n.resources.Add(c.tiles)
		if c.voted, err = streams.Upload(rank.Device, addresses); err != nil {
			return err
		}
		n.resources.Add(c.voted)
		if c.host, err = rank.Device.AllocPinned(MostChecks*normsBytes + reportBytes); err != nil {
			return err
		}
		n.resources.Add(c.host)
	}
	n.checks = checks
	return nil
}

// checkArgs returns where the checks of a rank leave what, and adds that to what a launch uses.
func (n *tileRanks) checkArgs(spec *streams.KernelSpec, i int) tileChecks {
	c, ranks := n.checks[i], int64(len(n.ranks))
	spec.Uses = append(spec.Uses, c.votes.All(), c.tiles.All(), c.voted.All(), c.host.All())
	for other := range n.checks {
		if other != i {
			spec.Reaches = append(spec.Reaches, n.checks[other].votes.All())
		}
	}
	return tileChecks{
		tiles: c.tiles.Address(), votes: c.votes.Address(), voted: c.voted.Address(),
		rank: int64(i), ranks: ranks, host: c.host.Address(), report: c.host.Address() + uint64(MostChecks*normsBytes),
	}
}

// watch returns the checks as a launch has them.
func (c Checks) watch(before int64) tileWatch {
	w := tileWatch{every: c.Every, until: c.Until, before: before, limit: c.Tolerance}
	if c.Finite {
		w.finite = 1
	}
	if c.L2 {
		w.squares = 1
		if c.Tolerance >= 0 { // and what sums of squares are off by
			w.limit = c.Tolerance*c.Tolerance*(1+1e-12) + 1e-300
		}
	}
	return w
}
