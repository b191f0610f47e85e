package stencil

import (
	"fmt"
	"math"
	"slices"

	"github.com/halox/halox/domain"
)

// Kind identifies a discretization of the Laplacian by the number of its points and their shape. On a grid of
// equal spacing h, the weights times h^2 are:
//
//	dimensions points shape order
//	1           3     star  2  neighbors 1, center -2
//	1           5     star  4  -1/12, 4/3, -5/2, 4/3, -1/12
//	2           5     star  2  neighbors 1, center -4
//	2           9     box   2  faces 4/6, corners 1/6, center -20/6: the error, h^2/12 times the
//	                           Laplacian applied twice, is isotropic
//	2           9     star  4  along each axis -1/12, 4/3, -5/2, 4/3, -1/12
//	2          25     box   4  D along x times F along y plus F along x times D along y, where D is the
//	                           4th-order second difference above and F is (-1, 4, 24, 4, -1)/30: 1 except
//	                           h^4/30 of the fourth derivative, so that the error, h^4/90 times the Laplacian
//	                           applied three times, is isotropic
//	3           7     star  2  neighbors 1, center -6
//	3          13     star  4  as the 9-point star
//	3          19     box   2  faces 2/6, edges 1/6, center -24/6: error as for the 9-point box
//	3          27     box   2  faces 14/30, edges 3/30, corners 1/30, center -128/30: error as for the 9-point box
//
// A star supports a different spacing per axis; a box does not. The one-dimensional stencils are for grids of two
// dimensions, and reach only along x.
type Kind struct {
	Points int   // total, including the center
	Shape  Shape // star or box
}

// Shape is the arrangement of the points of a Kind.
type Shape string

// A star has points only on the axes, a box also between them.
const (
	StarShape Shape = "star"
	BoxShape  Shape = "box"
)

// discretization describes a Kind.
type discretization struct {
	Kind
	// highest is the largest eigenvalue of the Laplacian times h^2, which determines the stability of a step: of each
	// axis for a star, of all axes together for others.
	highest float64
	part    float64 // fraction of the Jacobi update that LaplaceOf applies
	// weights returns the Laplacian as a stencil, from the inverse squares of the spacings; nil for StarWeights.
	weights func(inverse []float64, equal bool) Stencil
}

// kinds holds the discretizations by number of dimensions. The first with a given number of points is the default
// if no shape is given; the first of all is the default kind. A new kind is one more entry; the tests of stencil
// add one.
var kinds = map[int][]discretization{
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

// Kinds returns all kinds for a number of dimensions.
func Kinds(dims int) (all []Kind) {
	for _, d := range kinds[dims] {
		all = append(all, d.Kind)
	}
	return all
}

// OneSpacing reports whether the kind needs the same spacing on all axes.
func (k Kind) OneSpacing() bool { return k.Shape != StarShape }

// StableStep returns the largest stable time step of HeatOf: 2/diffusivity divided by the largest eigenvalue of
// the Laplacian; 0 for an unknown kind. For the stars of 5 and 7 points that is 1 / (2 diffusivity sum of
// 1/h_a^2), and on equal spacings exactly h*h/(4*diffusivity) in two dimensions and h*h/(6*diffusivity) in three.
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

// find returns the discretization of the kind in the given number of dimensions, if there is one.
func (k Kind) find(dims int) (discretization, bool) {
	i := slices.IndexFunc(kinds[dims], func(d discretization) bool { return d.Kind == k })
	if i < 0 {
		return discretization{}, false
	}
	return kinds[dims][i], true
}

// String returns, for example, "27-point box".
func (k Kind) String() string { return fmt.Sprintf("%d-point %s", k.Points, k.Shape) }

// LaplaceOf returns the Jacobi sweep of a kind for the Laplace equation: the new value solves the equation of a
// point given all others. If that would not converge, for stars of fourth order, only the fraction 2/(highest
// eigenvalue/center) = 15/16 of the change is applied, at which the fastest modes decay as slowly as the slowest.
// It returns an error for an unknown kind or an invalid spacing.
func LaplaceOf(k Kind, spacing []float64) (Stencil, error) {
	if star := starOf(spacing); k == star {
		s, err := Laplace(spacing)
		return s.Stencil(), err
	}
	l, part, err := k.laplacian(spacing)
	if err != nil {
		return Stencil{}, err
	}
	return l.step(-part / l.Center), nil
}

// HeatOf returns the explicit Euler step of a kind for the heat equation; see Heat for units and errors.
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

// starOf returns the kind of StarWeights.
func starOf(spacing []float64) Kind { return Kind{2*len(spacing) + 1, StarShape} }

// step returns u + factor*s.
func (s Stencil) step(factor float64) Stencil {
	sum := Stencil{Dims: max(2, s.Dims), Center: 1 + factor*s.Center}
	for _, g := range s.Groups {
		sum.Groups = append(sum.Groups, Group{factor * g.Weight, g.Parts})
	}
	return sum
}

// laplacian returns the kind as a stencil for the Laplacian, and the fraction for LaplaceOf. The kind must not be
// that of StarWeights.
func (k Kind) laplacian(spacing []float64) (sum Stencil, part float64, err error) {
	inverse, err := inverseSquares(spacing)
	if err != nil {
		return Stencil{}, 0, err
	}
	dims := len(spacing)
	d, ok := k.find(dims)
	if !ok {
		return Stencil{}, 0, fmt.Errorf("stencil: kind in %d dimensions: must be one of %v, got %v",
			dims, Kinds(dims), k)
	}
	if k.OneSpacing() && !equal(spacing) {
		return Stencil{}, 0, fmt.Errorf("stencil: %v: must have the same spacing on all axes, got %v", k, spacing)
	}
	return d.weights(inverse, equal(spacing)), d.part, nil
}

// layersOf returns a box of radius 1 with the given weights of faces, edges and corners, times h^2.
func layersOf(weights ...float64) func(inverse []float64, equal bool) Stencil {
	return func(inverse []float64, _ bool) Stencil {
		s := Stencil{Dims: len(inverse)}
		for i, w := range weights {
			s.Groups = append(s.Groups, Group{w * inverse[0], at(s.Dims, i+1)})
		}
		return s.centered()
	}
}

// centered sets the weight of the center so that the Laplacian of a constant is 0.
func (s Stencil) centered() Stencil {
	s.Center = 0
	for _, g := range s.Groups {
		s.Center -= g.Weight * float64(len(g.Offsets()))
	}
	return s
}

// fourthOrderStar has one group per distance, and per axis if the spacings differ.
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
	return s.centered()
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
	return s.centered()
}

