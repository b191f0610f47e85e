package step_test

import (
	"github.com/halox/halox/domain"
	"github.com/halox/halox/kernels/rows"
	"github.com/halox/halox/stencil"
)

// plainSum is the stencil at one point, as stencil.Stencil defines it.
func plainSum[T rows.Float](s stencil.Stencil, l domain.Layout, v []T, p domain.Vec) T {
	u := T(T(s.Centre) * v[l.Offset(p)])
	for _, g := range s.Groups {
		var sum T
		for i, part := range g.Parts {
			one := v[l.Offset(p.Add(part[0]))]
			for _, o := range part[1:] {
				one += v[l.Offset(p.Add(o))]
			}
			if i == 0 {
				sum = one
			} else {
				sum += one
			}
		}
		u += T(T(g.Weight) * sum)
	}
	return u
}
