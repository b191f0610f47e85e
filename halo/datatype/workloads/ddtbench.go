package workloads

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
)

// DDTBench returns the micro-applications of Schneider, Gerstenberger and Hoefler, "Micro-Applications for
// Communication Data Access Patterns and MPI Datatypes", EuroMPI 2012, with the parameter sets of their
// sources. Arrays that DDTBench allocates separately are consecutive parts of one array here. FFT2D is on 2,
// 4 and 8 ranks, one message of each.
func DDTBench() ([]Workload, error) {
	m := &maker{suite: "ddtbench"}
	m.nasMG()
	m.nasLU()
	m.milc()
	m.specfem()
	m.lammps()
	m.wrf()
	m.fft()
	return m.result()
}

// nasMG adds the face exchanges of a multigrid solver, of d1 x d2 x d3 doubles: the outermost owned layer is sent, and
// received one layer further out.
func (m *maker) nasMG() {
	for _, d := range [][3]int{{34, 18, 18}, {130, 66, 66}, {258, 130, 130}, {514, 258, 258}} {
		d1, d2, d3 := d[0], d[1], d[2]
		params := fmt.Sprintf("d1=%d,d2=%d,d3=%d", d1, d2, d3)
		at := func(x, y, z int) int64 { return double * int64(x+d1*(y+d2*z)) }
		face := func(name string, t *datatype.Type, send, recv int64) {
			m.both("NAS_MG_"+name, params, Side{Type: t, Count: 1, Origin: send, Array: at(0, 0, d3)}, recv)
		}
		column := m.vector(d2-2, 1, d1, datatype.Float64)
		face("x", m.hvector(d3-2, 1, at(0, 0, 1), column), at(d1-2, 1, 1), at(d1-1, 1, 1))
		face("y", m.vector(d3-2, d1-2, d1*d2, datatype.Float64), at(1, d2-2, 1), at(1, d2-1, 1))
		face("z", m.vector(d2-2, d1-2, d1, datatype.Float64), at(1, 1, 1), at(1, 1, 0))
	}
}

// nasLU adds the exchanges of a solver with 5 doubles per point, (d2+2) x (d3+2) points.
func (m *maker) nasLU() {
	point := m.contiguous(5, datatype.Float64)
	for _, d := range []int{12, 33, 64, 102, 162, 408, 1020} {
		params := fmt.Sprintf("d2=%d,d3=%d", d, d)
		at := func(x, y int) int64 { return 5 * double * int64(x+(d+2)*y) }
		row := Side{Type: m.contiguous(5*d, datatype.Float64), Count: 1, Origin: at(1, d), Array: at(0, d+2)}
		column := Side{Type: m.vector(d, 1, d+2, point), Count: 1, Origin: at(d, 1), Array: at(0, d+2)}
		m.both("NAS_LU_x", params, row, at(1, d+1))
		m.both("NAS_LU_y", params, column, at(d+1, 1))
	}
}

// milc adds the exchange in z of a lattice of su3 vectors, 6 floats each, even sites before odd ones.
func (m *maker) milc() {
	site := m.contiguous(6, datatype.Float32)
	for _, d := range [][4]int{{16, 16, 16, 16}, {8, 16, 16, 16}, {8, 8, 8, 16}, {8, 8, 8, 8}} {
		sites := d[0] * d[1] * d[2] * d[3]
		plane := m.vector(d[3], d[0]*d[1]/2, d[0]*d[1]*d[2]/2, site)
		t := m.hvector(2, 1, site.Size()*int64(sites/2), plane)
		m.both("MILC_su3_zd", fmt.Sprintf("d2=%d,d3=%d,d4=%d,d5=%d", d[0], d[1], d[2], d[3]),
			Side{Type: t, Count: 1, Array: site.Size() * int64(sites)}, 0)
	}
}

// specfem adds the assembly of fields at shared points of an unstructured mesh: the outer core, where points have one
// float, crust and mantle, where they have three, and those sent every other point.
func (m *maker) specfem() {
	for _, d := range [][2]int{{88881, 3225}, {38585, 1897}, {12857, 877}, {3697, 493}} {
		t := m.indexedBlock(1, shuffled(d[0], d[1]), datatype.Float32)
		m.both("SPECFEM3D_oc", fmt.Sprintf("array=%d,n=%d", d[0], d[1]),
			Side{Type: t, Count: 1, Array: float * int64(d[0])}, 0)
	}
	for _, d := range [][4]int{{834917, 11797, 51153, 3009}, {396849, 7125, 22477, 1729}, {152001, 3801, 7209, 801},
		{39929, 1957, 1225, 245}} {
		m.crustMantle(d[0], d[1], d[2], d[3])
	}
	point := m.contiguous(3, datatype.Float32)
	for _, d := range []int{7600, 6400, 5600, 6200} {
		send := Side{Type: m.vector(d, 1, 2, point), Count: 1, Array: 2 * point.Size() * int64(d)}
		m.add("SPECFEM3D_mt", fmt.Sprintf("d=%d", d), send, m.packed(3*d, datatype.Float32))
	}
}

func (m *maker) crustMantle(array1, n1, array2, n2 int) {
	crust := m.indexedBlock(3, scaled(shuffled(array1, n1), 3), datatype.Float32)
	core := m.indexedBlock(3, scaled(shuffled(array2, n2), 3), datatype.Float32)
	second := 3 * float * int64(array1)
	t := m.structure([]int64{0, second}, []*datatype.Type{crust, core})
	m.both("SPECFEM3D_cm", fmt.Sprintf("array1=%d,n1=%d,array2=%d,n2=%d", array1, n1, array2, n2),
		Side{Type: t, Count: 1, Array: second + 3*float*int64(array2)}, 0)
}

