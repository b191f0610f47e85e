package pack_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// blockList is a list of blocks in memory of the given bytes, with displacement 0 at byte origin.
type blockList struct {
	name   string
	blocks []pack.Block
	origin int64
	bytes  int64
	twice  bool // some bytes occur twice, so it can only be packed
}

// size returns the packed bytes.
func (l blockList) size() (n int64) {
	for _, b := range l.blocks {
		n += b.Length
	}
	return n
}

// scattered places blocks of the given lengths in memory in random order, with gaps of 0 to gap times align bytes,
// and the origin in between.
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

// lengthsOf returns n lengths.
func lengthsOf(n int, length func(i int) int64) []int64 {
	lengths := make([]int64, n)
	for i := range lengths {
		lengths[i] = length(i)
	}
	return lengths
}

// blockLists returns lists that cover all branches of the kernels.
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

// queue queues a prepared copy.
type queue func(s *streams.Stream) error

// listTable prepares a copy of a list of blocks on a device, by one of the two engines.
type listTable func(p pack.Passage) (queue, error)

func (t listTable) pack(dst, src streams.Span, origin int64) (queue, error) {
	return t(pack.Passage{Packed: dst, Strided: src, Origin: origin})
}

func (t listTable) unpack(dst streams.Span, origin int64, src streams.Span) (queue, error) {
	return t(pack.Passage{Packed: src, Strided: dst, Origin: origin, Unpack: true})
}

// makeTable builds the table of a list, which is closed at the end of the test.
type makeTable func(b *kerneltest.Bench, list []pack.Block) (listTable, error)

// byBlocks is the host bypass engine.
func byBlocks(o pack.BlockOptions) makeTable {
	return func(b *kerneltest.Bench, list []pack.Block) (listTable, error) {
		table, err := test.Must(pack.NewBlockPacker(b.Compiler, b.Device))(b.T).Table(list, o)
		if err != nil {
			return nil, err
		}
		b.T.Cleanup(func() { table.Close() })
		return func(p pack.Passage) (queue, error) {
			k, err := table.Kernel(p)
			return func(s *streams.Stream) error { return s.Launch(k) }, err
		}, nil
	}
}

// byUnits is the work unit engine.
func byUnits(o pack.UnitOptions) makeTable {
	return func(b *kerneltest.Bench, list []pack.Block) (listTable, error) {
		packer := test.Must(pack.NewUnitPacker(b.Compiler, b.Device))(b.T)
		b.T.Cleanup(func() { packer.Close() })
		table, err := packer.Table(list, o)
		if err != nil {
			return nil, err
		}
		b.T.Cleanup(func() { table.Close() })
		return func(p pack.Passage) (queue, error) {
			u, err := table.Copy(p)
			return func(s *streams.Stream) error { return u.Queue(s) }, err
		}, nil
	}
}

// listEngines are both engines with default options.
var listEngines = map[string]makeTable{"blocks": byBlocks(pack.BlockOptions{}), "units": byUnits(pack.UnitOptions{})}

// eachListEngine runs f with each engine on each backend.
func eachListEngine(t *testing.T, devices int, f func(b *kerneltest.Bench, s *testdevices.Set, table makeTable)) {
	testdevices.EachKernel(t, devices, func(t *testing.T, s *testdevices.Set) {
		for name, table := range listEngines {
			t.Run(name, func(t *testing.T) { f(kerneltest.NewBench(t, s), s, table) })
		}
	})
}

// listWay is an engine with options, and with those for blocks of equal length.
type listWay struct {
	name       string
	any, equal makeTable
}

func blocksWay(name string, o pack.BlockOptions) listWay {
	equal := o
	equal.Equal = true
	return listWay{name, byBlocks(o), byBlocks(equal)}
}

