package pack_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/internal/kerneltest"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

// spot is the location of a primitive.
type spot struct{ displacement, offset, size int64 }

// leafOf returns a leaf with aligned words.
func leafOf(kind pack.NodeKind, word int64, n pack.TreeNode) pack.TreeNode {
	n.Kind, n.Primitives, n.Size, n.Unit = kind, 1, word, int(word)
	n.MemoryAlignment, n.PackAlignment = int(word), int(word)
	return n
}

// vectorTree has 6 blocks of 2 words of 8 bytes, at a distance of 40 bytes, in reverse order, from displacement
// 200.
func vectorTree() (pack.Tree, []spot) {
	var want []spot
	for block := range int64(6) {
		for i := range int64(2) {
			want = append(want, spot{200 - 40*block + 8*i, 16*block + 8*i, 8})
		}
	}
	leaf := leafOf(pack.VectorNode, 8, pack.TreeNode{Extent: 8, BlockLength: 2, Stride: -40})
	return pack.Tree{Nodes: []pack.TreeNode{leaf}, Base: 200, Primitives: 12, Size: 96, Lo: 0, Hi: 216, Word: 8}, want
}

// mixedTree has two elements, at a distance of 512 bytes, of a struct of all other kinds: a box of 3 x 2 x 2 words
// of 4 bytes, blocks of 1, 3 and 2 bytes, and two pairs of words of 16 bytes, each as an indexed block and those
// contiguous, which are moved in pieces. An element has 118 packed bytes.
func mixedTree() (pack.Tree, []spot) {
	var aside []int64
	place := func() int64 { return int64(len(aside)) }
	box := leafOf(pack.SubarrayNode, 4, pack.TreeNode{Table: place(), Entries: 3})
	aside = pack.AppendDims(aside, pack.TreeDim{Count: 3, Stride: 4}, pack.TreeDim{Count: 2, Stride: 24}, pack.TreeDim{Count: 2, Stride: -96})
	box.PackAlignment = 2
	list := leafOf(pack.IndexedNode, 1, pack.TreeNode{Extent: 2, Table: place(), Entries: 3})
	aside = pack.AppendBlocks(aside, []int64{1, 3, 2}, []int64{20, 0, 9})
	pairs := pack.TreeNode{Kind: pack.IndexedBlockNode, Primitives: 2, Size: 32, Extent: 40, BlockLength: 1, Table: place(), Child: 5}
	pairs.Entries = 2
	aside = append(aside, 0, 64)
	words := leafOf(pack.ContiguousNode, 16, pack.TreeNode{Extent: 16})
	words.MemoryAlignment, words.PackAlignment = 8, 2
	fields := pack.TreeNode{Kind: pack.StructNode, Table: place(), Entries: 3}
	aside = pack.AppendFields(aside,
		pack.TreeField{Displacement: 128, Primitives: 12, Size: 48, Child: 2},
		pack.TreeField{Displacement: 200, Primitives: 6, Size: 6, Child: 3},
		pack.TreeField{Displacement: 232, Primitives: 4, Size: 64, Child: 4})
	root := pack.TreeNode{Kind: pack.ContiguousNode, Primitives: 22, Size: 118, Extent: 512, Child: 1}
	tree := pack.Tree{Nodes: []pack.TreeNode{root, fields, box, list, pairs, words}, LookAside: aside,
		Primitives: 44, Size: 236, Lo: 32, Hi: 512 + 328}
	return tree, append(mixedSpots(0, 0), mixedSpots(512, 118)...)
}

func mixedSpots(at, packed int64) (spots []spot) {
	add := func(displacement, size int64) {
		spots = append(spots, spot{at + displacement, packed, size})
		packed += size
	}
	for i := range int64(12) {
		add(128+4*(i%3)+24*(i/3%2)-96*(i/6), 4)
	}
	for _, d := range []int64{20, 0, 2, 4, 9, 11} {
		add(200+d, 1)
	}
	for _, d := range []int64{0, 16, 64, 80} {
		add(232+d, 16)
	}
	return spots
}

