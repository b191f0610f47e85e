package sweep

import (
	"slices"
	"time"
	"unsafe"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// StageRank is what one device does in a stage of the time steps of one phase: it sweeps its points,
// and stores those that others need into their ghosts.
type StageRank struct {
	Sweeper  *Sweeper
	Arrays   Arrays
	Boundary []domain.Box // the boundary region, up to six boxes that do not overlap
	Interior domain.Box   // all other owned points: none is stored elsewhere, none reads a ghost that is
	Stores   []Store
}

// Store says where boundary points of a written array go beside their own place.
type Store struct {
	Access, Component int
	Send, Ghost       domain.Box    // of equal size: owned by this rank, and ghosts of the other
	To                int           // rank, maybe the same one
	Array             kernels.Array // of the other
}

// FusedStages are the stages of time steps that devices make together, each with one kernel a
// device. All ranks queue the same stages in the same order, each by one thread.
type FusedStages struct {
	resources streams.Resources
	limit     time.Duration
	devices   []*streams.Device
	counts    []*streams.Memory // by rank: a line for each other, with the count of its blocks that have finished stages
	reports   []*streams.Memory // by rank: whom it waited for in vain
	waits     [][]int64         // by rank: for each other the count at which the stage queued next may begin
	peers     [][]int           // by rank: the others that it exchanges points with
	stages    [][][]*FusedStage // by phase, stage and rank
}

// FusedStage is a stage of one phase on one device, made ready.
type FusedStage struct {
	group    *FusedStages
	rank     int
	plain    *fusedLaunch
	measured *fusedLaunch // the same, which takes norms and reductions; nil where there are none
	totals   *Totals
	adds     []int64 // by rank: how many of its blocks count for this one in the stage
}

// fusedLaunch is a launch, and where in its argument the counts to wait for lie.
type fusedLaunch struct {
	*Launch
	expected []*int64 // by place among the peers
}

// lineBytes keeps counts on lines of their own.
const lineBytes = 128

// maxSlabs and maxPeers are those of point_step.cu.
const (
	maxSlabs = 6
	maxPeers = 26
)

// slab is a box of the boundary region, and the blocks that sweep it.
type slab struct {
	box    domain.Box
	blocks int64
	peers  []int // ranks that it waits for, and signals
}

// written returns the place of a component among the written arrays, -1 if it is none.
func (n *plan) written(access, component int) int {
	return slices.IndexFunc(n.writes, func(w writtenArray) bool { return w.access == access && w.component == component })
}

// word returns a number of 8 bytes that the CPU shares with others.
func word(m *streams.Memory, offset int64) *uint64 {
	return (*uint64)(unsafe.Pointer(&m.Bytes()[offset]))
}

// line returns where a rank keeps the count of another.
func (g *FusedStages) line(rank, of int) streams.Span {
	return g.counts[rank].Span(int64(of)*lineBytes, 8)
}
