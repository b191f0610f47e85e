package datatype_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	. "github.com/halox/halox/halo/datatype"
)

// hostile takes the arguments of constructors from a fuzzer's bytes: small numbers, and numbers at which
// products and sums overflow.
type hostile struct{ data []byte }

func (h *hostile) next() int {
	if len(h.data) == 0 {
		return 0
	}
	n := int(h.data[0])
	h.data = h.data[1:]
	return n
}

func (h *hostile) number() int64 {
	n := h.next()
	switch {
	case n < 200:
		return int64(n%25 - 3)
	case n < 225:
		return int64(1) << (n % 64)
	case n < 235:
		return math.MaxInt64 - int64(n%3)
	case n < 240:
		return math.MinInt64 + int64(n%3)
	}
	var word [8]byte
	h.data = h.data[copy(word[:], h.data):]
	return int64(binary.LittleEndian.Uint64(word[:]))
}

func (h *hostile) list() (all []int) {
	for range h.next() % 6 {
		all = append(all, int(h.number()))
	}
	return all
}

func wide(numbers []int) (all []int64) {
	for _, n := range numbers {
		all = append(all, int64(n))
	}
	return all
}

// make returns the result of a constructor for any arguments; made are the existing types.
func (h *hostile) make(made []*Type) (*Type, error) {
	child := made[h.next()%len(made)]
	int := func() int { return int(h.number()) }
	switch h.next() % 10 {
	case 0:
		return Contiguous(int(), child)
	case 1:
		return Vector(int(), int(), int(), child)
	case 2:
		return HVector(int(), int(), h.number(), child)
	case 3:
		return Indexed(h.list(), h.list(), child)
	case 4:
		return HIndexed(h.list(), wide(h.list()), child)
	case 5:
		return IndexedBlock(int(), h.list(), child)
	case 6:
		return HIndexedBlock(int(), wide(h.list()), child)
	case 7:
		return Subarray(h.list(), h.list(), h.list(), Order(h.next()), child)
	case 8:
		types := make([]*Type, h.next()%5)
		for i := range types {
			types[i] = made[h.next()%len(made)]
		}
		return Struct(h.list(), wide(h.list()), types)
	}
	return Resized(child, h.number(), h.number())
}

// withLimit ends the process if a call takes too long.
func withLimit(limit time.Duration, what any, call func()) {
	timer := time.AfterFunc(limit, func() { panic(what) })
	defer timer.Stop()
	call()
}

// small reports whether a type is small enough to iterate over and to allocate.
func small(t *Type, l *Layout) bool {
	return t.Size() < 1<<12 && l.Size() < 1<<14 && l.TrueUB() < 1<<20 && l.TrueLB() > -1<<20
}

// Constructors, Commit, Pack and Unpack accept any arguments: each soon returns an error or the result of the
// type map.
func FuzzConstructors(f *testing.F) {
	f.Add([]byte{0, 0, 9, 12, 1, 8, 3, 2, 4, 6})
	f.Add([]byte{0, 0, 3, 0, 8, 2, 13, 0, 2, 215, 4, 2, 3, 3}) // many empty elements next to a byte
	f.Add([]byte{0, 2, 220, 4, 12, 13, 1, 220, 220, 8, 14, 0, 6})
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &hostile{data: data}
		made := []*Type{Byte, Int32, Float64, Complex128}
		for len(h.data) > 0 && len(made) < 12 {
			var typ *Type
			var err error
			withLimit(time.Minute, "a constructor takes over a minute", func() { typ, err = h.make(made) })
			if (typ == nil) == (err == nil) {
				t.Fatalf("type %v and error %v", typ, err)
			}
			if typ != nil {
				made = append(made, typ)
			}
		}
		last, count := made[len(made)-1], h.next()%4
		withLimit(time.Minute, last, func() { checkHostile(t, last, count) })
	})
}

func checkHostile(t *testing.T, typ *Type, count int) {
	_, _ = typ.String(), typ.Signature()
	buffer := make([]byte, 64)
	if err := Pack(buffer, buffer, 32, typ, count); err == nil && typ.Size()*int64(count) > 64 {
		t.Fatalf("%d of %v packed into 64 bytes", count, typ)
	}
	n := 0
	for range typ.TypeMap() {
		if n++; n > 1000 {
			break
		}
	}
	// Listing millions of blocks takes seconds, and the fuzzer has 10 per input.
	if n := typ.Signature().Elements(); n > 1<<20/4 && n < 1<<30 {
		return
	}
	l, err := Commit(typ, count)
	if err != nil {
		return
	}
	_, _, _ = l.String(), l.Key(), l.Alignment()
	if small(typ, l) {
		checkCommit(t, typ, count)
	}
}
