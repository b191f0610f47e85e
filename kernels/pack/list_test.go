package pack_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// blockList is a list of blocks in so many bytes, of which displacement 0 lies origin
// bytes after the first.
type blockList struct {
	name   string
	blocks []pack.Block
	origin int64
	bytes  int64
	twice  bool // bytes occur twice: it may be packed only
}

// size returns the packed bytes.
func (l blockList) size() (n int64) {
	for _, b := range l.blocks {
		n += b.Length
	}
	return n
}

// scattered puts blocks of the lengths into memory in any order, with gaps of 0 to gap
// times align bytes between them, and the origin amid them.
func scattered(name string, rng *rand.Rand, lengths []int64, gap int, align int64) blockList {
	l := blockList{name: name, blocks: make([]pack.Block, len(lengths))}
	for _, i := range rng.Perm(len(lengths)) {
		l.bytes += int64(rng.IntN(gap+1)) * align
		l.blocks[i] = pack.Block{Displacement: l.bytes, Length: lengths[i]}
		l.bytes += lengths[i]
	}
	l.bytes++
	l.origin = l.bytes / 2 / align * align
	for i := range l.blocks {
		l.blocks[i].Displacement -= l.origin
	}
	return l
}

// lengthsOf returns so many lengths.
func lengthsOf(n int, length func(i int) int64) []int64 {
	lengths := make([]int64, n)
	for i := range lengths {
		lengths[i] = length(i)
	}
	return lengths
}

// blockLists are lists that take every way through the kernels.
func blockLists() []blockList {
	rng := rand.New(rand.NewPCG(1, 2))
	upTo := func(most int64) func(int) int64 { return func(int) int64 { return 1 + rng.Int64N(most) } }
	always := func(n int64) func(int) int64 { return func(int) int64 { return n } }
	lists := []blockList{
		{name: "nothing", bytes: 1},
		{name: "empty blocks", blocks: []pack.Block{{Displacement: 5}, {Displacement: -7}}, bytes: 1},
		scattered("a byte", rng, []int64{1}, 9, 1),
		scattered("one long block", rng, []int64{300<<10 + 13}, 9, 1),
		scattered("up to 5000 bytes", rng, lengthsOf(400, upTo(5000)), 60, 1),
		scattered("up to 40 bytes", rng, lengthsOf(5000, upTo(40)), 9, 1),
		scattered("no gaps", rng, lengthsOf(300, upTo(400)), 0, 1),
		scattered("up to 5000 numbers", rng, lengthsOf(100, func(int) int64 { return 8 * (1 + rng.Int64N(5000)) }), 60, 8),
		scattered("long among short", rng, lengthsOf(4001, func(i int) int64 { return max(8, int64(i/4000)*(200<<10)) }), 3, 8),
		scattered("some without bytes", rng, lengthsOf(3000, func(i int) int64 { return int64(i%3) * 4 }), 3, 4),
		scattered("triangle", rng, lengthsOf(130, func(i int) int64 { return int64(130-i) * 8 }), 1, 8),
	}
	for _, n := range []int64{1, 2, 4, 8, 12, 16, 24, 40, 48, 64, 100, 128, 256, 264, 1024, 1032, 5000} {
		lists = append(lists, scattered(fmt.Sprintf("equal %d", n), rng, lengthsOf(int(min(3000, 400_000/n)), always(n)), 5, n&-n))
	}
	twice := scattered("bytes twice", rng, lengthsOf(500, upTo(700)), 0, 1)
	for i := range twice.blocks {
		twice.blocks[i].Displacement = rng.Int64N(twice.bytes-700) - twice.origin
	}
	twice.twice = true
	far := scattered("far from the origin", rng, lengthsOf(100, upTo(300)), 3, 1)
	const away = 1 << 60
	for i := range far.blocks {
		far.blocks[i].Displacement -= away
	}
	far.origin += away
	return append(lists, twice, far)
}

// equalBlocks reports whether all blocks have one length.
func (l blockList) equalBlocks() bool {
	for _, b := range l.blocks {
		if b.Length != l.blocks[0].Length || b.Length == 0 {
			return false
		}
	}
	return true
}

// queue queues a copy that was made ready.
type queue func(s *streams.Stream) error

// listTable makes a copy of a list of blocks on a device ready, by one of the two engines.
type listTable func(p pack.Passage) (queue, error)

// blockTable is a table of the host bypass.
func blockTable(t *pack.BlockTable) listTable {
	return func(p pack.Passage) (queue, error) {
		k, err := t.Kernel(p)
		return func(s *streams.Stream) error { return s.Launch(k) }, err
	}
}

// unitTable is a table of work units.
func unitTable(t *pack.UnitTable) listTable {
	return func(p pack.Passage) (queue, error) {
		u, err := t.Copy(p)
		return func(s *streams.Stream) error { return u.Queue(s) }, err
	}
}

