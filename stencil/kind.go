package stencil

import (
	"fmt"
	"slices"

	"github.com/halox/halox/domain"
)

// Kind names a discretisation of the Laplacian by the number of its points and their
// shape. On a grid of equal spacing h they are, as weights times h^2:
//
//	dimensions points shape order
//	2           5     star  2  neighbours 1, centre -4
//	2           9     box   2  faces 4/6, corners 1/6, centre -20/6: the error, h^2/12 times the
//	                           Laplacian twice, has no direction
//	2           9     star  4  along each axis -1/12, 4/3, -5/2, 4/3, -1/12
//	2          25     box   4  D along x times F along y plus F along x times D along y, where D is the
//	                           4th-order second difference above and F is (-1, 4, 24, 4, -1)/30: 1 but for
//	                           h^4/30 of the fourth derivative, so that the error, h^4/90 times the Laplacian
//	                           three times, has no direction
//	3           7     star  2  neighbours 1, centre -6
//	3          13     star  4  as the 9-point star
//	3          19     box   2  faces 2/6, edges 1/6, centre -24/6: error as of the 9-point box
//	3          27     box   2  faces 14/30, edges 3/30, corners 1/30, centre -128/30: error as of the 9-point box
//
// A star takes unequal spacings, axis by axis; a box does not.
type Kind struct {
	Points int
	Shape  Shape
}

// Shape says where the points of a Kind lie.
type Shape string

// The shapes: along the axes only, or beside them too.
const (
	StarShape Shape = "star"
	BoxShape  Shape = "box"
)

// kinds are those of two and of three dimensions. The first of so many points is what is
// meant where no shape is given.
var kinds = map[int][]Kind{
	2: {{5, StarShape}, {9, BoxShape}, {9, StarShape}, {25, BoxShape}},
	3: {{7, StarShape}, {13, StarShape}, {19, BoxShape}, {27, BoxShape}},
}

// Kinds returns all for a number of dimensions.
func Kinds(dims int) []Kind { return slices.Clone(kinds[dims]) }

// String gives, for example, "27-point box".
func (k Kind) String() string { return fmt.Sprintf("%d-point %s", k.Points, k.Shape) }

// LaplaceOf returns the sweep for the Laplace equation that a kind gives: the new value is
// what the equation asks of the point given all others (Jacobi). Where that would not
// converge, for stars of fourth order, only the part 2/(highest eigenvalue/centre) = 15/16
// of the change is made, with which the fastest modes die out as slowly as the slowest.
func LaplaceOf(k Kind, spacing []float64) (Stencil, error) {
	if star := starOf(spacing); k == star {
		s, err := Laplace(spacing)
		return s.Stencil(), err
	}
	l, err := k.laplacian(spacing)
	if err != nil {
		return Stencil{}, err
	}
	part := 1.0
	if k.Shape == StarShape {
		part = 15.0 / 16
	}
	return l.step(-part / l.Centre), nil
}

// HeatOf returns the explicit Euler step of the heat equation, see Heat, that a kind gives.
func HeatOf(k Kind, spacing []float64, diffusivity, dt float64) (Stencil, error) {
	s, err := Heat(spacing, diffusivity, dt)
	if err != nil || k == starOf(spacing) {
		return s.Stencil(), err
	}
	l, err := k.laplacian(spacing)
	if err != nil {
		return Stencil{}, err
	}
	return l.step(diffusivity * dt), nil
}

// starOf is the kind of StarWeights.
func starOf(spacing []float64) Kind { return Kind{2*len(spacing) + 1, StarShape} }

// step returns u + factor*(the sum).
func (s Stencil) step(factor float64) Stencil {
	sum := Stencil{Dims: s.Dims, Centre: 1 + factor*s.Centre}
	for _, g := range s.Groups {
		sum.Groups = append(sum.Groups, Group{factor * g.Weight, g.Parts})
	}
	return sum
}

