package workloads

import (
	"fmt"
	"slices"

	"github.com/halox/halox/halo/datatype"
)

// Jenkins returns the layouts of Jenkins, Dinan, Balaji, Peterka, Samatova and Thakur, "Processing MPI Derived Datatypes on
// Noncontiguous GPU-Resident Data", TPDS 2014, figures 4 to 6 and table 2: vectors at a stride of 512 bytes with blocks of 8
// to 128 bytes, the same blocks indexed, hypercubes in a volume of 64^4, and a struct of a double, two ints and a char.
// Elements are doubles. The packed sizes, 1 KiB to 4 MiB, and figure 5's count of 8192 were chosen here.
func Jenkins() ([]Workload, error) {
	m := &maker{suite: "jenkins"}
	for _, length := range []int{1, 4, 16} {
		for _, bytes := range []int{1 << 10, 16 << 10, 256 << 10, 4 << 20} {
			m.strided(bytes/(double*length), length)
		}
	}
	for length := 1; length <= 64; length += 3 {
		t := m.vector(8192, length, 64, datatype.Float64)
		m.both("vector", fmt.Sprintf("blocks=8192,block=%d", double*length), filled(t, 1), 0)
	}
	for _, edge := range []int{2, 4, 8, 16, 32} {
		t := m.subarray([]int{64, 64, 64, 64}, []int{edge, edge, edge, edge}, []int{0, 0, 0, 0}, datatype.Float64)
		m.both("subarray-4d", fmt.Sprintf("edge=%d", edge), Side{Type: t, Count: 1, Array: double << 24}, 0)
	}
	for _, count := range []int{64, 1 << 10, 16 << 10, 256 << 10} {
		m.both("struct", fmt.Sprintf("count=%d", count), filled(m.cStruct(), count), 0)
	}
	// "A count of 262,144, a blocklength of 8, and a stride of 64 bytes": it has no gaps.
	m.both("contention", "blocks=262144,block=64", filled(m.vector(262144, 8, 8, datatype.Float64), 1), 0)
	return m.result()
}

// strided adds blocks at a stride of 512 bytes, described in three ways.
func (m *maker) strided(count, length int) {
	places := make([]int, count)
	for i := range places {
		places[i] = 64 * i
	}
	params := fmt.Sprintf("blocks=%d,block=%d", count, double*length)
	indexed := m.made(datatype.Indexed(slices.Repeat([]int{length}, count), places, datatype.Float64))
	m.both("vector-512", params, filled(m.vector(count, length, 64, datatype.Float64), 1), 0)
	m.both("indexed", params, filled(indexed, 1), 0)
	m.both("idxblock", params, filled(m.indexedBlock(length, places, datatype.Float64), 1), 0)
}

// cStruct returns struct { double; int[2]; char }, 24 bytes with its padding.
func (m *maker) cStruct() *datatype.Type {
	return m.made(datatype.Struct([]int{1, 2, 1}, []int64{0, 8, 16}, []*datatype.Type{datatype.Float64, datatype.Int32, datatype.Int8}))
}
