package kernels

import "github.com/halox/halox/domain"

// segment is struct Segment of common.cuh: one or two boxes to copy, in words as
// wide as everything is aligned to.
type segment struct {
	dst, src                    uint64
	dstPitch, dstPlane, dstTwin int64 // bytes
	srcPitch, srcPlane, srcTwin int64
	nx, ny, nz                  int64
	twin                        int64 // 0 or 1
	word                        int64
}

// slack is how many elements before and after each row of a copy a GPU may write
// too, with anything: padding, that nobody reads.
type slack struct{ before, after int }

// sector is what a GPU's memory reads and writes at least. To write less, it reads
// the rest first.
const sector = 32

// Store is the copy of a box of one array to a box of equal size of another. Where
// ghosts end in padding, a GPU may write the whole sectors that they lie in.
func Store(dst Array, to domain.Box, src Array, from domain.Box) Copy {
	c := Copy{Dst: dst.In(to), Src: src.In(from), Size: from.Size(), ElementSize: src.Layout.ElementSize}
	before, after := dst.Layout.Padding(to, sector)
	from.Lo[0] -= before
	from.Hi[0] += after
	if src.Layout.Owned.Covers(from) { // what is written to padding is read from somewhere
		c.slack = slack{before, after}
	}
	return c
}

// segment gives the copy in words.
func (c Copy) segment() segment {
	size := int64(c.ElementSize)
	start := func(p Place) uint64 { return p.Data.Address() + uint64((p.First-int64(c.slack.before))*size) }
	s := segment{
		dst: start(c.Dst), src: start(c.Src),
		dstPitch: c.Dst.Pitch * size, dstPlane: c.Dst.Plane * size,
		srcPitch: c.Src.Pitch * size, srcPlane: c.Src.Plane * size,
		nx: int64(c.slack.before+c.Size[0]+c.slack.after) * size, ny: int64(c.Size[1]), nz: int64(c.Size[2]),
	}
	together := int64(s.dst|s.src) | s.dstPitch | s.dstPlane | s.srcPitch | s.srcPlane | s.nx
	s.word = min(16, together&-together)
	s.nx /= s.word
	return s
}

// words returns how many words the segment has, those of its twin included.
func (s segment) words() int64 { return (s.nx * s.ny * s.nz) << s.twin }

// mostWords returns the words of the largest segment.
func mostWords(table []segment) (words int64) {
	for _, s := range table {
		words = max(words, s.words())
	}
	return words
}

// joinTwins makes one segment of two that are columns of the same rows, as the
// ghosts at both ends of x are. What is near in memory is then copied together:
// where every row costs a page of DRAM, that takes two thirds of the time. (768^3
// float64 on an H200: 80 us for the two faces instead of 121.)
func joinTwins(table []segment) (joined []segment) {
	alone := map[segment][]int{} // by shape: places in joined
	for _, s := range table {
		shape := s
		shape.dst, shape.src = 0, 0
		if at := twinOf(s, joined, alone[shape]); at >= 0 {
			joined[at].join(s)
			continue
		}
		alone[shape] = append(alone[shape], len(joined))
		joined = append(joined, s)
	}
	return joined
}

// twinOf returns which of the candidates, which have its shape, can take the
// segment as its twin; -1 if none can.
func twinOf(s segment, joined []segment, candidates []int) int {
	if s.nx*s.word >= domain.RowAlignment || s.ny*s.nz == 1 {
		return -1
	}
	for _, i := range candidates {
		near := func(a, b uint64, pitch int64) bool { return max(int64(a-b), int64(b-a)) <= pitch }
		c := joined[i]
		if c.twin == 0 && near(c.dst, s.dst, s.dstPitch) && near(c.src, s.src, s.srcPitch) {
			return i
		}
	}
	return -1
}

// join adds a twin.
func (s *segment) join(t segment) {
	s.twin, s.dstTwin, s.srcTwin = 1, int64(t.dst-s.dst), int64(t.src-s.src)
}
