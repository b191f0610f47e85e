package workloads

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
)

// A window is the part of WRF's arrays that is exchanged: s1 x 65 x s3 of d1 x 65 x d3 floats, from (a, 0, c).
type window struct{ d1, d3, s1, s3, a, c int }

// levels is the vertical extent of WRF's arrays.
const levels = 65

// wrf adds the halo exchanges of a weather model: 4 two-dimensional arrays, 3 of three dimensions and 2 of four, of whose
// last extent of 2 the second is sent. Suite _sa describes them as subarrays, _vec as vectors.
func (m *maker) wrf() {
	for _, w := range []window{{32, 52, 23, 3, 5, 7}, {27, 41, 19, 3, 4, 7}, {24, 34, 16, 3, 4, 7}, {22, 30, 14, 3, 4, 7}, {19, 24, 11, 3, 4, 7}} {
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

// field returns the type of one array, where its displacement 0 lies in it, and its size, in bytes.
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
