package stencil

import (
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
)

// Kind names a discretisation of the Laplacian by the number of its points and their
// shape. On a grid of equal spacing h they are, as weights times h^2:
//
//	dimensions points shape order
//	1           3     star  2  neighbours 1, centre -2
//	1           5     star  4  -1/12, 4/3, -5/2, 4/3, -1/12
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
// A star takes unequal spacings, axis by axis; a box does not. The stencils of one spacing are of grids of two
// dimensions, and reach along x alone.
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

// discretisation is what there is to know of a Kind.
type discretisation struct {
	Kind
	// highest is the largest eigenvalue of the Laplacian, on which the stability of a step
	// depends, times h^2: of each axis for a star, of all together for others.
	highest float64
	part    float64 // of the change that the Laplace equation asks for: what LaplaceOf makes of it
	// weights returns the sum that is the Laplacian, by the inverse squares of the spacings; nil
	// for StarWeights.
	weights func(inverse []float64, equal bool) Stencil
}

// kinds are those of one, two and three dimensions. The first of so many points is what is
// meant where no shape is given, and of all the first where nothing is. A new one is a line
// here; the tests of stencil add one.
var kinds = map[int][]discretisation{
	1: {
		{Kind{3, StarShape}, 4, 1, nil},
		{Kind{5, StarShape}, 16. / 3, 15. / 16, fourthOrderStar},
	},
	2: {
		{Kind{5, StarShape}, 4, 1, nil},
		{Kind{9, BoxShape}, 16. / 3, 1, layersOf(4./6, 1./6)},
		{Kind{9, StarShape}, 16. / 3, 15. / 16, fourthOrderStar},
		{Kind{25, BoxShape}, 16./3 + 49./125, 1, isotropic},
	},
	3: {
		{Kind{7, StarShape}, 4, 1, nil},
		{Kind{13, StarShape}, 16. / 3, 15. / 16, fourthOrderStar},
		{Kind{19, BoxShape}, 16. / 3, 1, layersOf(2./6, 1./6)},
		{Kind{27, BoxShape}, 92. / 15, 1, layersOf(14./30, 3./30, 1./30)},
	},
}

// Kinds returns all for a number of dimensions.
func Kinds(dims int) (all []Kind) {
	for _, d := range kinds[dims] {
		all = append(all, d.Kind)
	}
	return all
}

// OneSpacing reports whether the kind needs one spacing on all axes.
func (k Kind) OneSpacing() bool { return k.Shape != StarShape }

// StableStep returns the largest time step with which HeatOf is stable, 2/diffusivity over the
// largest eigenvalue of the Laplacian; 0 for an unknown kind. With the stars of 5 and 7
// points that is 1 / (2 diffusivity sum of 1/h_a^2), and on equal spacings exactly
// h*h/(4*diffusivity) in two dimensions and h*h/(6*diffusivity) in three.
func (k Kind) StableStep(spacing []float64, diffusivity float64) float64 {
	d, ok := k.find(len(spacing))
	if !ok {
		return 0
	}
	h, inverse := spacing[0], 0.0
	for _, s := range spacing {
		inverse += 1 / (s * s)
	}
	switch {
	case k.OneSpacing():
		return 2 * h * h / (d.highest * diffusivity)
	case d.highest == 4 && equal(spacing):
		return h * h / (float64(2*len(spacing)) * diffusivity)
	}
	return 2 / (d.highest * diffusivity * inverse)
}

// find returns the kind of a number of dimensions, if there is one.
func (k Kind) find(dims int) (discretisation, bool) {
	i := slices.IndexFunc(kinds[dims], func(d discretisation) bool { return d.Kind == k })
	if i < 0 {
		return discretisation{}, false
	}
	return kinds[dims][i], true
}

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
	l, part, err := k.laplacian(spacing)
	if err != nil {
		return Stencil{}, err
	}
	return l.step(-part / l.Centre), nil
}

// HeatOf returns the explicit Euler step of the heat equation, see Heat, that a kind gives.
func HeatOf(k Kind, spacing []float64, diffusivity, dt float64) (Stencil, error) {
	s, err := Heat(spacing, diffusivity, dt)
	if err != nil || k == starOf(spacing) {
		return s.Stencil(), err
	}
	l, _, err := k.laplacian(spacing)
	if err != nil {
		return Stencil{}, err
	}
	return l.step(diffusivity * dt), nil
}

// starOf is the kind of StarWeights.
func starOf(spacing []float64) Kind { return Kind{2*len(spacing) + 1, StarShape} }

// step returns u + factor*(the sum).
func (s Stencil) step(factor float64) Stencil {
	sum := Stencil{Dims: max(2, s.Dims), Centre: 1 + factor*s.Centre}
	for _, g := range s.Groups {
		sum.Groups = append(sum.Groups, Group{factor * g.Weight, g.Parts})
	}
	return sum
}

// laplacian returns the kind as a sum that is the Laplacian, and the part that LaplaceOf makes.
// The kind is not that of StarWeights.
func (k Kind) laplacian(spacing []float64) (sum Stencil, part float64, err error) {
	inverse, err := inverseSquares(spacing)
	if err != nil {
		return Stencil{}, 0, err
	}
	dims := len(spacing)
	d, ok := k.find(dims)
	if !ok {
		return Stencil{}, 0, fmt.Errorf("stencil: no %v in %d dimensions: %v", k, dims, Kinds(dims))
	}
	if k.OneSpacing() && !equal(spacing) {
		return Stencil{}, 0, fmt.Errorf("stencil: a %v needs one spacing on all axes, not %v", k, spacing)
	}
	return d.weights(inverse, equal(spacing)), d.part, nil
}