// at returns the points of the box of 3^dims around the center that differ from it along the given number of axes.
func at(dims, axes int) []Part {
	return box(dims, 1, func(o domain.Vec) bool { return abs(o[0])+abs(o[1])+abs(o[2]) == axes })
}

// StarWeights is the stencil of 2*Dims+1 points that reaches one point along each axis. If the weights of all axes
// are equal, a sweep computes
//
//	Center*c + Axis[0]*(sum of neighbors)
//
// with the neighbors in the order of Sourouri et al. (ICPADS'14): x+, y+, z+, x-, y-, z-. Otherwise it computes
//
//	Center*c + Axis[0]*(x+ plus x-) + Axis[1]*(y+ plus y-) + Axis[2]*(z+ plus z-)
//
// from left to right. Every operation is rounded individually in the precision of the field.
type StarWeights struct {
	Dims   int        // 1 to 3
	Equal  bool       // whether the weights of all axes are equal
	Center float64    // weight of the center
	Axis   [3]float64 // weights per axis; 0 beyond Dims
}

// Laplace returns the Jacobi sweep for the Laplace equation on a grid with the given spacing, one per axis: the
// new value is the mean of the neighbors, weighted by 1/h^2. It returns an error unless there are 1 to 3 positive
// spacings.
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

// Heat returns the explicit Euler step of length dt for the heat equation with the given diffusivity: the weight
// of an axis is diffusivity*dt/h^2. Units must be consistent; halox does not convert them. It returns an error if
// dt, diffusivity or a spacing is not positive.
func Heat(spacing []float64, diffusivity, dt float64) (StarWeights, error) {
	if _, err := inverseSquares(spacing); err != nil {
		return StarWeights{}, err
	}
	if !(dt > 0) || !(diffusivity > 0) || math.IsInf(dt*diffusivity, 0) {
		return StarWeights{}, fmt.Errorf("stencil: time step, diffusivity: must be positive and finite, got %v and %v",
			dt, diffusivity)
	}
	s := StarWeights{Dims: len(spacing), Equal: equal(spacing)}
	for a, h := range spacing {
		s.Axis[a] = diffusivity * dt / (h * h)
	}
	s.Center = 1 - 2*total(s.Axis[:])
	if s.Equal {
		s.Center = 1 - float64(2*s.Dims)*s.Axis[0]
	}
	return s, nil
}

func inverseSquares(spacing []float64) ([]float64, error) {
	if len(spacing) < 1 || len(spacing) > 3 {
		return nil, fmt.Errorf("stencil: number of spacings: must be between 1 and 3, got %d", len(spacing))
	}
	inverse := make([]float64, len(spacing))
	for a, h := range spacing {
		inverse[a] = 1 / (h * h)
		if !(h > 0) || math.IsInf(inverse[a], 0) || inverse[a] == 0 {
			return nil, fmt.Errorf("stencil: spacing along %c: must be positive and finite, got %v", "xyz"[a], h)
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

// Stencil returns the star as a stencil, in the summation order of StarWeights.
func (s StarWeights) Stencil() Stencil {
	sum := Stencil{Dims: max(2, s.Dims), Center: s.Center}
	if s.Equal {
		sum.Groups = []Group{{s.Axis[0], []Part{append(along(s.Dims, 1), along(s.Dims, -1)...)}}}
		return sum
	}
	for a, plus := range along(s.Dims, 1) {
		sum.Groups = append(sum.Groups, Group{s.Axis[a], []Part{{plus, along(s.Dims, -1)[a]}}})
	}
	return sum
}

// AsStar returns the stencil as a star, if it is one.
func (s Stencil) AsStar() (StarWeights, bool) {
	star := StarWeights{Dims: s.Dims, Equal: len(s.Groups) == 1, Center: s.Center}
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
