package workloads

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
)

// TEMPI returns the objects of Pearson, Wu, Chung, Hidayetoglu, Hwu et al., "TEMPI: An Interposed MPI Library with a
// Canonical Representation of CUDA-aware Datatypes", HPDC 2021: objects of 1 KiB to 4 MiB in blocks at a pitch of 512
// bytes, once as vectors and once as subarrays; cubes of bytes in an allocation of 1024^3, whose edges were chosen here; and
// the 26 messages of a halo of radius 3 around 256^3 points with 8 values of 8 bytes.
func TEMPI() ([]Workload, error) {
	m := &maker{suite: "tempi"}
	for _, total := range []int{1 << 10, 1 << 20, 4 << 20} {
		for _, block := range []int{1, 2, 4, 8, 32, 64, 128, 256, 512} {
			m.pitched(total, block)
		}
	}
	for _, edge := range []int{8, 16, 32, 64, 128, 256} {
		m.cube(edge)
	}
	m.halo(256, 3)
	return m.result()
}

func (m *maker) pitched(total, block int) {
	const pitch = 512
	blocks := total / block
	params := fmt.Sprintf("bytes=%d,block=%d", total, block)
	array := int64(blocks) * pitch
	vector := Side{Type: m.vector(blocks, block, pitch, datatype.Byte), Count: 1, Array: array}
	subarray := Side{Type: m.subarray([]int{pitch, blocks}, []int{block, blocks}, []int{0, 0}, datatype.Byte), Count: 1, Array: array}
	m.both("2d-vector", params, vector, 0)
	m.both("2d-subarray", params, subarray, 0)
}

func (m *maker) cube(edge int) {
	const all = 1024
	t := m.subarray([]int{all, all, all}, []int{edge, edge, edge}, []int{0, 0, 0}, datatype.Byte)
	m.both("3d-subarray", fmt.Sprintf("edge=%d", edge), Side{Type: t, Count: 1, Array: all * all * all}, 0)
}

// halo adds the messages of a cube of n points along each edge to its 26 neighbours, with all layers of ghosts around it.
func (m *maker) halo(n, radius int) {
	point := m.contiguous(8, datatype.Float64)
	edge := n + 2*radius
	array := point.Size() * int64(edge) * int64(edge) * int64(edge)
	for direction := range 27 {
		d := [3]int{direction%3 - 1, direction/3%3 - 1, direction/9 - 1}
		if d == [3]int{} {
			continue
		}
		var subsizes, sent, received [3]int
		for a := range d {
			subsizes[a], sent[a], received[a] = haloRange(d[a], n, radius)
		}
		sizes := []int{edge, edge, edge}
		m.add("halo", fmt.Sprintf("x=%+d,y=%+d,z=%+d", d[0], d[1], d[2]),
			Side{Type: m.subarray(sizes, subsizes[:], sent[:], point), Count: 1, Array: array},
			Side{Type: m.subarray(sizes, subsizes[:], received[:], point), Count: 1, Array: array})
	}
}

// haloRange returns along one axis the extent of a message in a direction, where its points begin, and where the ghosts
// begin which a neighbour's message in the same direction fills.
func haloRange(direction, n, radius int) (size, sent, received int) {
	switch direction {
	case -1:
		return radius, radius, n + radius
	case 1:
		return radius, n, 0
	}
	return n, radius, radius
}