func (t listTable) pack(dst, src streams.Span, origin int64) (queue, error) {
	return t(pack.Passage{Packed: dst, Strided: src, Origin: origin})
}

func (t listTable) unpack(dst streams.Span, origin int64, src streams.Span) (queue, error) {
	return t(pack.Passage{Packed: src, Strided: dst, Origin: origin, Unpack: true})
}

// random returns so many bytes.
func random(n int64) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], rand.Uint64())
	b := make([]byte, n)
	rand.NewChaCha8(seed).Read(b)
	return b
}

// bytesAt returns memory of the device with the content.
func bytesAt(b *kerneltest.Bench, content []byte) *streams.Memory {
	b.T.Helper()
	m := kerneltest.Must(b.Device.Alloc(int64(len(content))))(b.T)
	b.T.Cleanup(func() { m.Close() })
	setBytes(b, m, content)
	return m
}

func setBytes(b *kerneltest.Bench, m *streams.Memory, content []byte) {
	b.T.Helper()
	putBytes(b, m.All(), content)
}

func bytesOf(b *kerneltest.Bench, m *streams.Memory) []byte {
	b.T.Helper()
	return getBytes(b, m.All())
}

// offsets are where the packed and the strided span begin in their memories, so that
// all alignments are met.
var offsets = [][2]int64{{0, 0}, {8, 0}, {4, 16}, {1, 3}, {128, 129}}

// checkList packs and unpacks a list, twice each, with its memories at some of the
// offsets, and compares all bytes with those of a plain loop.
func checkList(b *kerneltest.Bench, l blockList, table listTable, offsets ...[2]int64) {
	b.T.Helper()
	for _, at := range offsets {
		packed, strided := random(at[0]+l.size()+77), random(at[1]+l.bytes+77)
		buffer, memory := bytesAt(b, packed), bytesAt(b, strided)
		here, there := buffer.Span(at[0], l.size()), memory.Span(at[1], l.bytes)
		pack := kerneltest.Must(table.pack(here, there, l.origin))(b.T)
		b.Do(pack(b.Stream), pack(b.Stream))
		copyList(l, packed[at[0]:], strided[at[1]:], false)
		same(b, "packed", at, bytesOf(b, buffer), packed)
		if l.twice {
			continue
		}
		fresh := random(buffer.Size())
		setBytes(b, buffer, fresh)
		unpack := kerneltest.Must(table.unpack(there, l.origin, here))(b.T)
		b.Do(unpack(b.Stream), unpack(b.Stream))
		copyList(l, fresh[at[0]:], strided[at[1]:], true)
		same(b, "unpacked", at, bytesOf(b, memory), strided)
	}
}

// copyList is the definition of packing and unpacking.
func copyList(l blockList, packed, strided []byte, unpack bool) {
	for _, block := range l.blocks {
		n := block.Length
		if n == 0 {
			continue // it may lie anywhere
		}
		there := strided[l.origin+block.Displacement:][:n]
		if unpack {
			copy(there, packed)
		} else {
			copy(packed, there)
		}
		packed = packed[n:]
	}
}

// same ends the test at the first byte that differs.
func same(b *kerneltest.Bench, what string, offsets [2]int64, got, want []byte) {
	b.T.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := range want {
		if got[i] != want[i] {
			b.T.Fatalf("%s at offsets %v: byte %d is %d, not %d", what, offsets, i, got[i], want[i])
		}
	}
}

// offsetsFor returns some offsets for the n-th way of an engine: all of them for the
// first.
func offsetsFor(n int) [][2]int64 {
	if n == 0 {
		return offsets
	}
	return offsets[n%len(offsets):][:1]
}

// eachList runs f with each list on each backend.
func eachList(t *testing.T, f func(b *kerneltest.Bench, l blockList)) {
	lists := blockLists()
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		for _, l := range lists {
			t.Run(l.name, func(t *testing.T) { f(kerneltest.NewBench(t, s), l) })
		}
	})
}