func TestBlocks(t *testing.T) {
	checkLists(t, 12,
		blocksWay("default", pack.BlockOptions{}),
		blocksWay("in pinned memory", pack.BlockOptions{Pinned: true}),
		blocksWay("sequential scan", pack.BlockOptions{Scan: pack.Sequential}),
		blocksWay("parallel scan", pack.BlockOptions{Scan: pack.Parallel}),
		blocksWay("parallel scan, small chunks", pack.BlockOptions{Scan: pack.Parallel, Chunk: 256, MaxBlocks: 3}),
		blocksWay("small chunks", pack.BlockOptions{Chunk: 128}),
		blocksWay("large chunks", pack.BlockOptions{Chunk: 64 << 10}),
		blocksWay("a thread per block", pack.BlockOptions{Lanes: 1}),
		blocksWay("a warp per block", pack.BlockOptions{Lanes: 32}),
		blocksWay("all lanes on a block", pack.BlockOptions{Lanes: 256, Chunk: 1152}),
		blocksWay("one thread block", pack.BlockOptions{MaxBlocks: 1}),
		blocksWay("two thread blocks", pack.BlockOptions{MaxBlocks: 2, Pinned: true}),
	)
}

func TestUnits(t *testing.T) {
	checkLists(t, 10,
		listWay{name: "default", any: byUnits(pack.UnitOptions{})},
		listWay{name: "1 KiB", any: byUnits(pack.UnitOptions{Unit: 1024})},
		listWay{name: "2 KiB", any: byUnits(pack.UnitOptions{Unit: 2048})},
		listWay{name: "4 KiB", any: byUnits(pack.UnitOptions{Unit: 4096})},
		listWay{name: "parts of 7", any: byUnits(pack.UnitOptions{Part: 7})},
		listWay{name: "a unit per part", any: byUnits(pack.UnitOptions{Unit: 4096, Part: 1})},
		listWay{name: "one thread block", any: byUnits(pack.UnitOptions{MaxBlocks: 1, Part: 100})},
	)
}

// checkLists checks each list on each backend, with some of the engines at a time: on CPUs with one of onCPU.
func checkLists(t *testing.T, onCPU int, ways ...listWay) {
	lists := blockLists()
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		every := 2
		if testdevices.OnCPU(s.Devices[0]) {
			every = onCPU
		}
		for _, l := range lists {
			for i, w := range ways {
				if !testdevices.Turn(i+len(l.blocks), every, 2) {
					continue
				}
				t.Run(l.name+"/"+w.name, func(t *testing.T) {
					b := kerneltest.NewBench(t, s)
					checkList(b, l, w.any, offsetsFor(i)...)
					if w.equal != nil && l.equalBlocks() {
						checkList(b, l, w.equal, offsetsFor(i)...)
					}
				})
			}
		}
	})
}

// random returns n random bytes.
func random(n int64) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], rand.Uint64())
	b := make([]byte, n)
	rand.NewChaCha8(seed).Read(b)
	return b
}

// offsets are the offsets of the packed and the strided span in their memories, to cover all alignments.
var offsets = [][2]int64{{0, 0}, {8, 0}, {4, 16}, {1, 3}, {128, 129}}

// checkList packs and unpacks a list, twice each, with its memories at some of the offsets, and compares all bytes
// with those of a plain loop.
func checkList(b *kerneltest.Bench, l blockList, of makeTable, offsets ...[2]int64) {
	b.T.Helper()
	table := test.Must(of(b, l.blocks))(b.T)
	for _, at := range offsets {
		packed, strided := random(at[0]+l.size()+77), random(at[1]+l.bytes+77)
		buffer, memory := kerneltest.Upload(b, packed), kerneltest.Upload(b, strided)
		here, there := buffer.Memory.Span(at[0], l.size()), memory.Memory.Span(at[1], l.bytes)
		pack := test.Must(table.pack(here, there, l.origin))(b.T)
		b.Do(pack(b.Stream), pack(b.Stream))
		copyList(l, packed[at[0]:], strided[at[1]:], false)
		holds(b, buffer, packed, "packed at offsets %v", at)
		if l.twice {
			continue
		}
		fresh := random(buffer.Length)
		kerneltest.Put(b, buffer, fresh)
		unpack := test.Must(table.unpack(there, l.origin, here))(b.T)
		b.Do(unpack(b.Stream), unpack(b.Stream))
		copyList(l, fresh[at[0]:], strided[at[1]:], true)
		holds(b, memory, strided, "unpacked at offsets %v", at)
	}
}

