package pack

import (
	"fmt"
	"math/bits"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/internal/launch"
)

// Loop is the part of a copy that one thread performs sequentially. NoLoop gives each thread one word. The others
// are those of HAND (Shi et al. 2014, section III.B).
type Loop string

// The loops.
const (
	NoLoop    Loop = ""
	InnerLoop Loop = "inner" // a block, word by word (LoopT)
	OuterLoop Loop = "outer" // the same word of all repetitions of the outermost dimension (LoopX)
)

// StridedOptions configures a launch. The zero value suits most copies.
type StridedOptions struct {
	MaxBlocks int  // thread blocks; default: automatic
	Loop      Loop // default NoLoop
}

// check returns an error unless the options are valid.
func (s StridedOptions) check() error {
	if s.MaxBlocks < 0 {
		return fmt.Errorf("pack: number of thread blocks: must be at least 0, got %d", s.MaxBlocks)
	}
	if s.Loop != NoLoop && s.Loop != InnerLoop && s.Loop != OuterLoop {
		return fmt.Errorf("pack: loop: must be inner or outer, got %q", s.Loop)
	}
	return nil
}

// division is struct Division of tree.cu: a division by a constant, as a product and a shift (Granlund and
// Montgomery 1994). With L = ceil(log2 d), n/d is n*magic >> (63+L) for all n below 2^63, and n*narrow >> (31+L)
// for all n below 2^31.
type division struct {
	magic  uint64 // 2^(63+L)/d, rounded up
	narrow uint32 // 2^(31+L)/d, rounded up; 0 if d is greater than 2^31
	shift  uint32 // L
}

// divisionBy returns the division by d, which must be at least 1.
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

// of divides n, which must not be negative.
func (d *division) of(n int64) int64 {
	high, _ := bits.Mul64(uint64(n)<<1, d.magic)
	return int64(high >> d.shift)
}

// words returns the constants as two numbers of a look-aside buffer, in the memory layout of little-endian
// machines such as GPUs.
func (d division) words() (magic, rest int64) {
	return int64(d.magic), int64(uint64(d.shift)<<32 | uint64(d.narrow))
}

// divisionOf is the inverse of words.
func divisionOf(magic, rest int64) division {
	return division{magic: uint64(magic), narrow: uint32(rest), shift: uint32(uint64(rest) >> 32)}
}

// maxDims is the largest number of dimensions of a Strided.
const maxDims = 4

// Dim is a dimension of a Strided: the inner part is repeated Count times, at distances of Dst and Src bytes.
type Dim struct {
	Count    int64 // repetitions, at least 1
	Dst, Src int64 // distances, in bytes
}

// run is a block of length bytes to be copied, repeated over dimensions, with device addresses.
type run struct {
	dst, src uint64
	length   int64
	rank     int
	dims     [maxDims]Dim // innermost first
}

// over repeats the run along an additional outermost dimension.
func (r *run) over(d Dim) {
	if d.Count > 1 {
		r.dims[r.rank] = d
		r.rank++
	}
}

// word returns the widest common alignment, in bytes.
func (r *run) word() int64 {
	together := int64(r.dst|r.src) | r.length
	for _, d := range r.dims[:r.rank] {
		together |= d.Dst | d.Src
	}
	return min(16, together&-together)
}

// words returns the number of words of the given width.
func (r *run) words(width int64) int64 {
	n := r.length / width
	for _, d := range r.dims[:r.rank] {
		n *= d.Count
	}
	return n
}

// maxWords is the largest number of words of a strided copy: its kernels count in 31 bits.
const maxWords = 1<<31 - 1

// cut divides the run into pieces of at most maxWords words of the given width.
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

// joinPairs merges runs that are columns of the same rows, such as the ghosts at both ends of x, so that nearby
// memory is accessed together: if every row takes a page of DRAM, the merged run takes two thirds of the time.
// (768^3 float64 on an H200: 80 us instead of 121 us for both faces.)
func joinPairs(all []run) (joined []run) {
	single := map[run][]int{} // by shape: indices in joined
	for _, r := range all {
		shape := r
		shape.dst, shape.src = 0, 0
		if at := pairOf(r, joined, single[shape]); at >= 0 {
			joined[at].join(r)
			continue
		}
		single[shape] = append(single[shape], len(joined))
		joined = append(joined, r)
	}
	return joined
}

// pairOf returns which of the candidates, of equal shape, can be merged with the run; -1 if none can.
func pairOf(r run, joined []run, candidates []int) int {
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

// join merges another run.
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

// strided returns the run in words of the given width. kind is passed to the kernel. The run must have at most
// maxWords words.
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

// A stretch is the part of a block that some threads of kernel move_stretches copy at once.
const stretch = 2048 // bytes

// suitsStretches reports whether the blocks of a run are long enough to be copied in words wider than the common
// alignment. (16 MiB in blocks of 1 KiB on an H200: 9.6 us instead of 48 us if they begin at odd bytes, 9.1 us
// instead of 14.3 us at multiples of 4, 7.5 us instead of 8.7 us at multiples of 8.)
func (r *run) suitsStretches() bool {
	switch r.word() {
	case 16:
		return false
	case 8:
		return r.length >= 1024
	}
	return r.length >= 64
}

// stretches returns the run in stretches of its blocks, each with its own prologue and epilogue.
func (r *run) stretches() stridedCopy {
	s := stridedCopy{dst: r.dst, src: r.src, length: r.length, nx: uint32((r.length + stretch - 1) / stretch),
		lanes: lanesFor(min(r.length, stretch))}
	s.over(r.dims[:r.rank])
	return s
}

// lanesFor returns how many threads copy the given bytes: a power of two, at most a warp, with several words of 8
// bytes for each.
func lanesFor(bytes int64) uint32 {
	lanes := uint32(1)
	for lanes < 32 && int64(lanes)*16 < bytes {
		lanes *= 2
	}
	return lanes
}

// threads returns how many threads have a word, a part of a stretch, or a loop to copy.
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

// divide sets the constants by which kernels divide by d for dimension i: the high part of a product of 64 bits
// and a shift by 32 or more. No division is needed for 1.
func (s *stridedCopy) divide(i int, d uint32) {
	if d > 1 {
		q := divisionBy(int64(d))
		s.factor[i], s.shift[i] = q.narrow, q.shift-1
	}
}

// blockRange is struct BlockRange of strided_copy.cuh: a strided copy, and the thread blocks that work on it.
type blockRange struct {
	stridedCopy   `cu:"copy"`
	first, blocks int64
}

// share assigns thread blocks to the ranges by their work: at most most in total, at least one each, and no more
// than needed for wordsAThread words per thread.
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
