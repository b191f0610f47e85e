package pack

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// anyList returns blocks of all lengths, some empty.
func anyList(rng *rand.Rand, n int) []Block {
	list := make([]Block, n)
	for i := range list {
		most := []int64{1, 10, 300, 9000}[rng.IntN(4)]
		list[i] = Block{rng.Int64N(1<<52) - 1<<51, rng.Int64N(most)}
	}
	return list
}

// Units contain each byte of a list once, in order, within their limits.
func TestUnitsCoverTheList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, most := range []int64{1024, 4096} {
		list := anyList(rng, 3000)
		c := cutter{list: list, most: most}
		var units []unit
		var shorts []short
		for part := make([]unit, 0, 100); ; {
			var cut []unit
			if cut, shorts = c.cut(part, shorts); len(cut) == 0 {
				break
			}
			units = append(units, cut...)
		}
		at, offset, done := 0, int64(0), int64(0) // in the list, in the buffer, in the block
		next := func(displacement, bytes int64) {
			for list[at].Length == done {
				at, done = at+1, 0
			}
			if b := list[at]; displacement != b.Displacement+done || bytes > b.Length-done {
				t.Fatalf("got %d bytes at %d after %d bytes of block %d, %+v", bytes, displacement, done, at, b)
			}
			done, offset = done+bytes, offset+bytes
		}
		for i, u := range units {
			if u.offset() != offset || u.bytes() < 1 || u.bytes() > most || u.blocks() < 1 || u.blocks() > bundled {
				t.Fatalf("unit %d: got offset %d, want %d; %d bytes of %d blocks", i, u.offset(), offset, u.bytes(), u.blocks())
			}
			if u.blocks() == 1 {
				next(u.place, u.bytes())
				continue
			}
			for _, s := range shorts[u.place : u.place+u.blocks()] {
				next(s.displacement(), s.length())
			}
			if offset != u.offset()+u.bytes() {
				t.Fatalf("unit %d: got end %d, want %d", i, offset, u.offset()+u.bytes())
			}
		}
		r, err := extentOf(list)
		if err != nil || offset != r.size || c.shorts != int64(len(shorts)) {
			t.Errorf("got %d bytes of %d, %d short blocks of %d: %v", offset, r.size, len(shorts), c.shorts, err)
		}
	}
}

// Chunks contain each byte of a list once, of a limited number of blocks.
func TestChunksCoverTheList(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, bytes := range []int64{128, 2048, 1 << 20} {
		list := withBytes(anyList(rng, 9000))
		begin := make([]int64, len(list)+1)
		for i, b := range list {
			begin[i+1] = begin[i] + b.Length
		}
		chunks := chunksOf(list, bytes)
		for i, c := range chunks {
			if begin[c.first]+c.skip != c.offset {
				t.Fatalf("chunk %d: got offset %d, want %d", i, c.offset, begin[c.first]+c.skip)
			}
			if c.skip > 0 && (c.skip >= list[c.first].Length || c.offset%chunkAlignment != 0) {
				t.Fatalf("chunk %d must not begin %d bytes into a block of %d, at %d", i, c.skip, list[c.first].Length, c.offset)
			}
			if i == 0 {
				continue
			}
			last := chunks[i-1]
			blocks := c.first - last.first
			if c.skip > 0 {
				blocks++
			}
			if n := c.offset - last.offset; n < 1 || n > bytes || blocks > maxChunkBlocks {
				t.Fatalf("chunk %d: got %d bytes of %d blocks", i-1, n, blocks)
			}
		}
		if end := chunks[len(chunks)-1].offset; chunks[0] != (chunk{}) || end != begin[len(list)] {
			t.Errorf("got chunks from %+v to %d, want %d", chunks[0], end, begin[len(list)])
		}
	}
}

// narrowly is divide of tree.cu with 32 bits.
func narrowly(n int64, q division) int64 {
	return int64(uint64(uint32(n+n)) * uint64(q.narrow) >> 32 >> q.shift)
}

// Products and shifts give exact quotients, around every power of two and multiple, with 64 and with 32 bits.
func TestDivision(t *testing.T) {
	divisors := []int64{3, 5, 7, 10, 641, 1e9 + 7, 6700417, math.MaxInt64}
	for b := range 63 {
		power := int64(1) << b
		divisors = append(divisors, power, power+1, max(1, power-1), 1+rand.Int64N(power))
	}
	for _, d := range divisors {
		q := divisionBy(d)
		if back := divisionOf(q.words()); back != q {
			t.Fatalf("%+v: got %+v after a round trip through words", q, back)
		}
		for _, n := range dividends(d) {
			if got := q.of(n); got != n/d {
				t.Fatalf("%d / %d: want %d, got %d", n, d, n/d, got)
			}
			if got := narrowly(n, q); n < 1<<31 && d <= 1<<31 && got != n/d {
				t.Fatalf("%d / %d: want %d, got %d with 32 bits", n, d, n/d, got)
			}
		}
	}
}

// dividends returns numbers around multiples of d, small, below the limits and random.
func dividends(d int64) (all []int64) {
	for _, around := range []int64{0, d, 2 * d, 1<<31 - 1, 1<<31 - 1 - (1<<31-1)%d, math.MaxInt64, math.MaxInt64 - math.MaxInt64%d} {
		for n := around - 2; n <= around+2 || n < around && n > 0; n++ {
			if n >= 0 {
				all = append(all, n)
			}
			if n == math.MaxInt64 {
				break
			}
		}
	}
	for range 200 {
		all = append(all, rand.Int64()>>rand.IntN(bits.UintSize-1))
	}
	return all
}