// copyList is the definition of packing and unpacking.
func copyList(l blockList, packed, strided []byte, unpack bool) {
	for _, block := range l.blocks {
		n := block.Length
		if n == 0 {
			continue // its displacement may be anywhere
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

// holds ends the test at the first element in memory that differs from want.
func holds[T comparable](b *kerneltest.Bench, memory streams.Span, want []T, what string, args ...any) {
	b.T.Helper()
	for i, got := range kerneltest.Get[T](b, memory) {
		if got != want[i] {
			b.T.Fatalf("%s: element %d: got %v, want %v", fmt.Sprintf(what, args...), i, got, want[i])
		}
	}
}

// offsetsFor returns some offsets for the n-th variant of an engine: all of them for the first.
func offsetsFor(n int) [][2]int64 {
	if n == 0 {
		return offsets
	}
	return offsets[n%len(offsets):][:1]
}

// An engine rejects invalid lists, options and memories.
func TestListErrors(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	refused := func(name string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	two := []pack.Block{{Length: 8}, {Length: 9}}
	for name, table := range map[string]makeTable{
		"unknown scan":        byBlocks(pack.BlockOptions{Scan: "quick"}),
		"odd chunks":          byBlocks(pack.BlockOptions{Chunk: 1000}),
		"huge chunks":         byBlocks(pack.BlockOptions{Chunk: 2 << 30}),
		"three lanes":         byBlocks(pack.BlockOptions{Lanes: 3}),
		"512 lanes":           byBlocks(pack.BlockOptions{Lanes: 512}),
		"-1 thread blocks":    byBlocks(pack.BlockOptions{MaxBlocks: -1}),
		"equal blocks":        byBlocks(pack.BlockOptions{Equal: true}),
		"units of 3 KiB":      byUnits(pack.UnitOptions{Unit: 3072}),
		"huge parts":          byUnits(pack.UnitOptions{Part: 5000}),
		"-1 units per part":   byUnits(pack.UnitOptions{Part: -1}),
		"-1 blocks for units": byUnits(pack.UnitOptions{MaxBlocks: -1}),
	} {
		_, err := table(b, two)
		refused(name, err)
	}
	memory := test.Must(b.Device.Alloc(1000))(t)
	for engine, table := range listEngines {
		for name, list := range map[string][]pack.Block{
			"a negative length":           {{Displacement: 0, Length: 8}, {Displacement: 8, Length: -1}},
			"an end beyond 64 bits":       {{Displacement: math.MaxInt64 - 3, Length: 8}},
			"too many bytes in one block": {{Displacement: 0, Length: 1 << 44}},
			"too many bytes in all":       {{Displacement: 0, Length: 1<<44 - 1}, {Displacement: 0, Length: 1}},
		} {
			_, err := table(b, list)
			refused(engine+", "+name, err)
		}
		some := test.Must(table(b, []pack.Block{{Displacement: 100, Length: 50}, {Displacement: -100, Length: 10}}))(t)
		huge := test.Must(table(b, []pack.Block{{Displacement: math.MaxInt64 - 100, Length: 10}, {Displacement: math.MinInt64, Length: 10}}))(t)
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
			_, err := c.table.pack(c.packed, c.strided, c.origin)
			refused(engine+", pack: "+name, err)
			_, err = c.table.unpack(c.strided, c.origin, c.packed)
			refused(engine+", unpack: "+name, err)
		}
		for _, origin := range []int64{100, 750} {
			test.Must(some.pack(memory.Span(0, 60), memory.Span(100, 900), origin))(t) // just fits
		}
	}
}

// The engines pack into pinned memory and into that of another device.
func TestListsToPinnedAndPeer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	l := scattered("", rng, lengthsOf(700, func(int) int64 { return 1 + rng.Int64N(300) }), 9, 1)
	eachListEngine(t, 2, func(b *kerneltest.Bench, s *testdevices.Set, of makeTable) {
		on := test.Must(of(b, l.blocks))(b.T)
		strided, packed, want := random(l.bytes), make([]byte, l.size()), make([]byte, l.bytes)
		copyList(l, packed, strided, false)
		copyList(l, packed, want, true)
		for _, where := range []string{"pinned", "peer"} {
			b.T.Run(where, func(t *testing.T) {
				b := kerneltest.NewBench(t, s)
				memory := kerneltest.Upload(b, strided)
				buffer := test.Must(memoryOf(t, s, where)(l.size()))(t)
				b.Do(test.Must(on.pack(buffer.All(), memory, l.origin))(t)(b.Stream))
				holds(b, buffer.All(), packed, "packed")
				kerneltest.Put(b, memory, make([]byte, l.bytes))
				b.Do(test.Must(on.unpack(memory, l.origin, buffer.All()))(t)(b.Stream))
				holds(b, memory, want, "unpacked")
			})
		}
	})
}

// Queuing a copy again does not allocate.
func TestListsDoNotAllocate(t *testing.T) {
	b := kerneltest.NewBench(t, testdevices.Host(t, 1))
	l := scattered("", rand.New(rand.NewPCG(5, 6)), lengthsOf(700, func(i int) int64 { return int64(i%90)*8 + 8 }), 9, 1)
	memory, buffer := kerneltest.Upload(b, random(l.bytes)), kerneltest.Upload(b, random(l.size()))
	for name, of := range listEngines {
		pack := test.Must(test.Must(of(b, l.blocks))(t).pack(buffer, memory, l.origin))(t)
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
			t.Errorf("%s: got %v allocations: %v", name, n, err)
		}
	}
}

// While one copy cuts the list on one stream, copies of the same table on other streams wait.
func TestUnitsOnSeveralStreams(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	l := scattered("", rng, lengthsOf(5000, func(int) int64 { return 1 + rng.Int64N(500) }), 9, 1)
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		table := test.Must(byUnits(pack.UnitOptions{Part: 50})(b, l.blocks))(t)
		strided, packed := random(l.bytes), make([]byte, l.size())
		memory := kerneltest.Upload(b, strided)
		copyList(l, packed, strided, false)
		const many = 4
		var buffers []streams.Span
		errs := make(chan error, many)
		for range many {
			buffer := kerneltest.Upload(b, random(l.size()))
			buffers = append(buffers, buffer)
			stream := test.Must(b.Device.NewStream(streams.Normal))(t)
			pack := test.Must(table.pack(buffer, memory, l.origin))(t)
			go func() {
				err := pack(stream)
				if err == nil {
					err = stream.Sync(kerneltest.Limit)
				}
				errs <- err
			}()
		}
		for range many {
			b.Do(<-errs)
		}
		for _, buffer := range buffers {
			holds(b, buffer, packed, "packed")
		}
	})
}

func TestUnitsOnTheStreamOfAnotherDevice(t *testing.T) {
	set := testdevices.Host(t, 2)
	b := kerneltest.NewBench(t, set)
	memory := test.Must(b.Device.Alloc(16))(t)
	table := test.Must(byUnits(pack.UnitOptions{})(b, []pack.Block{{Length: 8}}))(t)
	pack := test.Must(table.pack(memory.Span(0, 8), memory.Span(8, 8), 0))(t)
	if err := pack(test.Must(set.Devices[1].NewStream(streams.Normal))(t)); err == nil {
		t.Error("a stream of another device: got no error")
	}
}