var handmade = map[string]func() (pack.Tree, []spot){"vector": vectorTree, "mixed": mixedTree}

// Primitive matches a walk by loops.
func TestTreeWalk(t *testing.T) {
	s := testdevices.Host(t, 1)
	copier := test.Must(pack.NewTreePacker(s.Compiler, s.Devices[0]))(t)
	for name, build := range handmade {
		tree, want := build()
		table := test.Must(copier.Table(tree))(t)
		var got []spot
		for n := range tree.Primitives {
			displacement, offset, size := table.Primitive(n)
			got = append(got, spot{displacement, offset, size})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v\nwant %v", name, got, want)
		}
	}
}

// Trees pack and unpack at any addresses, with any number of thread blocks, into device memory, pinned memory and
// the memory of a peer, and change nothing else.
func TestTreePack(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		for name, build := range handmade {
			for _, to := range []string{"device", "pinned", "peer"} {
				for _, off := range []int64{0, 8, 1} {
					for _, blocks := range []int{0, 1} {
						t.Run(fmt.Sprintf("%s/to=%s/off=%d/blocks=%d", name, to, off, blocks), func(t *testing.T) {
							tree, spots := build()
							l := pack.Passage{Origin: 16 + off}
							treePack(kerneltest.NewBench(t, s), tree, spots, memoryOf(t, s, to), l, blocks, false)
							treePack(kerneltest.NewBench(t, s), tree, spots, memoryOf(t, s, to), l, blocks, true)
						})
					}
				}
			}
		}
	})
}

// memoryOf returns an allocator of memory that the first device can store into.
func memoryOf(t *testing.T, s *testdevices.Set, which string) func(bytes int64) (*streams.Memory, error) {
	switch {
	case which == "device":
		return s.Devices[0].Alloc
	case which == "pinned":
		return s.Devices[0].AllocPinned
	case len(s.Devices) < 2:
		t.Skip("SKIPPED: no peer")
	}
	if ok := test.Must(s.Devices[0].CanAccess(s.Devices[1]))(t); !ok {
		t.Skip("SKIPPED: peer access is not available")
	}
	test.Check(t, s.Devices[0].EnablePeer(s.Devices[1]))
	return s.Devices[1].Alloc
}

func treePack(b *kerneltest.Bench, tree pack.Tree, spots []spot, alloc func(int64) (*streams.Memory, error), l pack.Passage, blocks int, wideIds bool) {
	table := test.Must(test.Must(pack.NewTreePacker(b.Compiler, b.Device))(b.T).Table(tree))(b.T)
	defer table.Close()
	if wideIds {
		table.UseWideIds()
	}
	const size = 1024
	values, before := make([]byte, size), make([]byte, size)
	for i := range values {
		values[i], before[i] = byte(i*31>>2), byte(i*17)
	}
	fill := func(m *streams.Memory, err error) func(v []byte) streams.Span {
		test.Must(m, err)(b.T)
		b.T.Cleanup(func() { m.Close() })
		return func(v []byte) streams.Span {
			kerneltest.Put(b, m.Span(0, int64(len(v))), v)
			return m.All()
		}
	}
	user, packed := fill(b.Device.Alloc(size))(values), fill(alloc(size))(before)
	l.Strided, l.Packed = user, packed.Memory.Span(l.Origin, tree.Size)
	b.Do(b.Stream.Launch(test.Must(table.Kernel(l, blocks))(b.T)))
	want, back := bytes.Clone(before), bytes.Clone(before)
	for _, s := range spots {
		from := values[l.Origin+s.displacement:][:s.size]
		copy(want[l.Origin+s.offset:], from)
		copy(back[l.Origin+s.displacement:], from)
	}
	holds(b, packed, want, "packed")
	l.Unpack = true
	l.Packed, l.Strided = fill(b.Device.AllocPinned(size))(want[l.Origin:]), fill(alloc(size))(before)
	b.Do(b.Stream.Launch(test.Must(table.Kernel(l, blocks))(b.T)))
	holds(b, l.Strided, back, "unpacked")
}

