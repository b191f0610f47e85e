//go:build linux && cgo

package pack

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/halox/halox/internal/cuda"
	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// fakeFunctions returns kernels of a fake GPU, which do nothing.
func fakeFunctions(t *testing.T, d *streams.Device, bytes int, names ...string) (found []streams.Function) {
	t.Helper()
	sizes := map[string]int{}
	for _, name := range names {
		sizes[name] = bytes
	}
	module := test.Must(d.LoadModule(cudafake.Image(sizes)))(t)
	for _, name := range names {
		found = append(found, test.Must(module.Function(name))(t))
	}
	return found
}

// fakeList is a list, and memory of a fake GPU for it.
type fakeList struct {
	list            []Block
	strided, packed *streams.Memory
	stream          *streams.Stream
}

func newFakeList(t *testing.T, d *streams.Device, blocks int) fakeList {
	t.Helper()
	f := fakeList{
		list:    make([]Block, blocks),
		strided: test.Must(d.Alloc(int64(blocks) * 3000))(t),
		packed:  test.Must(d.Alloc(int64(blocks) * 3000))(t),
		stream:  test.Must(d.NewStream(streams.Normal))(t),
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range f.list {
		f.list[i] = Block{int64(i) * 3000, 1 + rng.Int64N(3000)}
	}
	return f
}

// fakeUnitPacker returns a packer of a fake GPU, whose kernel does nothing.
func fakeUnitPacker(t *testing.T) (*cudafake.Fake, *UnitPacker) {
	t.Helper()
	fake, device := kerneltest.FakeGPU(t)
	units := fakeFunctions(t, device, int(unsafe.Sizeof(unitsArgs{})), "units")[0]
	p := test.Must(newUnitPacker(device, units))(t)
	t.Cleanup(func() { p.Close() })
	return fake, p
}

// packUnits builds a table, packs it twice and closes everything.
func packUnits(p *UnitPacker, f fakeList, o UnitOptions, look func(*UnitTable)) (err error) {
	var open streams.Resources
	defer func() { // errors of Close must not hide earlier errors
		if closed := open.Close(); err == nil {
			err = closed
		}
	}()
	table, err := p.Table(f.list, o)
	if err != nil {
		return err
	}
	open.Add(table)
	pack, err := table.Copy(Passage{Packed: f.packed.All(), Strided: f.strided.All()})
	if err != nil {
		return err
	}
	open.Add(pack)
	for range 2 {
		if err := pack.Queue(f.stream); err != nil {
			return err
		}
	}
	if err := f.stream.Sync(time.Minute); err != nil {
		return err
	}
	look(table)
	return nil
}

// The first copy of a table sends it to the GPU in parts, each with a launch. The second is a single launch.
func TestUnitsReachGPU(t *testing.T) {
	fake, p := fakeUnitPacker(t)
	f := newFakeList(t, p.device, 1000)
	before := fake.Live()
	const part = 100
	err := packUnits(p, f, UnitOptions{Part: part, MaxBlocks: 7}, func(table *UnitTable) {
		c := cutter{list: f.list, most: 1024}
		units, shorts := c.cut(make([]unit, 0, 10_000), nil)
		first := int64(0)
		launches := fake.Launches()
		for i, l := range launches {
			arg := *(*unitsArgs)(unsafe.Pointer(unsafe.SliceData(l.Arg)))
			if i == len(launches)-1 {
				if first != int64(len(units)) {
					t.Errorf("%d of %d units in parts", first, len(units))
				}
				first = 0
			}
			if want := min(int64(len(units))-first, part); arg.first != first || i < len(launches)-1 && arg.count != want {
				t.Errorf("launch %d: got %d units from %d, want %d from %d", i, arg.count, arg.first, want, first)
			}
			if arg.packed != f.packed.Address() || arg.strided != f.strided.Address() || l.Grid != [3]uint32{7, 1, 1} {
				t.Errorf("launch %d: got %+v with %+v", i, l, arg)
			}
			first += arg.count
		}
		if first != int64(len(units)) || len(launches) != (len(units)+part-1)/part+1 {
			t.Errorf("%d launches: the last must have all units, got %d, want %d", len(launches), first, len(units))
		}
		if !slices.Equal(units, download[unit](t, f.stream, table.units)) || !slices.Equal(shorts, download[short](t, f.stream, table.shorts)) {
			t.Error("the table must equal the units that were cut")
		}
	})
	test.Check(t, err)
	if live := fake.Live(); live != before {
		t.Errorf("objects: got %+v, want %+v", live, before)
	}
}

// download returns the values in memory of a GPU.
func download[T any](t *testing.T, s *streams.Stream, m *streams.Memory) []T {
	t.Helper()
	return kerneltest.Get[T](&kerneltest.Bench{T: t, Device: s.Device(), Stream: s}, m.All())
}

// Whichever call fails, the error is returned and no objects are leaked.
func TestUnitsThatFailOnGPU(t *testing.T) {
	fake, p := fakeUnitPacker(t)
	f := newFakeList(t, p.device, 300)
	before := fake.Live()
	for call, times := range map[string]int{ // number of calls by a table
		"cuMemAlloc": 2, "cuEventCreate": 1, "cuMemcpyHtoDAsync": 3, "cuEventRecord": 3, "cuLaunchKernelEx": 3,
	} {
		for skip := range times {
			fake.Fail(call, int(cuda.CodeOutOfMemory), skip, 1)
			if err := packUnits(p, f, UnitOptions{Part: 100}, func(*UnitTable) {}); err == nil {
				t.Errorf("%s failed after %d calls: got no error", call, skip)
			}
			fake.Fail(call, 0, 0, 0)
			if live := fake.Live(); live != before {
				t.Fatalf("%s failed after %d calls: objects: got %+v, want %+v", call, skip, live, before)
			}
		}
	}
}

// The arguments of the kernels for a list of blocks, by options.
func TestBlocksReachGPU(t *testing.T) {
	fake, device := kerneltest.FakeGPU(t)
	found := fakeFunctions(t, device, int(unsafe.Sizeof(blocksArgs{})), "listed_blocks", "equal_blocks")
	p := &BlockPacker{device: device, listed: found[0], equal: found[1]}
	f := newFakeList(t, device, 300)
	equal := slices.Clone(f.list)
	for i := range equal {
		equal[i].Length = 1000
	}
	before := fake.Live()
	for name, c := range map[string]struct {
		list       []Block
		options    BlockOptions
		kernel     string
		sequential int64
		grid       uint32
	}{
		"default":    {f.list, BlockOptions{MaxBlocks: 5}, "listed_blocks", 16, 5},
		"sequential": {f.list, BlockOptions{MaxBlocks: 5, Scan: Sequential, Pinned: true}, "listed_blocks", maxChunkBlocks, 5},
		"parallel":   {f.list, BlockOptions{Scan: Parallel, Chunk: 1 << 30}, "listed_blocks", 0, 1},
		"equal":      {equal, BlockOptions{Equal: true, Chunk: 128 << 10}, "equal_blocks", 16, 3},
	} {
		table := test.Must(p.Table(c.list, c.options))(t)
		k := test.Must(table.Kernel(Passage{Packed: f.packed.All(), Strided: f.strided.All(), Unpack: true}))(t)
		test.Check(t, f.stream.Launch(k))
		launches := fake.Launches()
		got := launches[len(launches)-1]
		arg := *(*blocksArgs)(unsafe.Pointer(unsafe.SliceData(got.Arg)))
		if got.Kernel != c.kernel || got.Grid != [3]uint32{c.grid, 1, 1} || arg.sequential != c.sequential || arg.unpack != 1 || !got.Early {
			t.Errorf("%s: got %+v with %+v", name, got, arg)
		}
		if c.options.Equal != (arg.length == 1000) || c.options.Equal != (arg.chunks == 0) || arg.bytes != table.extent.size || arg.list == 0 {
			t.Errorf("%s: got %+v", name, arg)
		}
		test.Check(t, errors.Join(k.Close(), table.Close()))
		if live := fake.Live(); live != before {
			t.Errorf("%s: objects: got %+v, want %+v", name, live, before)
		}
	}
}

// fakeTreePacker returns a tree packer of a fake GPU, whose kernels do nothing.
func fakeTreePacker(t *testing.T) (*cudafake.Fake, *TreePacker) {
	t.Helper()
	fake, device := kerneltest.FakeGPU(t)
	f := [2]streams.Function(fakeFunctions(t, device, int(unsafe.Sizeof(treeArgs{})), "narrow", "wide"))
	return fake, &TreePacker{device: device, pack: f, unpack: f}
}

// columnTree is a tree of the given number of 8-byte words at a distance of 16 bytes.
func columnTree(words int64) Tree {
	leaf := TreeNode{Kind: ContiguousNode, Primitives: 1, Size: 8, Extent: 16, Unit: 8, MemoryAlignment: 8, PackAlignment: 8}
	return Tree{Nodes: []TreeNode{leaf}, LookAside: []int64{1}, Primitives: words, Size: 8 * words, Hi: 16*words - 8, Word: 8}
}

// launchTree launches a tree with the shape of a column, bound to any memory, on the fake.
func launchTree(t *testing.T, m *TreePacker, tree Tree, l Passage, blocks int) {
	t.Helper()
	stream := test.Must(m.device.NewStream(streams.Normal))(t)
	defer stream.Close()
	memory := test.Must(m.device.Alloc(1 << 16))(t)
	defer memory.Close()
	table := test.Must(m.Table(tree))(t)
	defer table.Close()
	table.tree.Hi, table.tree.Size = min(tree.Hi, 1<<14), min(tree.Size, 1<<14) // the fake does not access memory
	l.Strided, l.Packed = memory.Span(0, 1<<15), memory.Span(1<<15+l.Packed.Offset, 1<<14)
	k := test.Must(table.Kernel(l, blocks))(t)
	defer k.Close()
	test.Check(t, stream.Launch(k))
}

// The launches of trees: shared memory for the nodes, blocks by the primitives and up to the limit, ids as wide as
// needed, and whole words only if both addresses allow them. No objects are leaked.
func TestTreeLaunchOnGPU(t *testing.T) {
	fake, m := fakeTreePacker(t)
	before := fake.Live()
	for name, c := range map[string]struct {
		words, origin, packed int64
		most                  int
		kernel                string
		blocks                uint32
		word                  int64
	}{
		"small":                       {100, 0, 0, 0, "narrow", 1, 8},
		"several blocks":              {1000, 0, 0, 0, "narrow", 4, 8},
		"a limit":                     {1000, 0, 0, 2, "narrow", 2, 8},
		"a limit that does not apply": {1000, 0, 0, 20, "narrow", 4, 8},
		"the most narrow ids":         {1<<31 - 1, 0, 0, 0, "narrow", 4096, 8},
		"wide ids":                    {1 << 31, 0, 0, 3, "wide", 3, 8},
		"an odd origin":               {100, 4, 0, 0, "narrow", 1, 0},
		"an odd buffer":               {100, 8, 1, 0, "narrow", 1, 0},
	} {
		launchTree(t, m, columnTree(c.words), Passage{Origin: c.origin, Packed: streams.Span{Offset: c.packed}}, c.most)
		launches := fake.Launches()
		got := launches[len(launches)-1]
		arg := *(*treeArgs)(unsafe.Pointer(unsafe.SliceData(got.Arg)))
		if got.Kernel != c.kernel || got.Grid != [3]uint32{c.blocks, 1, 1} || got.Block != [3]uint32{launch.BlockSize, 1, 1} || got.Shared != 104 {
			t.Errorf("%s: got %+v", name, got)
		}
		if arg.word != c.word || arg.primitives != c.words || arg.words != 13 || arg.nodes == 0 || arg.lookAside == 0 {
			t.Errorf("%s: got %+v", name, arg)
		}
	}
	if live := fake.Live(); live != before {
		t.Errorf("objects: got %+v, want %+v", live, before)
	}
}
