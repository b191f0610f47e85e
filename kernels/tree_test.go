package kernels_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels"
	"github.com/halox/halox/streams"
)

// spot is where a primitive lies.
type spot struct{ displacement, offset, size int64 }

// leafOf returns a leaf with words that are aligned.
func leafOf(kind kernels.NodeKind, word int64, n kernels.TreeNode) kernels.TreeNode {
	n.Kind, n.Primitives, n.Size, n.Unit = kind, 1, word, int(word)
	n.MemoryAlignment, n.PackAlignment = int(word), int(word)
	return n
}

// vectorTree is 6 blocks of 2 words of 8 bytes, 40 bytes apart, backwards, from displacement 200.
func vectorTree() (kernels.Tree, []spot) {
	var want []spot
	for block := range int64(6) {
		for i := range int64(2) {
			want = append(want, spot{200 - 40*block + 8*i, 16*block + 8*i, 8})
		}
	}
	leaf := leafOf(kernels.VectorNode, 8, kernels.TreeNode{Extent: 8, BlockLength: 2, Stride: -40})
	return kernels.Tree{Nodes: []kernels.TreeNode{leaf}, Base: 200, Primitives: 12, Size: 96, Lo: 0, Hi: 216, Word: 8}, want
}

// mixedTree is two elements, 512 bytes apart, of a struct of all other kinds: a box of 3 x 2 x 2 words of 4 bytes, blocks
// of 1, 3 and 2 bytes, and two pairs of words of 16 bytes, each as an indexed block and those contiguous, which are moved in
// pieces: packed, an element has 118 bytes.
func mixedTree() (kernels.Tree, []spot) {
	var aside []int64
	place := func() int64 { return int64(len(aside)) }
	box := leafOf(kernels.SubarrayNode, 4, kernels.TreeNode{Table: place(), Entries: 3})
	aside = kernels.AppendDims(aside, kernels.TreeDim{Count: 3, Stride: 4}, kernels.TreeDim{Count: 2, Stride: 24}, kernels.TreeDim{Count: 2, Stride: -96})
	box.PackAlignment = 2
	list := leafOf(kernels.IndexedNode, 1, kernels.TreeNode{Extent: 2, Table: place(), Entries: 3})
	aside = kernels.AppendBlocks(aside, []int64{1, 3, 2}, []int64{20, 0, 9})
	pairs := kernels.TreeNode{Kind: kernels.IndexedBlockNode, Primitives: 2, Size: 32, Extent: 40, BlockLength: 1, Table: place(), Child: 5}
	pairs.Entries = 2
	aside = append(aside, 0, 64)
	words := leafOf(kernels.ContiguousNode, 16, kernels.TreeNode{Extent: 16})
	words.MemoryAlignment, words.PackAlignment = 8, 2
	fields := kernels.TreeNode{Kind: kernels.StructNode, Table: place(), Entries: 3}
	aside = kernels.AppendFields(aside,
		kernels.TreeField{Displacement: 128, Primitives: 12, Size: 48, Child: 2},
		kernels.TreeField{Displacement: 200, Primitives: 6, Size: 6, Child: 3},
		kernels.TreeField{Displacement: 232, Primitives: 4, Size: 64, Child: 4})
	root := kernels.TreeNode{Kind: kernels.ContiguousNode, Primitives: 22, Size: 118, Extent: 512, Child: 1}
	tree := kernels.Tree{Nodes: []kernels.TreeNode{root, fields, box, list, pairs, words}, LookAside: aside,
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

var handmade = map[string]func() (kernels.Tree, []spot){"vector": vectorTree, "mixed": mixedTree}

// A walk ends where loops say.
func TestTreeWalk(t *testing.T) {
	s := testdevices.Host(t, 1)
	copier := must(s.Compiler.NewTreePacker(s.Devices[0]))(t)
	for name, build := range handmade {
		tree, want := build()
		table := must(copier.Table(tree))(t)
		var got []spot
		for n := range tree.Primitives {
			displacement, offset, size := table.Primitive(n)
			got = append(got, spot{displacement, offset, size})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v\nnot %v", name, got, want)
		}
	}
}

// Trees pack and unpack, at any addresses, with any number of thread blocks, into device memory, pinned memory and the
// memory of a peer, and touch nothing else.
func TestTreePack(t *testing.T) {
	testdevices.EachKernel(t, 2, func(t *testing.T, s *testdevices.Set) {
		for name, build := range handmade {
			for _, to := range []string{"device", "pinned", "peer"} {
				for _, off := range []int64{0, 8, 1} {
					for _, blocks := range []int{0, 1} {
						t.Run(fmt.Sprintf("%s/to=%s/off=%d/blocks=%d", name, to, off, blocks), func(t *testing.T) {
							tree, spots := build()
							l := kernels.TreeLaunch{Name: name, Origin: 16 + off, Blocks: blocks}
							treePack(newBench(t, s), tree, spots, memoryOf(t, s, to), l, false)
							treePack(newBench(t, s), tree, spots, memoryOf(t, s, to), l, true)
						})
					}
				}
			}
		}
	})
}

// memoryOf returns what allocates memory that the first device can store into.
func memoryOf(t *testing.T, s *testdevices.Set, which string) func(bytes int64) (*streams.Memory, error) {
	switch {
	case which == "device":
		return s.Devices[0].Alloc
	case which == "pinned":
		return s.Devices[0].AllocPinned
	case len(s.Devices) < 2:
		t.Skip("SKIPPED: there is no peer")
	}
	if ok := must(s.Devices[0].CanAccess(s.Devices[1]))(t); !ok {
		t.Skip("SKIPPED: the peer cannot be reached")
	}
	if err := s.Devices[0].EnablePeer(s.Devices[1]); err != nil {
		t.Fatal(err)
	}
	return s.Devices[1].Alloc
}

func treePack(b *bench, tree kernels.Tree, spots []spot, alloc func(int64) (*streams.Memory, error), l kernels.TreeLaunch, wideIds bool) {
	table := must(must(b.compiler.NewTreePacker(b.device))(b.t).Table(tree))(b.t)
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
		return func(v []byte) streams.Span {
			b.t.Cleanup(func() { m.Close() })
			must(m, err)(b.t)
			b.putBytes(m.All(), v)
			return m.All()
		}
	}
	user := fill(b.device.Alloc(size))(values)
	packed := fill(alloc(size))(before)
	l.User, l.Packed = user, packed.Memory.Span(l.Origin, tree.Size)
	b.do(b.stream.Launch(must(table.Pack(l))(b.t)))
	want, back := bytes.Clone(before), bytes.Clone(before)
	for _, s := range spots {
		from := values[l.Origin+s.displacement:][:s.size]
		copy(want[l.Origin+s.offset:], from)
		copy(back[l.Origin+s.displacement:], from)
	}
	if got := b.getBytes(packed); !bytes.Equal(got, want) {
		b.t.Fatalf("packed\n%v, not\n%v", got, want)
	}
	l.Packed, l.User = fill(b.device.AllocPinned(size))(want[l.Origin:]), fill(alloc(size))(before)
	b.do(b.stream.Launch(must(table.Unpack(l))(b.t)))
	if got := b.getBytes(l.User); !bytes.Equal(got, back) {
		b.t.Fatalf("unpacked\n%v, not\n%v", got, back)
	}
}

// putBytes fills the start of a span.
func (b *bench) putBytes(dst streams.Span, values []byte) {
	b.t.Helper()
	if dst.Memory.Pinned() {
		copy(dst.Memory.Bytes()[dst.Offset:], values)
		return
	}
	host := must(b.device.AllocPinned(int64(len(values))))(b.t)
	defer host.Close()
	copy(host.Bytes(), values)
	b.do(b.stream.Copy(dst.Memory.Span(dst.Offset, host.Size()), host.All()))
}

func (b *bench) getBytes(src streams.Span) []byte {
	b.t.Helper()
	if src.Memory.Pinned() {
		return bytes.Clone(src.Memory.Bytes()[src.Offset : src.Offset+src.Length])
	}
	host := must(b.device.AllocPinned(src.Length))(b.t)
	defer host.Close()
	b.do(b.stream.Copy(host.All(), src))
	return bytes.Clone(host.Bytes())
}

// A tree without data needs no memory and does nothing.
func TestTreeOfNothing(t *testing.T) {
	testdevices.EachKernel(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newBench(t, s)
		table := must(must(b.compiler.NewTreePacker(b.device))(t).Table(kernels.Tree{}))(t)
		pack, unpack := must(table.Pack(kernels.TreeLaunch{Name: "nothing"}))(t), must(table.Unpack(kernels.TreeLaunch{}))(t)
		b.do(b.stream.Launch(pack), b.stream.Launch(unpack))
		b.do(table.Close(), table.Close())
	})
}

