package packing_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/typetest"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/pack"
	"github.com/halox/halox/streams"
)

const limit = 30 * time.Second

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// treeBench is a device that packs by trees.
type treeBench struct {
	device *streams.Device
	stream *streams.Stream
	copier *pack.TreePacker
}

func newTreeBench(t *testing.T, s *testdevices.Set) *treeBench {
	d := s.Devices[0]
	return &treeBench{d, must(d.NewStream(streams.Normal))(t), must(pack.NewTreePacker(s.Compiler, d))(t)}
}

// memory returns device memory that holds the bytes. The caller closes it.
func (b *treeBench) memory(t testing.TB, values []byte) *streams.Memory {
	t.Helper()
	m := must(b.device.Alloc(int64(len(values))))(t)
	host := must(b.device.AllocPinned(m.Size()))(t)
	defer host.Close()
	copy(host.Bytes(), values)
	b.do(t, b.stream.Copy(m.All(), host.All()))
	return m
}

func (b *treeBench) read(t testing.TB, m *streams.Memory) []byte {
	t.Helper()
	host := must(b.device.AllocPinned(m.Size()))(t)
	defer host.Close()
	b.do(t, b.stream.Copy(host.All(), m.All()))
	return slices.Clone(host.Bytes())
}

// do checks what was queued and waits for it.
func (b *treeBench) do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(append(errs, b.stream.Sync(limit))...); err != nil {
		t.Fatal(err)
	}
}

// message is count elements of a type, bound to addresses that are so many bytes off those of memory.
type message struct {
	typ              *datatype.Type
	count            int
	userOff, packOff int64
	blocks           int
}

const margin = 32

// check packs and unpacks a message by a tree, and holds all bytes, also those outside of it, against the definition.
func (b *treeBench) check(t testing.TB, m message, o packing.TreeOptions) {
	t.Helper()
	tree := must(packing.Serialise(m.typ, m.count, o))(t)
	table := must(b.copier.Table(tree))(t)
	defer table.Close()
	origin := margin + m.userOff - tree.Lo
	user := typetest.Numbered(tree.Hi - tree.Lo + m.userOff + 2*margin)
	packed := slices.Repeat([]byte{0xa5}, int(tree.Size+m.packOff+2*margin))
	start := margin + m.packOff
	launch := pack.Passage{Origin: origin}

	userMemory, packedMemory := b.memory(t, user), b.memory(t, packed)
	defer userMemory.Close()
	defer packedMemory.Close()
	launch.Strided, launch.Packed = userMemory.All(), packedMemory.Span(start, tree.Size)
	pack := must(table.Kernel(launch, m.blocks))(t)
	defer pack.Close()
	b.do(t, b.stream.Launch(pack))
	if err := datatype.Pack(packed[start:], user, origin, m.typ, m.count); err != nil {
		t.Fatal(err)
	}
	same(t, "packed", b.read(t, packedMemory), packed, m, tree)
	same(t, "user data after packing", b.read(t, userMemory), user, m, tree)
	b.checkUnpack(t, table, launch, tree, m, user, packed)
}

// checkUnpack unpacks over poison.
func (b *treeBench) checkUnpack(t testing.TB, table *pack.TreeTable, l pack.Passage, tree pack.Tree, m message, user, packed []byte) {
	t.Helper()
	want := slices.Clone(user)
	for i := range want {
		want[i] ^= 0xff
	}
	poisoned := b.memory(t, want)
	defer poisoned.Close()
	l.Strided, l.Unpack = poisoned.All(), true
	unpack := must(table.Kernel(l, m.blocks))(t)
	defer unpack.Close()
	b.do(t, b.stream.Launch(unpack))
	if err := datatype.Unpack(want, l.Origin, packed[l.Packed.Offset:], m.typ, m.count); err != nil {
		t.Fatal(err)
	}
	same(t, "unpacked", b.read(t, poisoned), want, m, tree)
}

