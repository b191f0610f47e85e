package halo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/halox/halox/domain"
)

// Element is the type of one value of a field, "float64" or "12 bytes". To an
// exchange only its size matters.
type Element string

// The numeric elements. Bytes makes others.
const (
	Float32    Element = "float32"
	Float64    Element = "float64"
	Int32      Element = "int32"
	Int64      Element = "int64"
	Complex64  Element = "complex64"
	Complex128 Element = "complex128"
)

// Bytes is an element of n bytes that halox knows nothing more of.
func Bytes(n int) Element { return Element(strconv.Itoa(n) + " bytes") }

// Size returns the size in bytes, 0 if e is no element.
func (e Element) Size() int {
	switch e {
	case Float32, Int32:
		return 4
	case Float64, Int64, Complex64:
		return 8
	case Complex128:
		return 16
	}
	digits, ok := strings.CutSuffix(string(e), " bytes")
	if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 {
		return n
	}
	return 0
}

// Connectivity says which neighbours a field needs points of.
type Connectivity int

// The reaches. A star stencil needs faces, a box stencil corners too.
const (
	Faces   Connectivity = iota // neighbours across a face
	Edges                       // and across an edge
	Corners                     // and across a corner: all of them
)

// Spec describes a field. The zero values of all but Name and Element are good:
// one value a point, no ghosts, at the points of the grid.
type Spec struct {
	Name         string
	Element      Element
	Components   int  // values a point; 0 counts as 1
	SoA          bool // every component is an array of its own; else those of a point lie together
	Width        domain.Radius
	Connectivity Connectivity
	Stagger      [3]bool // the axes along which it lies between points, see domain.Staggered
}

// Arrays returns how many arrays a subdomain has of the field, and the bytes of
// one point in each.
func (s Spec) Arrays() (count, bytes int) {
	components := max(1, s.Components)
	if s.SoA {
		return components, s.Element.Size()
	}
	return 1, components * s.Element.Size()
}

// check returns an error unless the field can be placed on the cut.
func (s Spec) check(cut *domain.Decomposition) error {
	fail := func(err error) error { return fmt.Errorf("halo: field %q: %w", s.Name, err) }
	if s.Element.Size() == 0 {
		return fail(fmt.Errorf("%q is no element: float32, float64, int32, int64, complex64, complex128, or halo.Bytes(n)", s.Element))
	}
	if s.Components < 0 || s.Connectivity < Faces || s.Connectivity > Corners {
		return fail(fmt.Errorf("%d components, reach %d", s.Components, s.Connectivity))
	}
	for a := range 3 {
		if s.Width.Minus[a] < 0 || s.Width.Plus[a] < 0 {
			return fail(fmt.Errorf("a ghost width of %v", s.Width))
		}
		if a >= cut.Grid.Dims && (s.Width.Minus[a] > 0 || s.Width.Plus[a] > 0 || s.Stagger[a]) {
			return fail(fmt.Errorf("ghosts or staggering along %c, which a grid of %d dimensions has not", "xyz"[a], cut.Grid.Dims))
		}
	}
	if err := cut.Staggered(s.Stagger).CheckWidth(s.Width); err != nil {
		return fail(err)
	}
	return nil
}