// A tree without data needs no memory and does nothing.
func TestEmptyTree(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := kerneltest.NewBench(t, s)
		table := test.Must(test.Must(pack.NewTreePacker(b.Compiler, b.Device))(t).Table(pack.Tree{}))(t)
		for _, unpack := range []bool{false, true} {
			b.Do(b.Stream.Launch(test.Must(table.Kernel(pack.Passage{Unpack: unpack}, 0))(t)))
		}
		b.Do(table.Close(), table.Close())
	})
}

func TestTreeErrors(t *testing.T) {
	s := testdevices.Host(t, 1)
	copier := test.Must(pack.NewTreePacker(s.Compiler, s.Devices[0]))(t)
	for name, spoil := range map[string]func(t *pack.Tree){
		"too many nodes":          func(t *pack.Tree) { t.Nodes = make([]pack.TreeNode, pack.MaxTreeNodes+1) },
		"a kind":                  func(t *pack.Tree) { t.Nodes[2].Kind = 6 },
		"a child":                 func(t *pack.Tree) { t.Nodes[0].Child = 6 },
		"no primitives":           func(t *pack.Tree) { t.Nodes[0].Primitives = 0 },
		"no block length":         func(t *pack.Tree) { t.Nodes[4].BlockLength = 0 },
		"a table":                 func(t *pack.Tree) { t.Nodes[3].Table = -1 },
		"a long table":            func(t *pack.Tree) { t.Nodes[3].Entries = 1 << 60 },
		"a table without entries": func(t *pack.Tree) { t.Nodes[2].Entries = 0 },
		"a field's child":         func(t *pack.Tree) { t.LookAside[len(t.LookAside)-1] = 77 },
		"fewer bytes":             func(t *pack.Tree) { t.Size = 43 },
		"no nodes":                func(t *pack.Tree) { t.Nodes = nil },
	} {
		tree, _ := mixedTree()
		spoil(&tree)
		if _, err := copier.Table(tree); err == nil || errors.Is(err, pack.ErrTreeTooLarge) != (name == "too many nodes") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTreeLaunchErrors(t *testing.T) {
	s := testdevices.Host(t, 1)
	tree, _ := mixedTree()
	table := test.Must(test.Must(pack.NewTreePacker(s.Compiler, s.Devices[0]))(t).Table(tree))(t)
	memory := test.Must(s.Devices[0].Alloc(1024))(t)
	good := pack.Passage{Strided: memory.Span(0, 808), Origin: -32, Packed: memory.Span(700, 236)}
	test.Must(table.Kernel(good, 0))(t)
	if _, err := table.Kernel(good, -1); err == nil {
		t.Error("-1 thread blocks: got no error")
	}
	for name, spoil := range map[string]func(p *pack.Passage){
		"before":            func(p *pack.Passage) { p.Origin-- },
		"behind":            func(p *pack.Passage) { p.Origin++ },
		"short buffer":      func(p *pack.Passage) { p.Packed.Length-- },
		"no memory":         func(p *pack.Passage) { p.Strided.Memory = nil },
		"beyond its memory": func(p *pack.Passage) { p.Packed.Offset = 900 },
	} {
		for _, unpack := range []bool{false, true} {
			p := good
			p.Unpack = unpack
			spoil(&p)
			if _, err := table.Kernel(p, 0); err == nil {
				t.Errorf("%s: got no error", name)
			}
		}
	}
}

func TestNodeKindString(t *testing.T) {
	if got := fmt.Sprint(pack.IndexedBlockNode, pack.NodeKind(9)); got != "indexed block kind 9" {
		t.Error(got)
	}
}