func same(t testing.TB, what string, got, want []byte, m message, tree pack.Tree) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for got[at] == want[at] {
		at++
	}
	t.Fatalf("%s: byte %d is %#x, not %#x: %d of %v as %+v", what, at, got[at], want[at], m.count, m.typ, tree)
}

var treeOptions = []packing.TreeOptions{{}, {Primitive: true}, {Alignment: 8}, {Alignment: 1}}

// Random types, nested and with everything that MPI allows, are packed and unpacked as by their definition.
func TestTreeOfRandomTypes(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newTreeBench(t, s)
		for seed := range uint64(2000) {
			s := typetest.Seeded(seed)
			m := message{typ: s.Type(t, s(1, 5)), count: s.Count(4), blocks: s(0, 2)}
			if s(0, 1) == 0 {
				m.userOff, m.packOff = int64(s(0, 16)), int64(s(0, 16))
			}
			b.check(t, m, treeOptions[s(0, len(treeOptions)-1)])
		}
	})
}

// Every type of the benchmarks that is not too large for a test is packed and unpacked.
func TestTreeOfWorkloads(t *testing.T) {
	most := int64(1 << 18)
	if testing.Short() {
		most = 1 << 14
	}
	testdevices.Each(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newTreeBench(t, s)
		checked := 0
		for _, w := range testdevices.Again(10, testdevices.Some(40, must(workloads.All())(t))) {
			for _, side := range []workloads.Side{w.Send, w.Recv} {
				if w.Bytes > most || side.Type.TrueExtent() > 8*most {
					continue
				}
				checked++
				b.check(t, message{typ: side.Type, count: side.Count}, packing.TreeOptions{Primitive: checked%4 == 0})
			}
		}
		t.Logf("%d types", checked)
	})
}

// mapMax is how many predefined types of a workload are compared with its primitives.
const mapMax = 1 << 15

// The primitives of every type of the benchmarks are, in order, those of its type map.
func TestTreeMapsOfWorkloads(t *testing.T) {
	s := testdevices.Host(t, 1)
	copier := must(pack.NewTreePacker(s.Compiler, s.Devices[0]))(t)
	for i, w := range testdevices.Again(10, testdevices.Some(40, must(workloads.All())(t))) {
		for _, o := range []packing.TreeOptions{{}, {Primitive: true}} {
			side := []workloads.Side{w.Send, w.Recv}[i%2]
			tree := must(packing.Serialise(side.Type, side.Count, o))(t)
			table := must(copier.Table(tree))(t)
			if err := compareMap(table, tree, side.Type); err != nil {
				t.Errorf("%v: %v", w, err)
			}
		}
	}
}

// compareMap compares the first primitives of a tree with the type map of the first element.
func compareMap(table *pack.TreeTable, tree pack.Tree, typ *datatype.Type) error {
	n, offset, done := int64(0), int64(0), 0
	displacement, at, size := table.Primitive(0)
	for want, basic := range typ.TypeMap() {
		for offset >= at+size {
			if n++; n == tree.Primitives {
				return fmt.Errorf("%d primitives end at byte %d", n, offset)
			}
			displacement, at, size = table.Primitive(n)
		}
		if offset < at || offset+basic.Size() > at+size || want-displacement != offset-at {
			return fmt.Errorf("primitive %d: %d bytes from %d to %d; the map has %d to %d", n, size, displacement, at, want, offset)
		}
		offset += basic.Size()
		if done++; done == mapMax {
			break
		}
	}
	return nil
}

