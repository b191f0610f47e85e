package datatype_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
	"github.com/halox/halox/internal/test"
)

// checkCommit compares the layout of count elements of a type with its type map, by packing and unpacking
// numbered bytes.
func checkCommit(t rapid.TB, typ *Type, count int) {
	t.Helper()
	l := committed(t, typ, count)
	checkBounds(t, l, typ, count)
	checkBlocks(t, l, typ, count)
	const margin = 24
	origin := margin - l.TrueLB()
	buffer := typetest.Numbered(l.TrueUB() - l.TrueLB() + 2*margin)
	want, got := make([]byte, l.Size()), make([]byte, l.Size())
	test.Check(t, errors.Join(Pack(want, buffer, origin, typ, count), l.Pack(got, buffer, origin)))
	if !bytes.Equal(got, want) {
		t.Fatalf("%d of %v, as %v, pack to\n%v, not\n%v", count, typ, l, got, want)
	}
	checkSlices(t, l, buffer, got, origin)
	checkUnpack(t, l, typ, count, buffer, got, origin)
}

// checkSlices packs the slices of a layout one after another: together they are the whole message.
func checkSlices(t rapid.TB, l *Layout, buffer, want []byte, origin int64) {
	t.Helper()
	step := 1 + int64(uint64(l.TrueUB())*7919%uint64(max(1, l.Size())))
	packed := make([]byte, l.Size())
	for lo := int64(0); lo < l.Size(); lo += step {
		hi := min(l.Size(), lo+step)
		s := test.Must(l.Slice(lo, hi))(t)
		if s.TrueLB() < l.TrueLB() || s.TrueUB() > l.TrueUB() || s.Size() != hi-lo {
			t.Fatalf("bytes %d to %d of %v are %v", lo, hi, l, s)
		}
		test.Check(t, s.Pack(packed[lo:hi], buffer, origin))
	}
	if !bytes.Equal(packed, want) {
		t.Fatalf("slices of %d bytes of %v pack to\n%v, not\n%v", step, l, packed, want)
	}
}

// checkUnpack unpacks into poisoned bytes: the bytes of the layout must be restored, and no others changed.
func checkUnpack(t rapid.TB, l *Layout, typ *Type, count int, buffer, packed []byte, origin int64) {
	t.Helper()
	want := make([]byte, len(buffer))
	for i := range want {
		want[i] = ^buffer[i]
	}
	got, byWalk := slices.Clone(want), slices.Clone(want)
	for _, b := range l.Blocks() {
		from := origin + b.Displacement
		copy(want[from:from+b.Length], buffer[from:])
	}
	test.Check(t, errors.Join(l.Unpack(got, origin, packed), Unpack(byWalk, origin, packed, typ, count)))
	if !bytes.Equal(got, want) || !bytes.Equal(byWalk, want) {
		t.Fatalf("%d of %v, as %v, are not restored, or other bytes changed", count, typ, l)
	}
}

// checkBounds compares sizes and bounds with the type map.
func checkBounds(t rapid.TB, l *Layout, typ *Type, count int) {
	t.Helper()
	var size, lo, hi int64
	typ.Elements(count, func(displacement int64, b Basic) {
		if size == 0 {
			lo, hi = displacement, displacement
		}
		size += b.Size()
		lo, hi = min(lo, displacement), max(hi, displacement+b.Size())
	})
	if l.Size() != size || l.TrueLB() != lo || l.TrueUB() != hi {
		t.Fatalf("%d of %v: size and bounds %d, %d, %d, not %d, %d, %d", count, typ, l.Size(), l.TrueLB(), l.TrueUB(), size, lo, hi)
	}
	if count == 1 && (typ.Size() != size || typ.TrueLB() != lo || typ.TrueUB() != hi || typ.TrueExtent() != hi-lo) {
		t.Fatalf("%v: size and true bounds %d, %d, %d, not %d, %d, %d", typ, typ.Size(), typ.TrueLB(), typ.TrueUB(), size, lo, hi)
	}
}