// layersOf returns the weights of a box of one step: those of faces, edges and corners, times h^2.
func layersOf(weights ...float64) func(inverse []float64, equal bool) Stencil {
	return func(inverse []float64, _ bool) Stencil {
		s := Stencil{Dims: len(inverse)}
		for i, w := range weights {
			s.Groups = append(s.Groups, Group{w * inverse[0], at(s.Dims, i+1)})
		}
		return s.centred()
	}
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

// isotropic is the 25-point box.
func isotropic(inverse []float64, _ bool) Stencil {
	d, f := []float64{-5.0 / 2, 4.0 / 3, -1.0 / 12}, []float64{24.0 / 30, 4.0 / 30, -1.0 / 30}
	s := Stencil{Dims: 2}
	for _, at := range [][2]int{{1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}} {
		i, j := at[0], at[1]
		s.Groups = append(s.Groups, Group{(d[i]*f[j] + f[i]*d[j]) * inverse[0], box(2, 2, func(o domain.Vec) bool {
			return max(abs(o[0]), abs(o[1])) == i && min(abs(o[0]), abs(o[1])) == j
		})})
	}
	return s.centred()
}

// at returns the points of the box of 3^dims around the centre that differ from it in so
// many axes.
func at(dims, axes int) []Part {
	return box(dims, 1, func(o domain.Vec) bool { return abs(o[0])+abs(o[1])+abs(o[2]) == axes })
}

// StarWeights is the stencil of 2*Dims+1 points that reaches one point along each
// axis. Where the weights of all axes are the same (Equal), a sweep computes
//
//	Centre*c + Axis[0]*(sum of neighbours)
//
// with the neighbours in the order of Sourouri et al. (ICPADS'14): x+, y+, z+,
// x-, y-, z-. Otherwise it computes
//
//	Centre*c + Axis[0]*(x+ plus x-) + Axis[1]*(y+ plus y-) + Axis[2]*(z+ plus z-)
//
// from left to right. Every operation is rounded by itself, in the precision
// of the field.
type StarWeights struct {
	Dims   int
	Equal  bool
	Centre float64
	Axis   [3]float64 // 0 beyond Dims
}

// Laplace returns the Jacobi sweep for the Laplace equation on a grid with the
// given spacing, one number an axis: the new value is the mean of the
// neighbours, weighted by 1/h^2.
func Laplace(spacing []float64) (StarWeights, error) {
	inverse, err := inverseSquares(spacing)
	if err != nil {
		return StarWeights{}, err
	}
	s := StarWeights{Dims: len(spacing), Equal: equal(spacing)}
	for a, w := range inverse {
		s.Axis[a] = w / (2 * total(inverse))
		if s.Equal {
			s.Axis[a] = 1 / float64(2*s.Dims)
		}
	}
	return s, nil
}

// Heat returns the explicit Euler step of length dt for the heat equation with
// the given diffusivity: the weight of an axis is diffusivity*dt/h^2. Units are
// the caller's.
func Heat(spacing []float64, diffusivity, dt float64) (StarWeights, error) {
	if _, err := inverseSquares(spacing); err != nil {
		return StarWeights{}, err
	}
	if !(dt > 0) || !(diffusivity > 0) || math.IsInf(dt*diffusivity, 0) {
		return StarWeights{}, fmt.Errorf("stencil: a time step of %v with diffusivity %v", dt, diffusivity)
	}
	s := StarWeights{Dims: len(spacing), Equal: equal(spacing)}
	for a, h := range spacing {
		s.Axis[a] = diffusivity * dt / (h * h)
	}
	s.Centre = 1 - 2*total(s.Axis[:])
	if s.Equal {
		s.Centre = 1 - float64(2*s.Dims)*s.Axis[0]
	}
	return s, nil
}

func inverseSquares(spacing []float64) ([]float64, error) {
	if len(spacing) < 1 || len(spacing) > 3 {
		return nil, fmt.Errorf("stencil: %d spacings; must be 1 to 3", len(spacing))
	}
	inverse := make([]float64, len(spacing))
	for a, h := range spacing {
		inverse[a] = 1 / (h * h)
		if !(h > 0) || math.IsInf(inverse[a], 0) || inverse[a] == 0 {
			return nil, fmt.Errorf("stencil: the spacing %v along %c", h, "xyz"[a])
		}
	}
	return inverse, nil
}

func equal(v []float64) bool {
	for _, x := range v {
		if x != v[0] {
			return false
		}
	}
	return true
}

func total(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}

// Stencil returns the star as a sum over points, in the order that StarWeights gives.
func (s StarWeights) Stencil() Stencil {
	sum := Stencil{Dims: max(2, s.Dims), Centre: s.Centre}
	if s.Equal {
		sum.Groups = []Group{{s.Axis[0], []Part{append(along(s.Dims, 1), along(s.Dims, -1)...)}}}
		return sum
	}
	for a, plus := range along(s.Dims, 1) {
		sum.Groups = append(sum.Groups, Group{s.Axis[a], []Part{{plus, along(s.Dims, -1)[a]}}})
	}
	return sum
}

// AsStar returns the star that the stencil is, if it is one.
func (s Stencil) AsStar() (StarWeights, bool) {
	star := StarWeights{Dims: s.Dims, Equal: len(s.Groups) == 1, Centre: s.Centre}
	for a, g := range s.Groups {
		if a < s.Dims {
			star.Axis[a] = g.Weight
		}
	}
	if star.Equal {
		star.Axis = [3]float64{}
		for a := range s.Dims {
			star.Axis[a] = s.Groups[0].Weight
		}
	}
	same := func(a, b Group) bool { return a.Weight == b.Weight && slices.EqualFunc(a.Parts, b.Parts, slices.Equal) }
	return star, slices.EqualFunc(star.Stencil().Groups, s.Groups, same)
}
