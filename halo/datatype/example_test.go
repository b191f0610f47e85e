package datatype_test

import (
	"fmt"
	"log"

	"github.com/halox/halox/halo/datatype"
)

// made returns a type, or panics on an error.
func made(t *datatype.Type, err error) *datatype.Type {
	if err != nil {
		log.Fatal(err)
	}
	return t
}

// One column of a matrix of 5 by 4 float64, stored by rows.
func ExampleVector() {
	column := made(datatype.Vector(5, 1, 4, datatype.Float64))
	fmt.Println(column)
	fmt.Println(column.Size(), "bytes in", column.Extent())
	// Output:
	// vector(5, 1, 4, float64)
	// 40 bytes in 136
}

// The bounds of a subarray are those of the whole array, so that arrays can be consecutive.
func ExampleSubarray() {
	inner := made(datatype.Subarray([]int{4, 6}, []int{2, 4}, []int{1, 1}, datatype.COrder, datatype.Float32))
	fmt.Println(inner.Size(), inner.Extent(), inner.TrueLB(), inner.TrueExtent())
	// Output: 32 96 28 40
}

// A struct is padded as a C compiler pads it: epsilon.
func ExampleStruct() {
	particle := made(datatype.Struct([]int{1, 2, 1}, []int64{0, 8, 16}, []*datatype.Type{datatype.Float64, datatype.Int32, datatype.Int8}))
	fmt.Println(particle.Size(), particle.Extent())
	fmt.Println(particle.Signature())
	// Output:
	// 17 24
	// 1 int8, 2 int32, 1 float64
}

// Consecutive columns: a matrix by columns.
func ExampleResized() {
	column := made(datatype.Resized(made(datatype.Vector(2, 1, 3, datatype.Byte)), 0, 1))
	packed := make([]byte, 6)
	if err := datatype.Pack(packed, []byte("abcdef"), 0, column, 3); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", packed)
	// Output: adbecf
}

// Different descriptions of a layout commit to equal layouts.
func ExampleCommit() {
	for _, t := range []*datatype.Type{
		made(datatype.Vector(3, 2, 5, datatype.Float64)),
		made(datatype.HIndexed([]int{1, 1, 1}, []int64{0, 40, 80}, datatype.Complex128)),
		made(datatype.Subarray([]int{5, 3}, []int{2, 3}, []int{0, 0}, datatype.FortranOrder, datatype.Float64)),
	} {
		l, err := datatype.Commit(t, 1)
		fmt.Println(l, err)
	}
	// Output:
	// 16 B at 0, 3 times +40 <nil>
	// 16 B at 0, 3 times +40 <nil>
	// 16 B at 0, 3 times +40 <nil>
}

// The lower triangle of a matrix has blocks of every length.
func ExampleLayout_Blocks() {
	triangle := made(datatype.Indexed([]int{1, 2, 3}, []int{0, 3, 6}, datatype.Float32))
	l, err := datatype.Commit(triangle, 1)
	if err != nil {
		log.Fatal(err)
	}
	for offset, b := range l.Blocks() {
		fmt.Println(b.Length, "bytes from", b.Displacement, "to", offset)
	}
	// Output:
	// 4 bytes from 0 to 0
	// 8 bytes from 12 to 4
	// 12 bytes from 24 to 12
}

// A layout that overlaps itself may be sent, but not received into.
func ExampleLayout_Overlaps() {
	windows := made(datatype.Vector(4, 3, 1, datatype.Int32))
	l, err := datatype.Commit(windows, 1)
	fmt.Println(l.Overlaps(), err)
	// Output: true <nil>
}

// A received message may have another type than the one sent, if the signatures agree.
func ExampleSignature() {
	row := made(datatype.Contiguous(12, datatype.Float64))
	column := made(datatype.Vector(4, 1, 7, datatype.Float64))
	fmt.Println(row.Signature() == column.Signature().Times(3))
	// Output: true
}

// An engine reads the tree of constructors.
func ExampleType_Envelope() {
	t := made(datatype.HVector(2, 1, 100, made(datatype.IndexedBlock(1, []int{0, 3, 4}, datatype.Float32))))
	for e := t.Envelope(); ; e = e.Types[0].Envelope() {
		fmt.Println(e.Combiner, e.Count, e.BlockLength, e.Stride, e.Displacements)
		if len(e.Types) == 0 {
			break
		}
	}
	// Output:
	// hvector 2 1 100 []
	// indexed_block 0 1 0 [0 3 4]
	// named 0 0 0 []
}
