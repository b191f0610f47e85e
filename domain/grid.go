package domain

import (
	"fmt"
	"math"
)

// maxPoints bounds the points of a grid so that sizes in bytes, with ghosts
// and padding, stay far from the end of 64 bits.
const maxPoints = math.MaxInt64 / 4096

// Grid is the index space of a problem. Size counts owned points, not the
// physical faces. A grid of two dimensions has Size[2] = 1 and no faces in z.
type Grid struct {
	Dims     int
	Size     Vec
	Periodic [3]bool
}

// NewGrid makes a grid of len(size) dimensions, 2 or 3; of one size it is a grid of two dimensions with one row. Every
// size is at least 1 and their product less than 2^51.
func NewGrid(size []int, periodic [3]bool) (Grid, error) {
	g := Grid{Dims: max(2, len(size)), Size: Vec{1, 1, 1}, Periodic: periodic}
	if len(size) < 1 || len(size) > 3 {
		return Grid{}, fmt.Errorf("domain: a grid has 1 to 3 dimensions, not %d", len(size))
	}
	if g.Dims == 2 && periodic[2] {
		return Grid{}, fmt.Errorf("domain: a grid of 2 dimensions has no z axis to be periodic")
	}
	points := int64(1)
	for a, n := range size {
		if n < 1 {
			return Grid{}, fmt.Errorf("domain: size %v: every axis needs at least 1 point", size)
		}
		if points > maxPoints/int64(n) {
			return Grid{}, fmt.Errorf("domain: size %v: more than %d points", size, int64(maxPoints))
		}
		points *= int64(n)
		g.Size[a] = n
	}
	return g, nil
}

// Box returns the box of all owned points, starting at the origin.
func (g Grid) Box() Box { return Box{Hi: g.Size} }

// along returns the numbers of a vector that are of axes of the grid, for errors.
func (g Grid) along(v Vec) []int { return v[:g.Dims] }

// Points returns the number of owned points.
func (g Grid) Points() int64 { return g.Size.Product() }

// EachChunk cuts the grid into boxes of whole rows, of about the given number of
// points, and calls f for each in the order of memory, until f fails.
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