// checkBlocks compares the blocks with the contract of Layout.
func checkBlocks(t rapid.TB, l *Layout, typ *Type, count int) {
	t.Helper()
	var n, offset, shortest, longest int64
	var blocks []Block
	for at, b := range l.Blocks() {
		if at != offset || b.Length < 1 {
			t.Fatalf("%d of %v: block %d is %v at offset %d, not %d", count, typ, n, b, at, offset)
		}
		if n == 0 {
			shortest = b.Length
		}
		shortest, longest = min(shortest, b.Length), max(longest, b.Length)
		if unit := l.Alignment(); b.Displacement%unit != 0 || b.Length%unit != 0 || at%unit != 0 {
			t.Fatalf("%d of %v: block %v at %d is not aligned to %d", count, typ, b, at, unit)
		}
		blocks = append(blocks, b)
		offset += b.Length
		n++
	}
	if offset != l.Size() || n != l.NumBlocks() || shortest != l.MinBlock() || longest != l.MaxBlock() {
		t.Fatalf("%d of %v: %d blocks of %d to %d, in all %d, but the layout says %v", count, typ, n, shortest, longest, offset, l)
	}
	checkForm(t, l, blocks)
}

// checkForm checks the pieces, the overlaps and that the blocks alone lead to the same layout.
func checkForm(t rapid.TB, l *Layout, blocks []Block) {
	t.Helper()
	if got, want := l.Overlaps(), ListOverlaps(blocks); got != want {
		t.Fatalf("%v overlaps: %t, not %t", l, got, want)
	}
	if len(l.Pieces()) > MaxPieces || !slices.IsSortedFunc(l.Pieces(), func(p, q Piece) int { return int(p.Offset - q.Offset) }) {
		t.Fatalf("%v: %d pieces, or not by offset", l, len(l.Pieces()))
	}
	for _, p := range l.Pieces() {
		least := p.Length
		for _, d := range p.Dims[:p.Rank] {
			if d.Count < 2 || d.Packed < least {
				t.Fatalf("%v: dimension %v after %d packed bytes", l, d, least)
			}
			least = d.Packed * d.Count
		}
		if slices.ContainsFunc(p.Dims[p.Rank:], func(d Dim) bool { return d != Dim{} }) {
			t.Fatalf("%v: dimensions past rank %d are not zero", p.Dims, p.Rank)
		}
	}
	for i := 1; i < len(l.List()); i++ {
		if before := l.List()[i-1]; before.Displacement+before.Length == l.List()[i].Displacement {
			t.Fatalf("%v: blocks %d and %d touch", l, i-1, i)
		}
	}
}

// Layouts of random types agree with their type maps. Each type has a seed.
func TestCommitOfRandomTypes(t *testing.T) {
	for seed := range uint64(4000) {
		typ, count := randomType(t, seed)
		checkCommit(t, typ, count)
	}
}

// randomType returns the random type of a seed, and a count of it.
func randomType(t rapid.TB, seed uint64) (*Type, int) {
	s := typetest.Seeded(seed)
	return s.Type(t, 1+s(0, 4)), s.Count(5)
}

// A fuzzer's bytes are a source: each is one integer; after their end all integers are the lowest.
func FuzzCommit(f *testing.F) {
	f.Add([]byte{1, 1, 3, 2, 5})
	f.Add([]byte("triangles and stairs, structs of subarrays"))
	f.Add([]byte{9, 7, 8, 3, 200, 1, 255, 17, 4, 4, 4, 90, 33, 2, 7, 7, 1, 0, 0, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := typetest.Source(func(lo, hi int) int {
			if len(data) == 0 {
				return lo
			}
			n := int(data[0])
			data = data[1:]
			return lo + n%(hi-lo+1)
		})
		checkCommit(t, s.Type(t, 5), s(0, 6))
	})
}
