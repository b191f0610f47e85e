package configs

import (
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"
)

// A Grid is the owned points and the distances between them.
type Grid struct {
	Size    []int     `json:"size" yaml:"size,flow"`       // Points on each axis, x first; walls are not counted
	Spacing []float64 `json:"spacing" yaml:"spacing,flow"` // distance between points on each axis
}

// maxPoints is the number of points of the largest grid that a config may ask for.
const maxPoints = 1 << 48

// Spacings outside these bounds have squares, or coefficients made of them, that float64 cannot hold.
const minSpacing, maxSpacing = 1e-100, 1e100

// Points returns the number of points of the grid.
func (g Grid) Points() int64 {
	points := int64(1)
	for _, n := range g.Size {
		points *= int64(n)
	}
	return points
}

func (r *reader) size() []int {
	const name = "grid.size"
	s, ok := r.lookup(name)
	if !ok {
		r.missing(name)
		return nil
	}
	size, ok := each(s.node, natural)
	switch {
	case !ok || len(size) < 2 || len(size) > 3:
		r.refuse(name, s)
		return nil
	case tooMany(size):
		r.refuse(name, s, fmt.Sprintf("is not allowed: at most 2^48 = %d points in all", int64(maxPoints)))
		return nil
	}
	r.dims = len(size)
	return size
}

// natural is integer for numbers from 1.
func natural(n *yaml.Node) (int, bool) {
	value, ok := integer(n)
	return value, ok && value >= 1
}

// tooMany reports whether the product passes maxPoints, without forming a product that overflows.
func tooMany(size []int) bool {
	left := int64(maxPoints)
	for _, n := range size {
		left /= int64(n)
	}
	return left == 0
}

// spacing reads grid.spacing, or gives that with which the grid fills the unit box.
func (r *reader) spacing(size []int, b Boundary) []float64 {
	const name = "grid.spacing"
	s, ok := r.lookup(name)
	switch {
	case !ok && r.unit == nil:
		r.missing(name)
		return nil
	case !ok:
		return r.unitSpacings(size, b)
	case s.node.Kind == yaml.SequenceNode:
		return r.spacings(name, s)
	}
	h, ok := distanceBetween(s.node)
	if !ok {
		r.refuse(name, s)
		return nil
	}
	spacing := make([]float64, len(size))
	for axis := range spacing {
		spacing[axis] = h
	}
	return spacing
}

func (r *reader) spacings(name string, s setting) []float64 {
	spacing, ok := each(s.node, distanceBetween)
	switch {
	case !ok:
		r.refuse(name, s)
		return nil
	case r.dims != 0 && len(spacing) != r.dims:
		r.refuse(name, s, fmt.Sprintf("has %s for a grid of %d dimensions: %s", counted(len(spacing), "number"), r.dims, r.allowed(name)))
		return nil
	}
	return spacing
}

func distanceBetween(n *yaml.Node) (float64, bool) {
	h, ok := decimal(n)
	return h, ok && h >= minSpacing && h <= maxSpacing
}

func (r *reader) unitSpacings(size []int, b Boundary) []float64 {
	spacing := make([]float64, len(size))
	for axis, n := range size {
		spacing[axis] = r.unit(n, [2]FaceKind{b.Face(axis, 0).Kind, b.Face(axis, 1).Kind})
	}
	return spacing
}

// usable reports whether a number is positive and finite.
func usable(value float64) bool { return value > 0 && !math.IsInf(value, 0) }
