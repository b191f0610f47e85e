package sweep

import (
	"slices"

	"github.com/halox/halox/kernels"
)

// classes are which arrays have the same strides: the class of each array.
type classes []int

func (c classes) count() int {
	n := 0
	for _, one := range c {
		n = max(n, one+1)
	}
	return n
}

// strides are those of a class of arrays.
type strides struct{ pitch, plane int64 }

func stridesOf(a kernels.Array) strides { return strides{a.Layout.Pitch, a.Layout.Plane} }

// classesOf tells which arrays have the same strides.
func classesOf(arrays []kernels.Array) (c classes, all []strides) {
	for _, a := range arrays {
		s, at := stridesOf(a), 0
		for at < len(all) && all[at] != s {
			at++
		}
		if at == len(all) {
			all = append(all, s)
		}
		c = append(c, at)
	}
	return c, all
}

// usualClasses are those of arrays with the same ghosts: elements of one size have one padding.
func (n *plan) usualClasses() (c classes) {
	var sizes []int
	for _, a := range n.accesses {
		at := slices.Index(sizes, a.Element.size())
		if at < 0 {
			at = len(sizes)
			sizes = append(sizes, a.Element.size())
		}
		for range a.components() {
			c = append(c, at)
		}
	}
	return c
}
