package stencil

import (
	"maps"
	"slices"

	"github.com/halox/halox/domain"
)

// Diamond is a test-only kind: the points of two dimensions up to two steps away.
var Diamond = Kind{13, "diamond"}

// RegisterDiamond adds Diamond to kinds and returns a function that removes it.
func RegisterDiamond() (restore func()) {
	before := kinds
	kinds = maps.Clone(kinds)
	kinds[2] = append(slices.Clone(kinds[2]), discretization{Diamond, 3, 1, diamond})
	return func() { kinds = before }
}

func diamond(inverse []float64, _ bool) Stencil {
	s := Stencil{Dims: 2}
	for _, ring := range []struct{ weight, square int }{{4, 1}, {2, 2}, {1, 4}} {
		points := box(2, 2, func(o domain.Vec) bool { return o[0]*o[0]+o[1]*o[1] == ring.square })
		s.Groups = append(s.Groups, Group{float64(ring.weight) / 12 * inverse[0], points})
	}
	return s.centered()
}

// Words returns the variables, functions and operators of expressions.
func Words() []string {
	return slices.Concat(variableNames(), functionNames(), slices.Collect(maps.Keys(binaryOperators)),
		slices.Collect(maps.Keys(unaryOperators)), slices.Collect(maps.Keys(comparisons)))
}
