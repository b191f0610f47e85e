package pack

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/halox/halox/domain"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels"
)

// column is a run of rows of 8 bytes from one location of a field to another, with rows of 128 bytes and planes of
// 1024 bytes.
func column(dst, src uint64) run {
	r := run{dst: dst, src: src, length: 8}
	r.over(Dim{5, 128, 128})
	r.over(Dim{3, 1024, 1024})
	return r
}

// apply performs strided copies on bytes, like the kernels.
func apply(memory []byte, copies []stridedCopy) {
	for _, s := range copies {
		for n := range s.words {
			x, from, to := s.spot(n)
			step, width := int64(s.word), int64(s.word)
			if s.lanes > 0 {
				step, width = stretch, min(stretch, s.length-x*stretch)
			}
			from, to = int64(s.src)+from+x*step, int64(s.dst)+to+x*step
			copy(memory[to:to+width], memory[from:from+width])
		}
	}
}

// sameBytes reports whether two sets of copies give the same bytes in memory of the given size.
func sameBytes(bytes int, a, b []stridedCopy) bool {
	first := make([]byte, bytes)
	for i := range first {
		first[i] = byte(i * 31 >> 3)
	}
	second := slices.Clone(first)
	apply(first, a)
	apply(second, b)
	return slices.Equal(first, second)
}

// spot is struct Spot of strided_copy.cuh.
func (s *stridedCopy) spot(n uint32) (x, from, to int64) {
	if s.rank == 0 {
		return int64(n), 0, 0
	}
	quotient := func(i int, n, by uint32) uint32 {
		if by == 1 {
			return n
		}
		return uint32(uint64(n)*uint64(s.factor[i])>>32) >> s.shift[i]
	}
	rest := quotient(0, n, s.nx)
	x = int64(n - rest*s.nx)
	for i := range s.rank {
		index := rest
		if i+1 < s.rank {
			outer := quotient(int(i)+1, rest, s.n[i])
			index, rest = rest-outer*s.n[i], outer
		}
		from, to = from+int64(index)*s.srcStep[i], to+int64(index)*s.dstStep[i]
	}
	return x, from, to
}

func TestPairs(t *testing.T) {
	wide, taller := column(2<<12, 3<<12), column(8+2<<12, 16+3<<12)
	wide.length = 128
	widePair := wide
	widePair.dst += 64
	widePair.src += 64
	taller.dims[0].Count = 6
	for name, c := range map[string]struct {
		runs []run
		want int
	}{
		"both ends of x":               {[]run{column(0, 64), column(72, 8)}, 1},
		"ends of two fields, by sides": {[]run{column(0, 64), column(4096, 4160), column(72, 8), column(4168, 4104)}, 2},
		"three columns":                {[]run{column(0, 64), column(72, 8), column(80, 16)}, 2},
		"end of another field":         {[]run{column(0, 64), column(4168, 4104)}, 2},
		"rows of a whole line":         {[]run{wide, widePair}, 2},
		"different heights":            {[]run{column(2<<12, 3<<12), taller}, 2},
		"none":                         {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			separate, joined := stridedCopies(c.runs, false), joinPairs(c.runs)
			if len(joined) != c.want {
				t.Errorf("got %d runs, want %d", len(joined), c.want)
			}
			if !sameBytes(1<<15, stridedCopies(joined, false), separate) {
				t.Error("the bytes differ")
			}
		})
	}
}

// The kernels locate every word of a strided copy, for any dimensions: the last word of each copy has the expected
// location.
func TestSpots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := run{length: rapid.Int64Range(1, 5000).Draw(t, "length")}
		last := [2]int64{}
		for range rapid.IntRange(0, maxDims).Draw(t, "rank") {
			d := Dim{rapid.Int64Range(2, 25).Draw(t, "count"), rapid.Int64Range(-1<<40, 1<<40).Draw(t, "dst"), rapid.Int64Range(-1<<40, 1<<40).Draw(t, "src")}
			r.over(d)
			last[0], last[1] = last[0]+(d.Count-1)*d.Dst, last[1]+(d.Count-1)*d.Src
		}
		if r.words(1) > maxWords {
			return
		}
		s := r.strided(1, 1)
		if x, from, to := s.spot(s.words - 1); x != r.length-1 || to != last[0] || from != last[1] {
			t.Fatalf("the last word: got word %d of a block at offsets %d and %d, want %d, %d, %d", x, to, from, r.length-1, last[0], last[1])
		}
	})
}

