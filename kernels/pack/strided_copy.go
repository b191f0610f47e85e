package pack

import (
	"fmt"
	"math/bits"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/internal/launch"
)

// Loop is what a thread copies one after the other; NoLoop leaves it to the kernel,
// which gives a thread a word. The others are those of HAND (Shi et al., section III.B).
type Loop string

// The loops.
const (
	NoLoop    Loop = ""
	InnerLoop Loop = "inner" // a block, word by word (LoopT)
	OuterLoop Loop = "outer" // the same word of all repetitions of the outermost dimension (LoopX)
)

// StridedOptions say how a launch works. The zero value suits most copies.
type StridedOptions struct {
	MaxBlocks int // thread blocks; 0 for as many as suit
	Loop      Loop
}

// check returns an error unless the options are possible.
func (s StridedOptions) check() error {
	if s.MaxBlocks < 0 {
		return fmt.Errorf("pack: %d thread blocks", s.MaxBlocks)
	}
	if s.Loop != NoLoop && s.Loop != InnerLoop && s.Loop != OuterLoop {
		return fmt.Errorf("pack: no loop %q: inner or outer", s.Loop)
	}
	return nil
}

// division is struct Division of tree.cu: what a division by a number that is known long before becomes, a product and
// a shift (Granlund and Montgomery 1994). With L = ceil(log2 d), n/d is n*magic >> (63+L) for all n below 2^63, and
// n*narrow >> (31+L) for all n below 2^31.
type division struct {
	magic  uint64 // 2^(63+L)/d, rounded up
	narrow uint32 // 2^(31+L)/d, rounded up; 0 if d is greater than 2^31
	shift  uint32 // L
}

// divisionBy returns how to divide by d, which is at least 1.
func divisionBy(d int64) division {
	divisor := uint64(d)
	shift := bits.Len64(divisor - 1)
	high, low := uint64(0), uint64(1)<<63
	if shift > 0 {
		high, low = 1<<(shift-1), 0
	}
	magic, rest := bits.Div64(high, low, divisor)
	if rest > 0 {
		magic++
	}
	q := division{magic: magic, shift: uint32(shift)}
	if d <= 1<<31 {
		q.narrow = uint32((magic-1)>>32 + 1)
	}
	return q
}

// of divides n, which is not negative.
func (d *division) of(n int64) int64 {
	high, _ := bits.Mul64(uint64(n)<<1, d.magic)
	return int64(high >> d.shift)
}

// words returns the constants as two numbers of a look-aside buffer, as they lie in memory on a machine that is little
// endian, as GPUs are.
func (d division) words() (magic, rest int64) {
	return int64(d.magic), int64(uint64(d.shift)<<32 | uint64(d.narrow))
}

// divisionOf is the inverse of words.
func divisionOf(magic, rest int64) division {
	return division{magic: uint64(magic), narrow: uint32(rest), shift: uint32(uint64(rest) >> 32)}
}

// maxDims is how many dimensions a Strided may be repeated over.
const maxDims = 4

// Dim repeats what is inside it Count times, so many bytes apart on either side.
type Dim struct{ Count, Dst, Src int64 }

// run is a block of length bytes to be copied, repeated over dimensions, at
// addresses of a GPU.
type run struct {
	dst, src uint64
	length   int64
	rank     int
	dims     [maxDims]Dim // innermost first
}

// over repeats the run, outside all that it is repeated over already.
func (r *run) over(d Dim) {
	if d.Count > 1 {
		r.dims[r.rank] = d
		r.rank++
	}
}

// word returns how wide the words are that everything is aligned to, in bytes.
func (r *run) word() int64 {
	together := int64(r.dst|r.src) | r.length
	for _, d := range r.dims[:r.rank] {
		together |= d.Dst | d.Src
	}
	return min(16, together&-together)
}

// words returns how many words of the given width the run has.
func (r *run) words(width int64) int64 {
	n := r.length / width
	for _, d := range r.dims[:r.rank] {
		n *= d.Count
	}
	return n
}

// maxWords is how many words a strided copy may have: its kernels count in 31 bits.
const maxWords = 1<<31 - 1

// cut returns the run in pieces of at most maxWords words of the given width.
func (r run) cut(width int64) []run {
	if r.words(width) <= maxWords {
		return []run{r}
	}
	low, high := r, r
	last := r.rank - 1 // the outermost dimension that can be halved
	for last >= 0 && r.dims[last].Count == 1 {
		last--
	}
	if last < 0 {
		low.length = r.length / width / 2 * width
		high.length -= low.length
		high.dst += uint64(low.length)
		high.src += uint64(low.length)
	} else {
		d := r.dims[last]
		half := d.Count / 2
		low.dims[last].Count, high.dims[last].Count = half, d.Count-half
		high.dst += uint64(half * d.Dst)
		high.src += uint64(half * d.Src)
	}
	return append(low.cut(width), high.cut(width)...)
}

// joinTwins makes one run of two that are columns of the same rows, as the ghosts at
// both ends of x are. What is near in memory is then copied together: where every row
// costs a page of DRAM, that takes two thirds of the time. (768^3 float64 on an H200:
// 80 us for the two faces instead of 121.)
func joinTwins(all []run) (joined []run) {
	alone := map[run][]int{} // by shape: places in joined
	for _, r := range all {
		shape := r
		shape.dst, shape.src = 0, 0
		if at := twinOf(r, joined, alone[shape]); at >= 0 {
			joined[at].join(r)
			continue
		}
		alone[shape] = append(alone[shape], len(joined))
		joined = append(joined, r)
	}
	return joined
}

