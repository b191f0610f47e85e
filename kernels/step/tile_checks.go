package step

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/halox/halox/kernels/reduce"
	"github.com/halox/halox/streams"
)

// Checks are norms that a launch takes of some of its steps but the last, and what ends it there. A launch that ends before its last step has
// stored nothing: the fields are as they were before it. It ends no later than the norms of all ranks say, rounded; so where they are close
// to the tolerance it may end at a check that does not say so.
type Checks struct {
	Until, Every int64   // steps of the launch before the first, and from one to the next
	Tolerance    float64 // a change, of all ranks, that is not larger ends the launch; negative: none does
	L2           bool    // the change is the root of the sum of its squares, not the largest
	Finite       bool    // what is not finite ends the launch
}

// MostChecks is how many checks a launch may have.
const MostChecks = 1 << 10

const (
	checkSlots    = 8 // CHECK_SLOTS of tile.cuh
	voteBytes     = 16
	normsBytes    = int64(unsafe.Sizeof(reduce.Norms{}))
	reportBytes   = 16
	checkedSum    = 1 << 23 // points, of which a GPU joins the sums as 64-bit integers
	foldedNumbers = 4       // of a sum in struct SumRows of folding.cuh, beside its window
)

// checkRoom is what the checks of a rank leave.
type checkRoom struct {
	votes *streams.Memory
	own   *streams.Memory // counts of tiles by slot, addresses of the votes of all ranks, norms of tiles
	host  *streams.Memory // norms by check, and the report
}

// maxCheckThreads is the most threads of a block that takes norms within a launch: more have too few registers.
const maxCheckThreads = 512

// checking returns the tiling with the threads of blocks that take norms within a launch. ok is false where there is no room for that, in a GPU's
// shared memory.
func (b tiling) checking(room int64) (c tiling, ok bool) {
	layer := b.block[0] * b.block[1]
	if !b.whole() || layer > maxCheckThreads {
		return b, false
	}
	b.block[2] = min(b.block[2], maxCheckThreads/layer)
	return b, b.threads() >= warpThreads && b.shared+b.checkBytes() <= room
}

const warpThreads = 32

// checkBytes is the shared memory in which such a block joins norms: struct TileNorms of checks.cuh.
func (b *tiling) checkBytes() int64 {
	const sums = 2
	rows := b.threads()/warpThreads + b.threads()%warpThreads
	return rows*sums*(8*foldedNumbers+4) + normsBytes + 4*sums*warpThreads
}

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
	ranks := int64(len(n.ranks))
	addresses, checks := make([]uint64, ranks), make([]checkRoom, ranks)
	for i, rank := range n.ranks {
		if checks[i].votes, err = streams.Upload(rank.Device, make([]byte, checkSlots*ranks*voteBytes)); err != nil {
			return false, err
		}
		n.resources.Add(checks[i].votes)
		addresses[i] = checks[i].votes.Address()
	}
	for i, rank := range n.ranks {
		c := &checks[i]
		norms := make([]uint64, checkSlots*n.Tiles(i)*normsBytes/8)
		if c.own, err = streams.Upload(rank.Device, slices.Concat(make([]uint64, checkSlots), addresses, norms)); err != nil {
			return false, err
		}
		n.resources.Add(c.own)
		if c.host, err = rank.Device.AllocPinned(MostChecks*normsBytes + reportBytes); err != nil {
			return false, err
		}
		n.resources.Add(c.host)
	}
	n.checks = checks
	return true, nil
}

// checkArgs returns where the checks of a rank leave what, and adds that to what a launch uses.
func (n *TileGroup) checkArgs(spec *streams.KernelSpec, i int) tileChecks {
	c, ranks := n.checks[i], int64(len(n.ranks))
	spec.Uses = append(spec.Uses, c.votes.All(), c.own.All(), c.host.All())
	for other := range n.checks {
		if other != i {
			spec.Reaches = append(spec.Reaches, n.checks[other].votes.All())
		}
	}
	own := c.own.Address()
	return tileChecks{
		arrived: own, voted: own + 8*checkSlots, tiles: own + 8*uint64(checkSlots+ranks), votes: c.votes.Address(),
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

// CanCheck reports whether QueueChecked may be called.
func (s *TileSteps) CanCheck() bool { return s.checked.kernel != nil }

// QueueChecked is Queue with norms of the last step, and with checks of those before. When the launch is done Checked must be
// called, before more is queued.
func (s *TileSteps) QueueChecked(at *streams.Stream, first, steps int64, c Checks) error {
	switch {
	case !s.CanCheck():
		return errors.New("step: checks of tiles that are not prepared for them")
	case c.Until < 0 || c.Every < 1 || c.Every > math.MaxInt32 || c.Until > math.MaxInt32:
		return fmt.Errorf("step: checks of every %d steps after %d", c.Every, c.Until)
	case (steps-2-c.Until)/c.Every+1 > MostChecks:
		return fmt.Errorf("step: more than %d checks in one launch", MostChecks)
	}
	return s.queue(at, s.checked, first, steps, c.watch(s.checks))
}

// Checked returns the norms of this rank's tiles at each check of the launch, and which of them ended it, counted from 1; 0 if it made all its steps.
// Those after that one are left out.
func (s *TileSteps) Checked() (norms []reduce.Norms, ended int64) {
	host := s.group.checks[s.rank].host.Bytes()
	report := streams.View[int64](host[MostChecks*normsBytes:])
	ended, begun := report[0], report[1]
	s.checks, s.unread = s.checks+begun, false
	if ended > 0 {
		s.skipped += s.span.count
		begun = ended
	}
	return streams.View[reduce.Norms](host[:begun*normsBytes]), ended
}
