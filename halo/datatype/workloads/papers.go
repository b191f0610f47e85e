package workloads

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/halox/halox/halo/datatype"
)

// Wu returns the layouts of Wu, Bosilca, vandeVaart, Jeaugey and Dongarra, "GPU-Aware Non-contiguous Data
// Movement In Open MPI", HPDC 2016, figures 5 to 15: from matrices of doubles in column-major order, 1K to 4K
// per edge, a sub-matrix (V), the lower triangle (T) and a stair-shaped triangle; V received contiguously;
// the transpose; and vectors of 1000 and 8000 blocks. Chosen here: the sub-matrix is a quarter of its matrix,
// a stair has 256 columns, twice and once, and vectors have as much gap as data.
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

// stairs returns the lower triangle of an n x n matrix in steps of that width: each column begins at the diagonal of
// the first column of its step.
func (m *maker) stairs(n, width int) *datatype.Type {
	lengths, places := make([]int, n), make([]int, n)
	for column := range n {
		first := column / width * width
		lengths[column], places[column] = n-first, column*n+first
	}
	return m.made(datatype.Indexed(lengths, places, datatype.Float64))
}

// Jenkins returns the layouts of Jenkins, Dinan, Balaji, Peterka, Samatova and Thakur, "Processing MPI Derived
// Datatypes on Noncontiguous GPU-Resident Data", TPDS 2014, figures 4 to 6 and table 2: vectors at a stride of 512
// bytes with blocks of 8 to 128 bytes, the same blocks indexed, and also at irregular places, hypercubes in a volume of
// 64^4, and a struct of a double, two ints and a char. Elements are doubles. The packed sizes, 1 KiB to 4 MiB, and
// figure 5's count of 8192 were chosen here.
func Jenkins() ([]Workload, error) {
	m := &maker{suite: "jenkins"}
	for _, length := range []int{1, 4, 16} {
		for _, bytes := range []int{1 << 10, 16 << 10, 256 << 10, 4 << 20} {
			m.strided(bytes/(double*length), length)
		}
	}
	for _, count := range []int{128, 2 << 10, 32 << 10, 512 << 10} {
		m.irregular(count)
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

// irregular adds blocks of a double, one at a random place in every 512 bytes, so that they are not a vector.
func (m *maker) irregular(count int) {
	places, r := make([]int, count), rand.New(rand.NewPCG(seed, uint64(count)))
	for i := range places {
		places[i] = 64*i + r.IntN(64)
	}
	params := fmt.Sprintf("blocks=%d,block=%d", count, double)
	indexed := m.made(datatype.Indexed(slices.Repeat([]int{1}, count), places, datatype.Float64))
	m.both("indexed-irregular", params, filled(indexed, 1), 0)
	m.both("idxblock-irregular", params, filled(m.indexedBlock(1, places, datatype.Float64), 1), 0)
}

// cStruct returns struct { double; int[2]; char }, 24 bytes with its padding.
func (m *maker) cStruct() *datatype.Type {
	return m.made(datatype.Struct([]int{1, 2, 1}, []int64{0, 8, 16},
		[]*datatype.Type{datatype.Float64, datatype.Int32, datatype.Int8}))
}

// SHOC returns the exchanges of the nine-point stencil of the SHOC suite (Danalis et al., GPGPU 2010), as Jenkins et
// al. 2014 ran it, table 3: an n x n part with one layer of ghosts, of floats and of doubles. North and south are rows,
// which are contiguous, east and west are columns, all of them with their corners.
func SHOC() ([]Workload, error) {
	m := &maker{suite: "shoc"}
	for _, n := range []int{128, 256, 512, 1024, 2048} {
		for _, t := range []*datatype.Type{datatype.Float32, datatype.Float64} {
			m.nine(n, t)
		}
	}
	return m.result()
}

func (m *maker) nine(n int, t *datatype.Type) {
	pitch := n + 2
	row, column := m.contiguous(pitch, t), m.vector(pitch, 1, pitch, t)
	at := func(x, y int) int64 { return t.Size() * int64(x+pitch*y) }
	side := func(name string, part *datatype.Type, send, recv int64) {
		m.both(name, fmt.Sprintf("n=%d,type=%v", n, t), Side{Type: part, Count: 1, Origin: send, Array: at(0, pitch)},
			recv)
	}
	side("north", row, at(0, 1), at(0, 0))
	side("south", row, at(0, n), at(0, n+1))
	side("west", column, at(1, 0), at(0, 0))
	side("east", column, at(n, 0), at(n+1, 0))
}

// HACC returns the block of a Voronoi tessellation that Jenkins et al. 2014 pack, figure 7 and table 4: seven
// ints and six floats, then eight arrays at separate addresses. Their traces are not published. Here 32,768
// particles make eight blocks, unevenly, and a cell has the averages of a Voronoi cell of random points: 15.5
// faces, 27 vertices, a quarter of which are its own, and 5.2 vertices per face. Arrays begin at multiples of
// 256 bytes and are not adjacent.
func HACC() ([]Workload, error) {
	m := &maker{suite: "hacc"}
	for rank, cells := range []int{3968, 1664, 8192, 7168, 4096, 1024, 4224, 2432} {
		m.tessellation(rank, cells)
	}
	return m.result()
}

func (m *maker) tessellation(rank, cells int) {
	vertices, faces := cells*27/4, cells*31/2
	types := []*datatype.Type{m.contiguous(7, datatype.Int32), m.contiguous(6, datatype.Float32)}
	places := []int64{0, 28}
	end := int64(256)
	array := func(count int, t *datatype.Type) {
		types, places = append(types, m.contiguous(count, t)), append(places, end)
		end += (int64(count)*t.Size()/256 + 2) * 256
	}
	array(3*vertices, datatype.Float32) // vertices
	array(3*cells, datatype.Float32)    // sites
	array(cells, datatype.Float32)      // areas
	array(cells, datatype.Float32)      // vols
	array(27*cells, datatype.Int32)     // cells
	array(faces*26/5, datatype.Int32)   // face_verts
	array(cells, datatype.Int32)        // num_cell_faces
	array(faces, datatype.Int32)        // num_face_verts
	m.both("vblock", fmt.Sprintf("rank=%d,cells=%d", rank, cells),
		Side{Type: m.structure(places, types), Count: 1, Array: end}, 0)
}

// HAND returns the layouts of Shi, Lu, Potluri, Hamidouche, Zhang and Panda, "HAND: A Hybrid Approach to
// Accelerate Non-contiguous Data Movement using MPI Datatypes on GPU Clusters", ICPP 2014, figures 4 to 10
// and section V: hvectors of 32 blocks, four-dimensional subarrays that grow along their innermost or
// outermost dimension, blocks at irregular places (count or block length fixed; counts that are not powers of
// two), and the 131,072 particles of an N-body code. Chosen here: elements are floats, hvectors have as much
// gap as data, subarrays are half of their array along each dimension, and irregular blocks fill a quarter of
// theirs.
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

// halves adds a subarray of outer/2 x 8 x 8 x inner/2 elements, 8 for dimensions that do not grow.
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

// particles adds the simple particle, 10 doubles and an int, completely, and force and charge of the complex
// particle, which has 20 floats between them.
func (m *maker) particles(count int) {
	simple := m.made(datatype.Struct([]int{10, 1}, []int64{0, 80}, []*datatype.Type{datatype.Float64, datatype.Int32}))
	chosen := m.made(datatype.HIndexed([]int{24, 4}, []int64{48, 160}, datatype.Byte))
	params := fmt.Sprintf("count=%d", count)
	m.both("particle-simple", params, filled(simple, count), 0)
	m.both("particle-complex", params, filled(m.resized(chosen, 168), count), 0)
}

// TEMPI returns the objects of Pearson, Wu, Chung, Hidayetoglu, Hwu et al., "TEMPI: An Interposed MPI Library
// with a Canonical Representation of CUDA-aware Datatypes", HPDC 2021: objects of 1 KiB to 4 MiB in blocks at
// a pitch of 512 bytes, as vectors and as subarrays; cubes of bytes in an allocation of 1024^3, with edges
// chosen here; and the 26 messages of a halo of radius 3 around 256^3 points with 8 values of 8 bytes.
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
	subarray := Side{Type: m.subarray([]int{pitch, blocks}, []int{block, blocks}, []int{0, 0}, datatype.Byte),
		Count: 1, Array: array}
	m.both("2d-vector", params, vector, 0)
	m.both("2d-subarray", params, subarray, 0)
}

func (m *maker) cube(edge int) {
	const all = 1024
	t := m.subarray([]int{all, all, all}, []int{edge, edge, edge}, []int{0, 0, 0}, datatype.Byte)
	m.both("3d-subarray", fmt.Sprintf("edge=%d", edge), Side{Type: t, Count: 1, Array: all * all * all}, 0)
}

// halo adds the messages of a cube of n points along each edge to its 26 neighbors, with all layers of ghosts
// around it.
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

// haloRange returns along one axis the extent of a message in a direction, the start of its points, and the
// start of the ghosts that a neighbor's message in the same direction fills.
func haloRange(direction, n, radius int) (size, sent, received int) {
	switch direction {
	case -1:
		return radius, radius, n + radius
	case 1:
		return radius, n, 0
	}
	return n, radius, radius
}

// All returns the workloads of all suites.
func All() ([]Workload, error) {
	var all []Workload
	for _, suite := range []func() ([]Workload, error){DDTBench, TEMPI, Jenkins, HAND, Wu, SHOC, HACC} {
		workloads, err := suite()
		if err != nil {
			return nil, err
		}
		all = append(all, workloads...)
	}
	return all, nil
}