// twinOf returns which of the candidates, which had its shape, can take the run as its
// twin; -1 if none can.
func twinOf(r run, joined []run, candidates []int) int {
	if r.length >= domain.RowAlignment || r.rank == 0 || r.rank == maxDims {
		return -1
	}
	near := func(a, b uint64, step int64) bool { return max(int64(a-b), int64(b-a)) <= step }
	for _, i := range candidates {
		c := joined[i]
		if c.rank == r.rank && near(c.dst, r.dst, r.dims[0].Dst) && near(c.src, r.src, r.dims[0].Src) {
			return i
		}
	}
	return -1
}

// join adds a twin.
func (r *run) join(t run) {
	copy(r.dims[1:], r.dims[:r.rank])
	r.dims[0] = Dim{2, int64(t.dst - r.dst), int64(t.src - r.src)}
	r.rank++
}

// stridedCopy is struct StridedCopy of strided_copy.cuh.
type stridedCopy struct {
	dst, src         uint64
	dstStep, srcStep [maxDims]int64
	length           int64
	nx               uint32
	n                [maxDims]uint32
	factor, shift    [maxDims]uint32
	words            uint32
	word, rank       uint32
	lanes            uint32
}

// strided gives the run in words of the given width. kind is what the kernel is told
// of them. The run has at most maxWords of them.
func (r *run) strided(width int64, kind uint32) stridedCopy {
	s := stridedCopy{dst: r.dst, src: r.src, nx: uint32(r.length / width), word: kind}
	s.over(r.dims[:r.rank])
	return s
}

// over repeats nx words, or stretches.
func (s *stridedCopy) over(dims []Dim) {
	s.rank, s.words = uint32(len(dims)), s.nx
	divisor := s.nx
	for i, d := range dims {
		s.dstStep[i], s.srcStep[i], s.n[i] = d.Dst, d.Src, uint32(d.Count)
		s.divide(i, divisor)
		divisor = s.n[i]
		s.words *= s.n[i]
	}
}

// A stretch is what some threads of kernel move_stretches copy at once of a block.
const stretch = 2048 // bytes

// suitsStretches reports whether the blocks of a run are long enough to be copied in
// words wider than those that all of it is aligned to. (16 MiB in blocks of 1 KiB on an
// H200: 9.6 us instead of 48 where they begin at odd bytes, 9.1 instead of 14.3 at
// multiples of 4, 7.5 instead of 8.7 at multiples of 8.)
func (r *run) suitsStretches() bool {
	switch r.word() {
	case 16:
		return false
	case 8:
		return r.length >= 1024
	}
	return r.length >= 64
}

// stretches gives the run in stretches of its blocks, each with a prologue and an
// epilogue of its own.
func (r *run) stretches() stridedCopy {
	s := stridedCopy{dst: r.dst, src: r.src, length: r.length, nx: uint32((r.length + stretch - 1) / stretch),
		lanes: lanesFor(min(r.length, stretch))}
	s.over(r.dims[:r.rank])
	return s
}

// lanesFor returns how many threads copy so many bytes: a power of two, of a warp at
// most, that gives each some words of 8 bytes.
func lanesFor(bytes int64) uint32 {
	lanes := uint32(1)
	for lanes < 32 && int64(lanes)*16 < bytes {
		lanes *= 2
	}
	return lanes
}

// threads returns how many threads have a word, or a part of a stretch, to copy, or
// what is in a loop.
func (s *stridedCopy) threads(l Loop) int64 {
	words := int64(s.words) * int64(max(1, s.lanes))
	switch {
	case l == InnerLoop:
		return words / int64(s.nx)
	case l == OuterLoop && s.rank > 0:
		return words / int64(s.n[s.rank-1])
	}
	return words
}

// divide says how to divide by d, which kernels do for dimension i: what is left of a
// product of 64 bits and a shift by 32 and more. Nothing is to be done to divide by 1.
func (s *stridedCopy) divide(i int, d uint32) {
	if d > 1 {
		q := divisionBy(int64(d))
		s.factor[i], s.shift[i] = q.narrow, q.shift-1
	}
}

// blockRange is struct BlockRange of strided_copy.cuh: a strided copy, and which thread blocks work on
// it.
type blockRange struct {
	stridedCopy   `cu:"copy"`
	first, blocks int64
}

// share gives the ranges of blocks blocks by their work: in all no more than most, but at
// least one each, and no more than there is work for at so many words a thread.
func share(all []blockRange, l Loop, most, wordsAThread int64) (blocks int64) {
	total := threads(all, l)
	for i := range all {
		p := &all[i]
		fair := float64(most) * float64(p.threads(l)) / float64(max(1, total))
		p.first, p.blocks = blocks, max(1, min(int64(fair), p.threads(l)/(launch.BlockSize*wordsAThread)))
		blocks += p.blocks
	}
	return blocks
}

// threads returns how many threads have work.
func threads(all []blockRange, l Loop) (n int64) {
	for i := range all {
		n += all[i].threads(l)
	}
	return n
}
