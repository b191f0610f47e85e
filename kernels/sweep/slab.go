package sweep

import (
	"github.com/halox/halox/domain"
)

// maxSlabs and maxNeighbours are those of slab.cuh.
const (
	maxSlabs      = 6
	maxNeighbours = 26
)

// slab is a box of the boundary region, and the blocks that sweep it.
type slab struct {
	box        domain.Box
	blocks     int64
	neighbours []int // their places among those of the rank: it waits for them, and signals them
}

func pointsOf(slabs []slab) (total int64) {
	for _, s := range slabs {
		total += s.box.Points()
	}
	return total
}

func blocksOf(slabs []slab) (total int64) {
	for _, s := range slabs {
		total += s.blocks
	}
	return total
}

// shareAll gives slabs as many blocks of so many threads as let a thread have so many points that there
// is about one block a multiprocessor: blocks keep their place there while they wait for a neighbour and
// for the link.
func shareAll(slabs []slab, threads, cores int64) {
	each := max(1, ceil(pointsOf(slabs), threads*max(1, cores)))
	for i := range slabs {
		slabs[i].blocks = ceil(slabs[i].box.Points(), threads*each)
	}
}

// shareSome gives slabs their part of so many blocks, one at least, at four times the work of points of the
// interior: they are computed one by one.
func shareSome(slabs []slab, interior, threads, blocks int64) {
	total := pointsOf(slabs)
	most := max(int64(len(slabs)), blocks*4*total/max(1, 4*total+interior))
	if interior > 0 {
		most = min(most, blocks-1)
	}
	for i := range slabs { // the sum is no more than most
		points := slabs[i].box.Points()
		slabs[i].blocks = min(ceil(points, threads), 1+max(0, most-int64(len(slabs)))*points/total)
	}
}

// putBoundary puts struct Boundary of slab.cuh.
func (w *words) putBoundary(slabs []slab, core domain.Box) {
	w.put(blocksOf(slabs), int64(len(slabs)))
	w.putNarrow(core.Lo[:]...)
	w.putNarrow(core.Hi[:]...)
	first := int64(0)
	for i := range maxSlabs {
		var s slab
		if i < len(slabs) {
			s = slabs[i]
		}
		size, bits := s.box.Size(), int64(0)
		for _, at := range s.neighbours {
			bits |= 1 << at
		}
		w.putNarrow(s.box.Lo[:]...)
		w.putNarrow(size[:]...)
		w.putNarrow(int(first), int(s.blocks))
		w.put(bits)
		first += s.blocks
	}
}

// boundaryWords is how many numbers struct Boundary has.
const boundaryWords = 2 + 3 + maxSlabs*5