// The trees of some types: their nodes, primitives and words.
func TestTreeShapes(t *testing.T) {
	double := datatype.Float64
	vector := func(count, length, stride int, of *datatype.Type) *datatype.Type {
		return must(datatype.Vector(count, length, stride, of))(t)
	}
	csVec := vector(2, 2, 3, double) // figures 1 and 2 of Jenkins et al. 2014
	mixed := must(datatype.Struct([]int{1, 2, 1}, []int64{0, 8, 16}, []*datatype.Type{double, datatype.Int32, datatype.Int8}))(t)
	points := must(datatype.Struct([]int{1, 1, 1}, []int64{0, 8, 16}, []*datatype.Type{double, double, double}))(t)
	twoLists := must(datatype.Struct([]int{7, 5, 9}, []int64{0, 64, 128}, []*datatype.Type{datatype.Float32, datatype.Int32, datatype.Float32}))(t)
	rows := func(length int) *datatype.Type { return vector(3, length, 16, datatype.Float32) }
	uneven := must(datatype.Struct([]int{1, 1}, []int64{0, 512}, []*datatype.Type{rows(8), rows(6)}))(t)
	pair := must(datatype.Contiguous(2, double))(t)
	sameRows := must(datatype.Struct([]int{1, 2}, []int64{0, 32}, []*datatype.Type{pair, double}))(t)
	const contiguous, vec, sub, indexed, idxBlock, structure = pack.ContiguousNode, pack.VectorNode, pack.SubarrayNode,
		pack.IndexedNode, pack.IndexedBlockNode, pack.StructNode
	for name, c := range map[string]struct {
		typ        *datatype.Type
		count      int
		primitive  bool
		kinds      []pack.NodeKind
		primitives int64
		word       int64
	}{
		"a basic":                               {double, 1, false, []pack.NodeKind{contiguous}, 1, 8},
		"a row":                                 {double, 1000, false, []pack.NodeKind{contiguous}, 500, 16},
		"a row of primitives":                   {double, 1000, true, []pack.NodeKind{contiguous}, 1000, 8},
		"a column":                              {vector(10, 1, 16, double), 1, false, []pack.NodeKind{contiguous}, 10, 8},
		"a column of primitives":                {vector(10, 1, 16, double), 1, true, []pack.NodeKind{vec}, 10, 8},
		"blocks of 16 doubles":                  {vector(10, 16, 32, double), 1, false, []pack.NodeKind{vec}, 80, 16},
		"blocks of 3 doubles":                   {vector(10, 3, 32, double), 1, false, []pack.NodeKind{vec}, 30, 8},
		"a vector without gaps":                 {vector(10, 32, 32, double), 3, false, []pack.NodeKind{contiguous}, 480, 16},
		"a vector of vectors":                   {vector(3, 2, 5, csVec), 1, true, []pack.NodeKind{vec, vec}, 24, 8},
		"a vector of vectors, flat":             {vector(3, 2, 5, csVec), 1, false, []pack.NodeKind{sub}, 24, 8},
		"a struct of doubles":                   {points, 4, false, []pack.NodeKind{contiguous}, 6, 16},
		"a struct of doubles, the paper's":      {points, 4, true, []pack.NodeKind{contiguous, structure, contiguous}, 12, 8},
		"double, two ints and a char":           {mixed, 4, false, []pack.NodeKind{contiguous, structure, contiguous, contiguous}, 12, 0},
		"double, two ints, a char, the paper's": {mixed, 4, true, []pack.NodeKind{contiguous, structure, contiguous, contiguous, contiguous}, 16, 0},
		"lists of floats and ints":              {twoLists, 1, false, []pack.NodeKind{indexed}, 21, 4},
		"indexed":                               {must(datatype.Indexed([]int{2, 4, 6}, []int{0, 4, 20}, double))(t), 1, false, []pack.NodeKind{indexed}, 6, 16},
		"indexed, the paper's": {must(datatype.Indexed([]int{2, 4, 6}, []int{0, 4, 20}, double))(t), 1, true,
			[]pack.NodeKind{indexed}, 12, 8},
		"indexed blocks": {must(datatype.Indexed([]int{2, 2, 2}, []int{0, 4, 20}, double))(t), 1, false, []pack.NodeKind{idxBlock}, 3, 16},
		"indexed, in truth a column": {must(datatype.Indexed([]int{2, 2, 2}, []int{40, 20, 0}, double))(t), 1, false,
			[]pack.NodeKind{contiguous}, 3, 16},
		"indexed, in truth one piece": {must(datatype.IndexedBlock(2, []int{2, 4, 6}, double))(t), 1, false, []pack.NodeKind{contiguous}, 3, 16},
		"rows of 32 and 24 bytes":     {uneven, 1, false, []pack.NodeKind{structure, vec, vec}, 21, 8},
		"rows that turn out the same": {sameRows, 1, false, []pack.NodeKind{contiguous}, 2, 16},
		"none":                        {mixed, 0, false, nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tree := must(packing.Serialise(c.typ, c.count, packing.TreeOptions{Primitive: c.primitive}))(t)
			var kinds []pack.NodeKind
			for _, n := range tree.Nodes {
				kinds = append(kinds, n.Kind)
			}
			if !slices.Equal(kinds, c.kinds) || tree.Primitives != c.primitives || tree.Word != c.word {
				t.Errorf("%v: nodes %v, %d primitives, word %d\nnot %v, %d, %d", c.typ, kinds, tree.Primitives, tree.Word, c.kinds, c.primitives, c.word)
			}
		})
	}
}