// laplacian returns the kind as a sum that is the Laplacian.
func (k Kind) laplacian(spacing []float64) (Stencil, error) {
	inverse, err := inverseSquares(spacing)
	if err != nil {
		return Stencil{}, err
	}
	dims := len(spacing)
	if !slices.Contains(kinds[dims], k) {
		return Stencil{}, fmt.Errorf("stencil: no %v in %d dimensions: %v", k, dims, kinds[dims])
	}
	if k.Shape == BoxShape && !equal(spacing) {
		return Stencil{}, fmt.Errorf("stencil: a %v needs one spacing on all axes, not %v", k, spacing)
	}
	s := Stencil{Dims: dims}
	switch k {
	case Kind{9, BoxShape}:
		s.Groups = []Group{{4.0 / 6, at(2, 1)}, {1.0 / 6, at(2, 2)}}
	case Kind{19, BoxShape}:
		s.Groups = []Group{{2.0 / 6, at(3, 1)}, {1.0 / 6, at(3, 2)}}
	case Kind{27, BoxShape}:
		s.Groups = []Group{{14.0 / 30, at(3, 1)}, {3.0 / 30, at(3, 2)}, {1.0 / 30, at(3, 3)}}
	case Kind{25, BoxShape}:
		s.Groups = isotropic()
	default:
		return fourthOrderStar(inverse, equal(spacing)), nil
	}
	for i := range s.Groups {
		s.Groups[i].Weight *= inverse[0]
	}
	return s.centred(), nil
}

// centred sets the weight of the centre so that the sum over a constant is 0.
func (s Stencil) centred() Stencil {
	s.Centre = 0
	for _, g := range s.Groups {
		s.Centre -= g.Weight * float64(len(g.Offsets()))
	}
	return s
}

// fourthOrderStar has a group for each distance, and where spacings differ for each axis.
func fourthOrderStar(inverse []float64, equal bool) Stencil {
	s := Stencil{Dims: len(inverse)}
	for distance, weight := range []float64{4.0 / 3, -1.0 / 12} {
		plus, minus := along(s.Dims, distance+1), along(s.Dims, -distance-1)
		if equal {
			s.Groups = append(s.Groups, Group{weight * inverse[0], []Part{append(plus, minus...)}})
			continue
		}
		for a, w := range inverse {
			s.Groups = append(s.Groups, Group{weight * w, []Part{{plus[a], minus[a]}}})
		}
	}
	return s.centred()
}

// isotropic is the groups of the 25-point box.
func isotropic() []Group {
	d, f := []float64{-5.0 / 2, 4.0 / 3, -1.0 / 12}, []float64{24.0 / 30, 4.0 / 30, -1.0 / 30}
	var groups []Group
	for _, at := range [][2]int{{1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}} {
		i, j := at[0], at[1]
		groups = append(groups, Group{d[i]*f[j] + f[i]*d[j], box(2, 2, func(o domain.Vec) bool {
			return max(abs(o[0]), abs(o[1])) == i && min(abs(o[0]), abs(o[1])) == j
		})})
	}
	return groups
}

// at returns the points of the box of 3^dims around the centre that differ from it in so
// many axes.
func at(dims, axes int) []Part {
	return box(dims, 1, func(o domain.Vec) bool { return abs(o[0])+abs(o[1])+abs(o[2]) == axes })
}

// box returns those points of a box around the centre, of that radius along all axes, that
// are wanted: a part for each layer of the last axis, upwards, and in it x fastest.
func box(dims, radius int, wanted func(domain.Vec) bool) (layers []Part) {
	low, high := domain.Vec{}, domain.Vec{}
	for a := range dims {
		low[a], high[a] = -radius, radius
	}
	for z := low[2]; z <= high[2]; z++ {
		for y := low[1]; y <= high[1]; y++ {
			for x := low[0]; x <= high[0]; x++ {
				o := domain.Vec{x, y, z}
				if !wanted(o) {
					continue
				}
				if n := len(layers); n == 0 || layers[n-1][0][dims-1] != o[dims-1] {
					layers = append(layers, nil)
				}
				layers[len(layers)-1] = append(layers[len(layers)-1], o)
			}
		}
	}
	return layers
}

func abs(n int) int { return max(n, -n) }