func TestTreesRefused(t *testing.T) {
	s := testdevices.Host(t, 1)
	copier := must(s.Compiler.NewTreePacker(s.Devices[0]))(t)
	for name, spoil := range map[string]func(t *kernels.Tree){
		"too many nodes":          func(t *kernels.Tree) { t.Nodes = make([]kernels.TreeNode, kernels.MaxTreeNodes+1) },
		"a kind":                  func(t *kernels.Tree) { t.Nodes[2].Kind = 6 },
		"a child":                 func(t *kernels.Tree) { t.Nodes[0].Child = 6 },
		"no primitives":           func(t *kernels.Tree) { t.Nodes[0].Primitives = 0 },
		"no block length":         func(t *kernels.Tree) { t.Nodes[4].BlockLength = 0 },
		"a table":                 func(t *kernels.Tree) { t.Nodes[3].Table = -1 },
		"a long table":            func(t *kernels.Tree) { t.Nodes[3].Entries = 1 << 60 },
		"a table without entries": func(t *kernels.Tree) { t.Nodes[2].Entries = 0 },
		"a field's child":         func(t *kernels.Tree) { t.LookAside[len(t.LookAside)-1] = 77 },
		"fewer bytes":             func(t *kernels.Tree) { t.Size = 43 },
		"no nodes":                func(t *kernels.Tree) { t.Nodes = nil },
	} {
		tree, _ := mixedTree()
		spoil(&tree)
		if _, err := copier.Table(tree); err == nil || errors.Is(err, kernels.ErrTreeTooLarge) != (name == "too many nodes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTreeLaunchesRefused(t *testing.T) {
	s := testdevices.Host(t, 1)
	tree, _ := mixedTree()
	table := must(must(s.Compiler.NewTreePacker(s.Devices[0]))(t).Table(tree))(t)
	memory := must(s.Devices[0].Alloc(1024))(t)
	good := kernels.TreeLaunch{Name: "good", User: memory.Span(0, 808), Origin: -32, Packed: memory.Span(700, 236)}
	must(table.Pack(good))(t)
	for name, spoil := range map[string]func(l *kernels.TreeLaunch){
		"before":        func(l *kernels.TreeLaunch) { l.Origin-- },
		"behind":        func(l *kernels.TreeLaunch) { l.Origin++ },
		"no room":       func(l *kernels.TreeLaunch) { l.Packed.Length-- },
		"no memory":     func(l *kernels.TreeLaunch) { l.User.Memory = nil },
		"out of memory": func(l *kernels.TreeLaunch) { l.Packed.Offset = 900 },
		"fewer blocks":  func(l *kernels.TreeLaunch) { l.Blocks = -1 },
	} {
		l := good
		l.Name = name
		spoil(&l)
		for _, bind := range []func(kernels.TreeLaunch) (*streams.Kernel, error){table.Pack, table.Unpack} {
			if _, err := bind(l); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestNodeKindString(t *testing.T) {
	if got := fmt.Sprint(kernels.IndexedBlockNode, kernels.NodeKind(9)); got != "indexed block kind 9" {
		t.Error(got)
	}
}
