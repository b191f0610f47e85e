package launch

import "github.com/halox/halox/domain"

// Region is struct Region of common.cuh: where the points of a box begin, and how many they are.
type Region struct {
	first, nx, ny, nz int64
}

// RegionOf returns the region of a box.
func RegionOf(l domain.Layout, b domain.Box) Region {
	n := b.Size()
	return Region{l.Offset(b.Lo), int64(n[0]), int64(n[1]), int64(n[2])}
}

// Strides is struct Strides of common.cuh.
type Strides struct {
	pitch, plane int64
}

// StridesOf returns those of a layout.
func StridesOf(l domain.Layout) Strides { return Strides{l.Pitch, l.Plane} }

// EachRow calls f with the place of the first point of every row of the box,
// in order of memory.
func EachRow(l domain.Layout, b domain.Box, f func(first int64)) {
	if b.Empty() {
		return
	}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			f(l.Offset(domain.Vec{b.Lo[0], y, z}))
		}
	}
}
