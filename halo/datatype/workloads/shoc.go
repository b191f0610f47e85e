package workloads

import (
	"fmt"

	"github.com/halox/halox/halo/datatype"
)

// SHOC returns the exchanges of the nine-point stencil of the SHOC suite (Danalis et al., GPGPU 2010), as Jenkins et al.
// 2014 ran it, table 3: an n x n part with one layer of ghosts, of floats and of doubles. North and south are rows, which
// are contiguous, east and west are columns, all of them with their corners.
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
		m.both(name, fmt.Sprintf("n=%d,type=%v", n, t), Side{Type: part, Count: 1, Origin: send, Array: at(0, pitch)}, recv)
	}
	side("north", row, at(0, 1), at(0, 0))
	side("south", row, at(0, n), at(0, n+1))
	side("west", column, at(1, 0), at(0, 0))
	side("east", column, at(n, 0), at(n+1, 0))
}
