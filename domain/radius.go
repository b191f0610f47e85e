package domain

import "fmt"

// Radius is how far something reaches from a point, per direction: Minus
// layers towards smaller indices and Plus layers towards larger ones, an axis
// each. It is the radius of a stencil, or the width of a ghost region.
type Radius struct {
	Minus, Plus Vec
}

// maxLayers is more than any device holds.
const maxLayers = 1 << 31

// check returns an error if the radius is negative somewhere, or has 2^31 layers or more.
func (r Radius) check() error {
	for a := range 3 {
		if r.Minus[a] < 0 || r.Plus[a] < 0 {
			return fmt.Errorf("domain: a width of %v in - and %v in + directions: neither may be negative", r.Minus, r.Plus)
		}
		if r.Minus[a] >= maxLayers || r.Plus[a] >= maxLayers {
			return fmt.Errorf("domain: a width of %v in - and %v in + directions: less than 2^31 layers are possible", r.Minus, r.Plus)
		}
	}
	return nil
}

// UniformRadius returns radius r in both directions of the first dims axes and
// 0 on the others.
func UniformRadius(dims, r int) Radius {
	var u Radius
	for a := range dims {
		u.Minus[a], u.Plus[a] = r, r
	}
	return u
}