// A type that refers to the same parts over and over is not written out; one that is really deep is refused by name.
func TestTreeSizes(t *testing.T) {
	s := testdevices.Host(t, 1)
	copier := must(pack.NewTreePacker(s.Compiler, s.Devices[0]))(t)
	bushy := datatype.Float64
	deep := datatype.Float64
	for i := range 40 {
		bushy = must(datatype.Struct([]int{1, i % 3, 1}, []int64{0, 8, bushy.Extent() + 16}, []*datatype.Type{bushy, datatype.Int16, bushy}))(t)
	}
	for range 1000 {
		deep = must(datatype.Contiguous(1, deep))(t)
	}
	for _, o := range treeOptions {
		tree, err := packing.Serialise(bushy, 1, o)
		if err != nil || len(tree.Nodes) > 200 {
			t.Errorf("%+v: %d nodes; %v", o, len(tree.Nodes), err)
		}
		tree = must(packing.Serialise(deep, 1, o))(t)
		if _, err := copier.Table(tree); errors.Is(err, pack.ErrTreeTooLarge) != o.Primitive {
			t.Errorf("%+v: %d nodes: %v", o, len(tree.Nodes), err)
		}
	}
}

func TestSerialiseRefuses(t *testing.T) {
	huge := must(datatype.Resized(datatype.Byte, 0, 1<<62))(t)
	for name, count := range map[string]int{"negative": -1, "overflow": 4} {
		if _, err := packing.Serialise(huge, count, packing.TreeOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Queuing a launch allocates nothing, however often.
func TestTreeLaunchesAllocateNothing(t *testing.T) {
	testdevices.Each(t, 1, func(t *testing.T, s *testdevices.Set) {
		b := newTreeBench(t, s)
		typ := must(datatype.Vector(4, 1, 2, datatype.Float64))(t)
		table := must(b.copier.Table(must(packing.Serialise(typ, 3, packing.TreeOptions{}))(t)))(t)
		defer table.Close()
		user, packed := b.memory(t, typetest.Numbered(512)), b.memory(t, typetest.Numbered(512))
		k := must(table.Kernel(pack.Passage{Strided: user.All(), Packed: packed.All()}, 0))(t)
		if n := testing.AllocsPerRun(100, func() { b.launch(t, k) }); n > 0 {
			t.Errorf("%v allocations a launch", n)
		}
	})
}

// launch launches and waits, without allocating.
func (b *treeBench) launch(t *testing.T, k *streams.Kernel) {
	if err := b.stream.Launch(k); err != nil {
		t.Fatal(err)
	}
	if err := b.stream.Sync(limit); err != nil {
		t.Fatal(err)
	}
}