// lammps adds the exchange of atoms: n of d in the arrays of the sender, n after the last of the receiver's.
func (m *maker) lammps() {
	for _, d := range [][2]int{{3534, 3062}, {2597, 2243}, {1907, 1662}} {
		m.atoms("LAMMPS_full", d[0], d[1], 6)
	}
	for _, d := range [][2]int{{4084, 243}, {2157, 145}, {1217, 114}} {
		m.atoms("LAMMPS_atomic", d[0], d[1], 4)
	}
}

// atoms adds an exchange of that many arrays, the first with three doubles per atom, all others with one.
func (m *maker) atoms(name string, d, n, arrays int) {
	chosen := shuffled(d, n)
	sent := []*datatype.Type{m.indexedBlock(3, scaled(chosen, 3), datatype.Float64)}
	received := []*datatype.Type{m.contiguous(3*n, datatype.Float64)}
	from, to := []int64{0}, []int64{3 * double * int64(d)}
	end := 3 * double * int64(d+n)
	for range arrays - 1 {
		sent, from = append(sent, m.indexedBlock(1, chosen, datatype.Float64)), append(from, end)
		received, to = append(received, m.contiguous(n, datatype.Float64)), append(to, end+double*int64(d))
		end += double * int64(d+n)
	}
	m.add(name, fmt.Sprintf("d=%d,n=%d", d, n),
		Side{Type: m.structure(from, sent), Count: 1, Array: end},
		Side{Type: m.structure(to, received), Count: 1, Array: end})
}

// fft adds the transpose of an n x n matrix of complex doubles by rows on some ranks: the message from one
// rank to another.
func (m *maker) fft() {
	for _, n := range []int{256, 512, 768, 1024, 1536} {
		for _, ranks := range []int{2, 4, 8} {
			rows := n / ranks
			column := m.resized(m.vector(rows, 1, n, datatype.Complex128), complexBytes)
			square := m.resized(m.vector(rows, rows, n, datatype.Complex128), complexBytes*int64(rows))
			array := complexBytes * int64(rows) * int64(n)
			m.add("FFT2D", fmt.Sprintf("n=%d,ranks=%d", n, ranks),
				Side{Type: m.contiguous(rows, column), Count: 1, Array: array},
				Side{Type: square, Count: 1, Array: array})
		}
	}
}

// A window is the part of WRF's arrays that is exchanged: s1 x 65 x s3 of d1 x 65 x d3 floats, from (a, 0, c).
type window struct{ d1, d3, s1, s3, a, c int }

// levels is the vertical extent of WRF's arrays.
const levels = 65

// wrf adds the halo exchanges of a weather model: 4 two-dimensional arrays, 3 three-dimensional and 2
// four-dimensional ones, of whose last extent of 2 the second is sent. Suite _sa describes them as subarrays,
// _vec as vectors.
func (m *maker) wrf() {
	for _, w := range []window{{32, 52, 23, 3, 5, 7}, {27, 41, 19, 3, 4, 7}, {24, 34, 16, 3, 4, 7},
		{22, 30, 14, 3, 4, 7}, {19, 24, 11, 3, 4, 7}} {
		m.weather("y", w)
	}
	for _, w := range []window{{32, 52, 3, 44, 22, 4}, {24, 34, 3, 26, 14, 4}, {19, 24, 3, 16, 9, 4}} {
		m.weather("x", w)
	}
}

func (m *maker) weather(axis string, w window) {
	params := fmt.Sprintf("d1=%d,d3=%d,s1=%d,s3=%d", w.d1, w.d3, w.s1, w.s3)
	for _, form := range []string{"sa", "vec"} {
		side := m.fields(w, form)
		m.both("WRF_"+axis+"_"+form, params, side, side.Origin)
	}
}

// fields returns the struct of all nine arrays, one after another in memory.
func (m *maker) fields(w window, form string) Side {
	var types []*datatype.Type
	var places []int64
	end := int64(0)
	for _, dims := range []int{2, 2, 2, 2, 3, 3, 3, 4, 4} {
		t, start, size := m.field(w, form, dims)
		types, places = append(types, t), append(places, end+start)
		end += size
	}
	return Side{Type: m.structure(places, types), Count: 1, Array: end}
}

// field returns the type of one array, the offset of its displacement 0 in the array, and its size, in bytes.
func (m *maker) field(w window, form string, dims int) (t *datatype.Type, start, size int64) {
	sizes, subsizes, starts := []int{w.d1, levels, w.d3, 2}, []int{w.s1, levels, w.s3, 1}, []int{w.a, 0, w.c, 1}
	if dims == 2 {
		sizes, subsizes, starts = []int{w.d1, w.d3}, []int{w.s1, w.s3}, []int{w.a, w.c}
	}
	sizes, subsizes, starts = sizes[:dims], subsizes[:dims], starts[:dims]
	size = float
	for d, n := range sizes {
		start += size * int64(starts[d])
		size *= int64(n)
	}
	if form == "sa" {
		return m.subarray(sizes, subsizes, starts, datatype.Float32), 0, size
	}
	rows := m.vector(subsizes[1], w.s1, w.d1, datatype.Float32)
	if dims > 2 {
		rows = m.hvector(w.s3, 1, float*int64(w.d1*levels), rows)
	}
	return rows, start, size
}
