package packing_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/halox/halox/halo/datatype"
	"github.com/halox/halox/halo/datatype/workloads"
	"github.com/halox/halox/halo/packing"
	"github.com/halox/halox/internal/test"
	"github.com/halox/halox/internal/testdevices"
	"github.com/halox/halox/kernels/pack"
)

// mapMax is how many predefined types of a workload are compared with its primitives.
const mapMax = 1 << 15

// The primitives of every type of the benchmarks are those of its type map, in order.
func TestTreeMapsOfWorkloads(t *testing.T) {
	s := testdevices.Host(t, 1)
	copier := test.Must(pack.NewTreePacker(s.Compiler, s.Devices[0]))(t)
	for i, w := range testdevices.Again(10, testdevices.Some(40, test.Must(workloads.All())(t))) {
		for _, o := range []packing.TreeOptions{{}, {Primitive: true}} {
			side := []workloads.Side{w.Send, w.Recv}[i%2]
			tree := test.Must(packing.Serialize(side.Type, side.Count, o))(t)
			table := test.Must(copier.Table(tree))(t)
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
		return test.Must(datatype.Vector(count, length, stride, of))(t)
	}
	csVec := vector(2, 2, 3, double) // figures 1 and 2 of Jenkins et al. 2014
	mixed := test.Must(datatype.Struct([]int{1, 2, 1}, []int64{0, 8, 16}, []*datatype.Type{double, datatype.Int32, datatype.Int8}))(t)
	points := test.Must(datatype.Struct([]int{1, 1, 1}, []int64{0, 8, 16}, []*datatype.Type{double, double, double}))(t)
	twoLists := test.Must(datatype.Struct([]int{7, 5, 9}, []int64{0, 64, 128}, []*datatype.Type{datatype.Float32, datatype.Int32, datatype.Float32}))(t)
	rows := func(length int) *datatype.Type { return vector(3, length, 16, datatype.Float32) }
	uneven := test.Must(datatype.Struct([]int{1, 1}, []int64{0, 512}, []*datatype.Type{rows(8), rows(6)}))(t)
	pair := test.Must(datatype.Contiguous(2, double))(t)
	sameRows := test.Must(datatype.Struct([]int{1, 2}, []int64{0, 32}, []*datatype.Type{pair, double}))(t)
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
		"indexed":                               {test.Must(datatype.Indexed([]int{2, 4, 6}, []int{0, 4, 20}, double))(t), 1, false, []pack.NodeKind{indexed}, 6, 16},
		"indexed, the paper's": {test.Must(datatype.Indexed([]int{2, 4, 6}, []int{0, 4, 20}, double))(t), 1, true,
			[]pack.NodeKind{indexed}, 12, 8},
		"indexed blocks": {test.Must(datatype.Indexed([]int{2, 2, 2}, []int{0, 4, 20}, double))(t), 1, false, []pack.NodeKind{idxBlock}, 3, 16},
		"indexed, equal to a column": {test.Must(datatype.Indexed([]int{2, 2, 2}, []int{40, 20, 0}, double))(t), 1, false,
			[]pack.NodeKind{contiguous}, 3, 16},
		"indexed, equal to one piece": {test.Must(datatype.IndexedBlock(2, []int{2, 4, 6}, double))(t), 1, false, []pack.NodeKind{contiguous}, 3, 16},
		"rows of 32 and 24 bytes":     {uneven, 1, false, []pack.NodeKind{structure, vec, vec}, 21, 8},
		"rows that are the same":      {sameRows, 1, false, []pack.NodeKind{contiguous}, 2, 16},
		"none":                        {mixed, 0, false, nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tree := test.Must(packing.Serialize(c.typ, c.count, packing.TreeOptions{Primitive: c.primitive}))(t)
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

// Types that share parts have small trees; trees that are too deep are rejected.
func TestTreeSizes(t *testing.T) {
	s := testdevices.Host(t, 1)
	copier := test.Must(pack.NewTreePacker(s.Compiler, s.Devices[0]))(t)
	bushy := datatype.Float64
	deep := datatype.Float64
	for i := range 40 {
		bushy = test.Must(datatype.Struct([]int{1, i % 3, 1}, []int64{0, 8, bushy.Extent() + 16}, []*datatype.Type{bushy, datatype.Int16, bushy}))(t)
	}
	for range 1000 {
		deep = test.Must(datatype.Contiguous(1, deep))(t)
	}
	for _, o := range []packing.TreeOptions{{}, {Primitive: true}} {
		tree, err := packing.Serialize(bushy, 1, o)
		if err != nil || len(tree.Nodes) > 200 {
			t.Errorf("%+v: %d nodes; %v", o, len(tree.Nodes), err)
		}
		tree = test.Must(packing.Serialize(deep, 1, o))(t)
		if _, err := copier.Table(tree); errors.Is(err, pack.ErrTreeTooLarge) != o.Primitive {
			t.Errorf("%+v: %d nodes: %v", o, len(tree.Nodes), err)
		}
	}
}

func TestSerializeErrors(t *testing.T) {
	huge := test.Must(datatype.Resized(datatype.Byte, 0, 1<<62))(t)
	for name, count := range map[string]int{"negative": -1, "overflow": 4} {
		if _, err := packing.Serialize(huge, count, packing.TreeOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
