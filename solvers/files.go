package solvers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/halox/halox/domain"
)

// File holds numbers at the points of a box, which are read only as needed. It must be safe for concurrent use.
type File interface {
	Size() []int // points along each axis, x first
	// Row sets dst to the values along x, starting at a point. Values that cannot be read are NaN.
	Row(dst []float64, at domain.Vec)
}

// placedFile is a file mapped to the points of a grid. Outside the grid, it wraps around along periodic axes, and
// repeats the value of the nearest point along other axes.
type placedFile struct {
	File
	axes [3]fileAxis
}

// fileAxis maps the points of a grid axis to the points of a file axis, which cover the same length.
type fileAxis struct {
	points        int
	periodic      bool
	ratio         float64 // grid spacing divided by file spacing
	first, origin float64 // distances of the first points of grid and file from the wall, in their own spacings
}

// place maps a file to the grid. If the file has another size than the grid, linear selects linear interpolation;
// without it, place returns an error.
func (p *Problem) place(f File, name string, linear bool, of []int) (*placedFile, error) {
	size := f.Size()
	switch {
	case len(size) != len(of):
		return nil, fmt.Errorf("%s must have %d axes, got shape %s", name, len(of), shape(size))
	case !linear && !slices.Equal(size, of):
		return nil, fmt.Errorf("%s must have shape %s, got %s: to interpolate it write file(%q, linear), "+
			"or {file: %[1]s, interpolate: linear}", name, shape(of), shape(size), name)
	}
	placed := &placedFile{File: f}
	for a := range 3 {
		axis := fileAxis{points: 1, ratio: 1}
		if a < len(size) {
			grid := p.axis(a)
			from := Axis{size[a], grid.Ends}
			axis = fileAxis{size[a], p.Grid.Periodic[a], grid.UnitSpacing() / from.UnitSpacing(), grid.distance(0),
				from.distance(0)}
		}
		placed.axes[a] = axis
	}
	return placed, nil
}

// shape formats a size as NumPy does.
func shape(size []int) string {
	size = slices.Clone(size)
	slices.Reverse(size)
	text := strings.ReplaceAll(strings.Trim(fmt.Sprint(size), "[]"), " ", ", ")
	if len(size) == 1 {
		text += ","
	}
	return "(" + text + ")"
}

// around returns the file points before and after a grid point, and the weight of the second.
func (f *fileAxis) around(i int) (low, high int, weight float64) {
	at := (float64(i)+f.first)*f.ratio - f.origin
	n := f.points
	if !f.periodic {
		at = min(max(at, 0), float64(n-1))
	}
	below := math.Floor(at)
	low, weight = int(below), at-below
	high = low + 1
	if weight == 0 {
		high = low
	}
	return (low%n + n) % n, (high%n + n) % n, weight
}

// Row implements stencil.Rows.
func (f *placedFile) Row(dst []float64, at domain.Vec) {
	lowZ, highZ, z := f.axes[2].around(at[2])
	lowY, highY, y := f.axes[1].around(at[1])
	f.along(dst, at[0], domain.Vec{0, lowY, lowZ})
	mix := func(to []float64, weight float64, y, z int) {
		if weight != 0 {
			other := make([]float64, len(dst))
			f.along(other, at[0], domain.Vec{0, y, z})
			blend(to, other, weight)
		}
	}
	mix(dst, y, highY, lowZ)
	if z != 0 {
		behind := make([]float64, len(dst))
		f.along(behind, at[0], domain.Vec{0, lowY, highZ})
		mix(behind, y, highY, highZ)
		blend(dst, behind, z)
	}
}

// blend interpolates linearly between to and other, in place; weight is the weight of other.
func blend(to, other []float64, weight float64) {
	for i := range to {
		to[i] = (1-weight)*to[i] + weight*other[i]
	}
}

// along sets dst to the values of grid points along x, interpolated from one row of the file.
func (f *placedFile) along(dst []float64, i0 int, row domain.Vec) {
	x := &f.axes[0]
	first, last := x.points, -1
	for i := range dst {
		low, high, _ := x.around(i0 + i)
		first, last = min(first, low, high), max(last, low, high)
	}
	row[0] = first
	values := make([]float64, last-first+1)
	f.File.Row(values, row)
	for i := range dst {
		low, high, weight := x.around(i0 + i)
		if dst[i] = values[low-first]; weight != 0 {
			dst[i] = (1-weight)*dst[i] + weight*values[high-first]
		}
	}
}