// Unaligned long blocks are copied in stretches, all others in words, with the same bytes.
func TestStretches(t *testing.T) {
	for _, length := range []int64{1, 63, 64, 100, 1032, 2047, 2048, 2049, 9000} {
		for _, start := range []uint64{0, 1, 2, 4, 8} {
			r := run{dst: start, src: 100<<10 + 3*start, length: length}
			r.over(Dim{3, length, 11008})
			r.over(Dim{2, 3 * length, 33024})
			all := stridedCopies([]run{r}, true)
			if !sameBytes(200<<10, all, stridedCopies([]run{r}, false)) {
				t.Errorf("%d bytes at %d: the bytes differ", length, start)
			}
			word := start | uint64(length) | 16
			word &= -word
			if stretched := all[0].lanes > 0; stretched != (word < 8 && length >= 64 || word == 8 && length >= 1024) {
				t.Errorf("%d bytes at %d: in stretches: got %v", length, start, stretched)
			}
		}
	}
}

// A run with too many words is divided into pieces with the same number of words in total.
func TestCut(t *testing.T) {
	for name, r := range map[string]run{
		"a block":          {length: 5 << 32},
		"rows":             {length: 1 << 20, rank: 1, dims: [maxDims]Dim{{Count: 12345, Dst: 1 << 20, Src: 1 << 21}}},
		"few large planes": {length: 16, rank: 2, dims: [maxDims]Dim{{Count: 1 << 30, Dst: 16, Src: 32}, {Count: 3, Dst: 1 << 34, Src: 1 << 35}}},
		"small enough":     {length: 1 << 10, rank: 1, dims: [maxDims]Dim{{Count: 12, Dst: 1 << 20, Src: 1 << 21}}},
	} {
		t.Run(name, func(t *testing.T) {
			total, next := int64(0), r.dst
			for _, p := range r.cut(1) {
				if p.dst != next || p.src-r.src != (p.dst-r.dst)*map[bool]uint64{true: 1, false: 2}[r.rank == 0] {
					t.Errorf("got a piece at %d, %d", p.dst, p.src)
				}
				n := p.words(1)
				if n > maxWords || n < 1 {
					t.Errorf("got a piece of %d words", n)
				}
				total += n
				next += uint64(n)
			}
			if total != r.words(1) {
				t.Errorf("got %d words in total, want %d", total, r.words(1))
			}
		})
	}
}

// Stores of the ghosts at both ends of x of an array into itself become whole sectors if only padding is next to
// them.
func TestStoresFillSectors(t *testing.T) {
	for name, c := range map[string]struct {
		points, width int
		words, word   int64 // of a row
	}{
		"a layer":                    {64, 1, 2, 16},
		"two layers":                 {64, 2, 2, 16},
		"three layers":               {64, 3, 2, 16},
		"five layers":                {64, 5, 4, 16},
		"a row that ends in between": {62, 2, 1, 16}, // only the upper end
		"no room between two rows":   {15, 1, 1, 8},
	} {
		t.Run(name, func(t *testing.T) {
			box := domain.Box{Hi: domain.Vec{c.points, 4, 4}}
			layout := test.Must(domain.NewLayout(box, domain.UniformRadius(3, c.width), 8))(t)
			send := domain.SendBox(layout.Owned, domain.Direction{-1, 0, 0}, layout.Width)
			ghost := domain.GhostBox(layout.Owned, domain.Direction{1, 0, 0}, layout.Width)
			before, after := layout.Padding(ghost, sector)
			a := kernels.Array{Layout: layout}
			store := Store(a, ghost, a, send)
			if store.slack != (slack{before, after}) || before != 0 {
				t.Errorf("slack %v differs from padding %d and %d", store.slack, before, after)
			}
			row := int64(c.width+after) * 8
			if row != c.words*c.word {
				t.Errorf("got rows of %d bytes, want %d", row, c.words*c.word)
			}
		})
	}
}
