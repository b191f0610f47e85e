package workloads

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
)

// Wu returns the layouts of Wu, Bosilca, vandeVaart, Jeaugey and Dongarra, "GPU-Aware Non-contiguous Data Movement In Open
// MPI", HPDC 2016, figures 5 to 15: matrices of doubles in column-major order, 1K to 4K on an edge, of which a sub-matrix
// (V), the lower triangle (T) and a triangle in stairs go; V received as one piece; the transpose; and vectors of 1000 and
// 8000 blocks. Chosen here: the sub-matrix is a quarter of its matrix, a stair has 256 columns, twice and once, and vectors
// have as much gap as data.
func Wu() ([]Workload, error) {
	m := &maker{suite: "wu"}
	for _, n := range []int{1 << 10, 2 << 10, 3 << 10, 4 << 10} {
		m.matrices(n)
	}
	for _, blocks := range []int{1000, 8000} {
		for _, bytes := range []int{8, 56, 64, 192, 200, 256, 1024, 1032, 4096} {
			t := m.hvector(blocks, bytes, int64(2*bytes), datatype.Byte)
			m.both("vector", fmt.Sprintf("blocks=%d,block=%d", blocks, bytes), filled(t, 1), 0)
		}
	}
	return m.result()
}

func (m *maker) matrices(n int) {
	params := fmt.Sprintf("n=%d", n)
	array := double * int64(n) * int64(n)
	whole := m.packed(n*n, datatype.Float64)
	sub := Side{Type: m.vector(n, n, 2*n, datatype.Float64), Count: 1, Array: 4 * array}
	m.both("V", params, sub, 0)
	m.add("V-contiguous", params, sub, whole)
	m.both("T", params, Side{Type: m.stairs(n, 1), Count: 1, Array: array}, 0)
	for _, width := range []int{256, 512} {
		m.both("stairs", fmt.Sprintf("n=%d,nb=%d", n, width), Side{Type: m.stairs(n, width), Count: 1, Array: array}, 0)
	}
	row := m.resized(m.vector(n, 1, n, datatype.Float64), double)
	m.add("transpose", params, whole, Side{Type: row, Count: n, Array: array})
}

// stairs returns the lower triangle of an n x n matrix in steps of that width: each column begins at the diagonal of the
// first column of its step.
func (m *maker) stairs(n, width int) *datatype.Type {
	lengths, places := make([]int, n), make([]int, n)
	for column := range n {
		first := column / width * width
		lengths[column], places[column] = n-first, column*n+first
	}
	return m.made(datatype.Indexed(lengths, places, datatype.Float64))
}