// checkListRefusals looks at what no engine takes.
func checkListRefusals(t *testing.T, b *kerneltest.Bench, table func(list []pack.Block) (listTable, error)) {
	for name, list := range map[string][]pack.Block{
		"a negative length":           {{Displacement: 0, Length: 8}, {Displacement: 8, Length: -1}},
		"an end beyond 64 bits":       {{Displacement: math.MaxInt64 - 3, Length: 8}},
		"too many bytes in one block": {{Displacement: 0, Length: 1 << 44}},
		"too many bytes in all":       {{Displacement: 0, Length: 1<<44 - 1}, {Displacement: 0, Length: 1}},
	} {
		if _, err := table(list); err == nil {
			t.Errorf("%s was accepted", name)
		} else {
			t.Log(name, "-", err)
		}
	}
	memory := kerneltest.Must(b.Device.Alloc(1000))(t)
	some := kerneltest.Must(table([]pack.Block{{Displacement: 100, Length: 50}, {Displacement: -100, Length: 10}}))(t)
	huge := kerneltest.Must(table([]pack.Block{{Displacement: math.MaxInt64 - 100, Length: 10}, {Displacement: math.MinInt64, Length: 10}}))(t)
	for name, c := range map[string]struct {
		table           listTable
		packed, strided streams.Span
		origin          int64
	}{
		"a buffer too short":         {some, memory.Span(0, 59), memory.Span(100, 900), 200},
		"a block before the start":   {some, memory.Span(0, 60), memory.Span(100, 900), 99},
		"a block beyond the end":     {some, memory.Span(0, 60), memory.Span(100, 900), 751},
		"an origin beyond 64 bits":   {huge, memory.Span(0, 60), memory.Span(100, 900), 1000},
		"an origin below 64 bits":    {huge, memory.Span(0, 60), memory.Span(100, 900), -1},
		"a span beyond its memory":   {some, memory.Span(0, 60), memory.Span(100, 901), 200},
		"a buffer beyond its memory": {some, memory.Span(990, 60), memory.Span(100, 900), 200},
		"no buffer":                  {some, streams.Span{}, memory.Span(100, 900), 200},
		"no memory":                  {some, memory.Span(0, 60), streams.Span{}, 200},
		"a span before its memory":   {some, memory.Span(0, 60), streams.Span{Memory: memory, Offset: -1, Length: 950}, 200},
	} {
		if _, err := c.table.pack(c.packed, c.strided, c.origin); err == nil {
			t.Errorf("pack: %s was accepted", name)
		} else {
			t.Log(name, "-", err)
		}
		if _, err := c.table.unpack(c.strided, c.origin, c.packed); err == nil {
			t.Errorf("unpack: %s was accepted", name)
		}
	}
	if _, err := some.pack(memory.Span(0, 60), memory.Span(100, 900), 100); err != nil {
		t.Errorf("what just fits was refused: %v", err)
	}
	if _, err := some.pack(memory.Span(0, 60), memory.Span(100, 900), 750); err != nil {
		t.Errorf("what just fits was refused: %v", err)
	}
}

// checkZeroCopy packs into pinned memory and into that of another device.
func checkZeroCopy(t *testing.T, table func(b *kerneltest.Bench, list []pack.Block) listTable) {
	rng := rand.New(rand.NewPCG(3, 4))
	l := scattered("", rng, lengthsOf(700, func(int) int64 { return 1 + rng.Int64N(300) }), 9, 1)
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		strided, packed := random(l.bytes), make([]byte, l.size())
		memory := bytesAt(b, strided)
		copyList(l, packed, strided, false)
		buffers := []*streams.Memory{kerneltest.Must(b.Device.AllocPinned(l.size()))(t)}
		if len(s.Devices) > 1 {
			peer := s.Devices[1]
			if ok := kerneltest.Must(b.Device.CanAccess(peer))(t); ok {
				b.Do(b.Device.EnablePeer(peer))
				buffers = append(buffers, kerneltest.Must(peer.Alloc(l.size()))(t))
			}
		}
		for _, buffer := range buffers {
			on := table(b, l.blocks)
			b.Do(kerneltest.Must(on.pack(buffer.All(), memory.All(), l.origin))(t)(b.Stream))
			same(b, "packed", [2]int64{}, bytesOf(b, buffer), packed)
			setBytes(b, memory, make([]byte, l.bytes))
			b.Do(kerneltest.Must(on.unpack(memory.All(), l.origin, buffer.All()))(t)(b.Stream))
			want := make([]byte, l.bytes)
			copyList(l, packed, want, true)
			same(b, "unpacked", [2]int64{}, bytesOf(b, memory), want)
			setBytes(b, memory, strided)
		}
	})
}

// checkAllocations queues a copy again and again.
func checkAllocations(t *testing.T, table func(b *kerneltest.Bench, list []pack.Block) listTable) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	l := scattered("", rand.New(rand.NewPCG(5, 6)), lengthsOf(700, func(i int) int64 { return int64(i%90)*8 + 8 }), 9, 1)
	memory, buffer := bytesAt(b, random(l.bytes)), bytesAt(b, random(l.size()))
	pack := kerneltest.Must(table(b, l.blocks).pack(buffer.All(), memory.All(), l.origin))(t)
	b.Do(pack(b.Stream))
	b.Do(pack(b.Stream))
	var err error
	step := func() {
		if err == nil {
			err = pack(b.Stream)
		}
		if err == nil {
			err = b.Stream.Sync(kerneltest.Limit)
		}
	}
	if n := testing.AllocsPerRun(100, step); n > 0 || err != nil {
		t.Errorf("%v allocations each time: %v", n, err)
	}
}
