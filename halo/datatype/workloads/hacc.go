package workloads

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
)

// HACC returns the block of a Voronoi tessellation that Jenkins et al. 2014 pack, figure 7 and table 4: seven ints and six
// floats, then eight arrays at addresses of their own. Their traces are not published. Here a block has so many cells that
// 32,768 particles make eight of them, unevenly, and a cell has what a Voronoi cell of random points has on average: 15.5
// faces, 27 vertices, a quarter of which are its own, and 5.2 vertices a face. Arrays begin at multiples of 256
// bytes and do not touch.
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
	m.both("vblock", fmt.Sprintf("rank=%d,cells=%d", rank, cells), Side{Type: m.structure(places, types), Count: 1, Array: end}, 0)
}
