package domain

// Radius is how far something reaches from a point, per direction: Minus
// layers towards smaller indices and Plus layers towards larger ones, an axis
// each. It is the radius of a stencil, or the width of a ghost region.
type Radius struct {
	Minus, Plus Vec
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
