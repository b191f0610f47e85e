package stencil

import (
	"fmt"
	"math"
	"slices"
)

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
	if len(spacing) != 2 && len(spacing) != 3 {
		return nil, fmt.Errorf("stencil: %d spacings; 2 or 3 are needed", len(spacing))
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
	sum := Stencil{Dims: s.Dims, Centre: s.Centre}
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

// along returns the points d steps along each axis.
func along(dims, d int) Part {
	points := make(Part, dims)
	for a := range points {
		points[a][a] = d
	}
	return points
}
