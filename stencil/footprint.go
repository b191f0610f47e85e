package stencil

import "github.com/halox/halox/domain"

// Footprint is the points that are read around a point, as offsets from it. An empty footprint
// is the point alone.
type Footprint []domain.Vec

// Radius returns how far the footprint reaches in - and in + directions.
func (f Footprint) Radius() (r domain.Radius) {
	for _, o := range f {
		for a, d := range o {
			r.Minus[a], r.Plus[a] = max(r.Minus[a], -d), max(r.Plus[a], d)
		}
	}
	return r
}

// Axes returns along how many axes an offset of the footprint differs from the point, at most:
// with 1 it needs neighbours across faces, with 2 across edges too, with 3 across corners.
func (f Footprint) Axes() (most int) {
	for _, o := range f {
		axes := 0
		for _, d := range o {
			if d != 0 {
				axes++
			}
		}
		most = max(most, axes)
	}
	return most
}

// Footprint returns the points that the stencil reads.
func (s Stencil) Footprint() Footprint { return append(Footprint{{}}, s.Offsets()...) }
