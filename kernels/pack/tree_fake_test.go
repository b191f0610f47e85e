//go:build linux && cgo

package pack

import (
	"testing"
	"unsafe"

	"github.com/halox/halox/internal/cuda/cudafake"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/internal/launch"
	"github.com/halox/halox/streams"
)

// fakeTreePacker returns a tree packer of a fake GPU, whose kernels do nothing.
func fakeTreePacker(t *testing.T) (*cudafake.Fake, *TreePacker) {
	t.Helper()
	fake, device := kerneltest.FakeGPU(t)
	f := [2]streams.Function(fakeFunctions(t, device, int(unsafe.Sizeof(treeArgs{})), "narrow", "wide"))
	return fake, &TreePacker{device: device, pack: f, unpack: f}
}

// columnTree is so many words of 8 bytes, 16 bytes apart.
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
	table.tree.Hi, table.tree.Size = min(tree.Hi, 1<<14), min(tree.Size, 1<<14) // the fake touches nothing
	l.Strided, l.Packed = memory.Span(0, 1<<15), memory.Span(1<<15+l.Packed.Offset, 1<<14)
	k := test.Must(table.Kernel(l, blocks))(t)
	defer k.Close()
	test.Check(t, stream.Launch(k))
}

// What reaches a GPU: the nodes' shared memory, blocks by the primitives and up to the limit, ids as wide as needed,
// and whole words only where both addresses allow them. Nothing stays behind.
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
		"small":                {100, 0, 0, 0, "narrow", 1, 8},
		"several blocks":       {1000, 0, 0, 0, "narrow", 4, 8},
		"a limit":              {1000, 0, 0, 2, "narrow", 2, 8},
		"a limit out of reach": {1000, 0, 0, 20, "narrow", 4, 8},
		"the most narrow ids":  {1<<31 - 1, 0, 0, 0, "narrow", 4096, 8},
		"wide ids":             {1 << 31, 0, 0, 3, "wide", 3, 8},
		"an odd origin":        {100, 4, 0, 0, "narrow", 1, 0},
		"an odd buffer":        {100, 8, 1, 0, "narrow", 1, 0},
	} {
		launchTree(t, m, columnTree(c.words), Passage{Origin: c.origin, Packed: streams.Span{Offset: c.packed}}, c.most)
		launches := fake.Launches()
		got := launches[len(launches)-1]
		arg := *(*treeArgs)(unsafe.Pointer(unsafe.SliceData(got.Arg)))
		if got.Kernel != c.kernel || got.Grid != [3]uint32{c.blocks, 1, 1} || got.Block != [3]uint32{launch.BlockSize, 1, 1} || got.Shared != 104 {
			t.Errorf("%s: %+v", name, got)
		}
		if arg.word != c.word || arg.primitives != c.words || arg.words != 13 || arg.nodes == 0 || arg.lookAside == 0 {
			t.Errorf("%s: %+v", name, arg)
		}
	}
	if live := fake.Live(); live != before {
		t.Errorf("left behind: %+v, not %+v", live, before)
	}
}
