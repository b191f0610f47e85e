package domain

import (
	"fmt"
	"math"
)

// maxPoints bounds the points of a grid so that sizes in bytes, with ghosts and padding, fit in 64 bits.
const maxPoints = math.MaxInt64 / 4096

// Grid is the index space of a problem.
type Grid struct {
	Dims     int     // 2 or 3
	Size     Vec     // owned points per axis; Size[2] is 1 in two dimensions
	Periodic [3]bool // whether each axis is periodic
}

// CheckPerAxis returns an error unless a list has one entry per axis of a grid, or none.
func CheckPerAxis(list string, entries, axes int) error {
	if entries != 0 && entries != axes {
		return fmt.Errorf("%s: must have %d entries, one per axis, or none, got %d", list, axes, entries)
	}
	return nil
}

// NewGrid returns a grid of len(size) dimensions. A single size gives a grid of two dimensions with one row. Every
// size must be at least 1 and their product less than 2^51. periodic says which axes are, and has one entry per size
// or none.
func NewGrid(size []int, periodic []bool) (Grid, error) {
	g := Grid{Dims: max(2, len(size)), Size: Vec{1, 1, 1}}
	if len(size) < 1 || len(size) > 3 {
		return Grid{}, fmt.Errorf("domain: number of dimensions: must be between 1 and 3, got %d", len(size))
	}
	if err := CheckPerAxis("periodic", len(periodic), len(size)); err != nil {
		return Grid{}, fmt.Errorf("domain: %w", err)
	}
	copy(g.Periodic[:], periodic)
	points := int64(1)
	for a, n := range size {
		if n < 1 {
			return Grid{}, fmt.Errorf("domain: size %v: every axis must have at least 1 point", size)
		}
		if points > maxPoints/int64(n) {
			return Grid{}, fmt.Errorf("domain: size %v: must have at most %d points", size, int64(maxPoints))
		}
		points *= int64(n)
		g.Size[a] = n
	}
	return g, nil
}

// Box returns the box of all owned points, starting at the origin.
func (g Grid) Box() Box { return Box{Hi: g.Size} }

// along returns the components for the axes of the grid, for error messages.
func (g Grid) along(v Vec) []int { return v[:g.Dims] }

// Points returns the number of owned points.
func (g Grid) Points() int64 { return g.Size.Product() }

// EachChunk divides the grid into boxes of whole rows, each of about the given number of points, and calls f for
// each in memory order until f returns an error.
func (g Grid) EachChunk(points int, f func(chunk Box) error) error {
	rows := max(1, points/g.Size[0])
	for z := 0; z < g.Size[2]; {
		planes := min(max(1, rows/g.Size[1]), g.Size[2]-z)
		for y := 0; y < g.Size[1]; y += rows {
			chunk := Box{Vec{0, y, z}, Vec{g.Size[0], min(y+rows, g.Size[1]), z + planes}}
			if err := f(chunk); err != nil {
				return err
			}
		}
		z += planes
	}
	return nil
}
