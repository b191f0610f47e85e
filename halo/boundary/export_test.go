package boundary

import "github.com/halox/halox/kernels"

// Register adds two kinds that no other file knows, and returns what removes them. Of "symmetric" the field is even about
// the nearest points, on which the face lies, so that the n-th ghost is a copy of the point n+1 steps inside. Of "robin"
// the field u has a*u + b*du/dn = g at the face, half a spacing h from the nearest point, with the mean of a ghost and of
// the point as far from the face for u, and their difference for the derivative along the outward normal.
func Register(a, b, g, h float64) (remove func()) {
	rules["symmetric"] = rule{source: func(n int) int { return n + 1 }, named: true}
	rules["robin"] = rule{
		distance: 0.5, source: func(n int) int { return n }, named: true,
		scale: func(_ *Condition, n int) kernels.Scale {
			slope := b / (float64(2*n+1) * h)
			return kernels.Scale{Factor: (slope - a/2) / (slope + a/2), Shift: g / (slope + a/2)}
		},
	}
	return func() { delete(rules, "symmetric"); delete(rules, "robin") }
}
