package step

import (
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
	checkSlots       = 32 // CHECK_SLOTS of watch.cuh
	checkPacketBytes = 16
	normsBytes       = int64(unsafe.Sizeof(reduce.Norms{}))
	reportBytes      = 16
	checkedSum       = 1 << 23 // points, of which a GPU joins the sums as 64-bit integers
	foldedNumbers    = 4       // of a sum in struct SumRows of folding.cuh, beside its window
)

// checkRoom is what the checks of a rank leave.
type checkRoom struct {
	votes *streams.Memory
	tiles *streams.Memory // norms of tiles, as packets
	voted *streams.Memory // addresses of the votes of all ranks
	host  *streams.Memory // norms by check, and the report
}

// maxCheckThreads is the most threads of a block that takes norms within a launch: more have too few registers.
const maxCheckThreads = 512

// checking returns the tiling with the threads of blocks that take norms within a launch: a warp at least, some of whose threads may have
// no points. ok is false where there is no room for that, in a GPU's shared memory.
func (b tiling) checking(room int64) (c tiling, ok bool) {
	layer := b.block[0] * b.block[1]
	if !b.whole() || layer > maxCheckThreads {
		return b, false
	}
	b.block[2] = min(b.block[2], maxCheckThreads/layer)
	if least := ceil(warpThreads, layer); b.block[2] < least {
		b.block[2] = least
		b.share()
	}
	return b, b.shared+b.checkBytes() <= room
}

const warpThreads = 32

// checkBytes is the shared memory in which such a block joins norms: struct TileNorms of checks.cuh.
func (b *tiling) checkBytes() int64 {
	const sums = 2
	rows := b.threads()/warpThreads + b.threads()%warpThreads
	return rows*sums*(8*foldedNumbers+4) + normsBytes + 4*sums*warpThreads
}
