package workloads

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
)

// HAND returns the layouts of Shi, Lu, Potluri, Hamidouche, Zhang and Panda, "HAND: A Hybrid Approach to Accelerate
// Non-contiguous Data Movement using MPI Datatypes on GPU Clusters", ICPP 2014, figures 4 to 10 and section V: hvectors of
// 32 blocks, four-dimensional subarrays that grow along their innermost or outermost dimension, blocks at irregular places
// (count or block length fixed; counts that are no powers of two), and the particles of an N-body code, 131,072 of them. Chosen here: elements are floats,
// hvectors have as much gap as data, subarrays are half of their array along each dimension, and irregular blocks fill a
// quarter of theirs.
func HAND() ([]Workload, error) {
	m := &maker{suite: "hand"}
	for length := 1; length <= 1<<14; length *= 4 {
		t := m.hvector(32, length, int64(2*float*length), datatype.Float32)
		m.both("hvector", fmt.Sprintf("blocks=32,block=%d", float*length), filled(t, 1), 0)
		m.scattered(32, length)
	}
	for extent := 8; extent <= 512; extent *= 4 {
		m.halves("inner", extent, 8, extent)
		m.halves("outer", extent, extent, 8)
	}
	for count := 4; count <= 1<<16; count *= 4 {
		m.scattered(count, 1)
	}
	for _, count := range []int{3, 11, 37, 100, 300, 1100, 3700, 10000} {
		m.scattered(count, 8)
	}
	m.particles(131072)
	return m.result()
}

// halves adds a subarray of outer/2 x 8 x 8 x inner/2 elements, but of 8 where a dimension does not grow.
func (m *maker) halves(name string, extent, outer, inner int) {
	half := func(n int) int { return max(8, n/2) }
	sub := []int{half(inner), 8, 8, half(outer)}
	sizes := make([]int, len(sub))
	array := int64(float)
	for d := range sub {
		sizes[d] = 2 * sub[d]
		array *= int64(sizes[d])
	}
	t := m.subarray(sizes, sub, []int{0, 0, 0, 0}, datatype.Float32)
	m.both("subarray-4d-"+name, fmt.Sprintf("extent=%d", extent), Side{Type: t, Count: 1, Array: array}, 0)
}

// scattered adds blocks of equal length at irregular places.
func (m *maker) scattered(count, length int) {
	places := scaled(shuffled(4*count, count), length)
	t := m.indexedBlock(length, places, datatype.Float32)
	m.both("indexed_block", fmt.Sprintf("blocks=%d,block=%d", count, float*length),
		Side{Type: t, Count: 1, Array: 4 * float * int64(count*length)}, 0)
}

// particles adds the simple particle, 10 doubles and an int, all of it, and of the complex one, which has 20 floats between
// them, force and charge.
func (m *maker) particles(count int) {
	simple := m.made(datatype.Struct([]int{10, 1}, []int64{0, 80}, []*datatype.Type{datatype.Float64, datatype.Int32}))
	chosen := m.made(datatype.HIndexed([]int{24, 4}, []int64{48, 160}, datatype.Byte))
	params := fmt.Sprintf("count=%d", count)
	m.both("particle-simple", params, filled(simple, count), 0)
	m.both("particle-complex", params, filled(m.resized(chosen, 168), count), 0)
}
